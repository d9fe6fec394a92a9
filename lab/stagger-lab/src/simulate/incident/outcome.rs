use stagger_sim::storm::{ReconnectReport, RunFigures, ScenarioSpec, StormReport};

use crate::simulate::system::{Document, conclusions};
use stagger_report::storm::{Timeline, resample};
use stagger_terminal::plot::Unit;

/// What became of one of the two files of an incident.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Each with its name, such as `verdict`.
    pub(super) findings: Vec<(String, String)>,
    pub(super) course: Course,
}

/// The course of the first run.
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    /// What is counted, for the vertical axis.
    pub(super) counted: &'static str,
    /// The name of what is counted, in a legend.
    pub(super) name: &'static str,
    /// The count of each second.
    pub(super) per_second: Vec<f64>,
    /// What the count is compared with: its name, and its value in each second.
    pub(super) reference: (&'static str, Vec<f64>),
    /// When the fault begins and ends, in seconds.
    pub(super) fault_s: (f64, f64),
}

impl Outcome {
    /// Returns the outcome of a system.
    pub(super) fn of_system(document: &Document) -> Self {
        let findings = conclusions(document).into_iter().map(|text| match text.split_once(": ") {
            Some((name, finding)) => (name.to_owned(), finding.to_owned()),
            None => ("note".to_owned(), text),
        });
        let floats = |counts: &[u64]| counts.iter().map(|&count| count as f64).collect();
        let course = document.runs.first().map(|run| Course {
            counted: "requests per second",
            name: "served",
            per_second: floats(&run.goodput),
            reference: ("requests", floats(&run.requests)),
            fault_s: (document.system.fault_start_s, document.system.fault_end_s),
        });
        Self { findings: findings.collect(), course: course.unwrap_or_default() }
    }

    /// Returns the outcome of a mass disconnect with one policy.
    pub(super) fn of_reconnect(storm: &StormReport) -> Self {
        let ScenarioSpec::Reconnect(spec) = &storm.scenario else { return Self::default() };
        let runs = storm.strategies.first().map_or(&[][..], |strategy| &strategy.runs);
        let reports = || {
            runs.iter().filter_map(|run| match &run.figures {
                RunFigures::Reconnect(report) => Some(&**report),
                _ => None,
            })
        };
        let mean = |of: fn(&ReconnectReport) -> Option<f64>| {
            let sum: Option<f64> = reports().map(of).sum();
            sum.map(|sum| sum / runs.len().max(1) as f64)
        };
        let seconds = |mean: Option<f64>| {
            mean.map_or("never".to_owned(), |mean| {
                format!("after {}", Unit::Seconds.label((mean * 10.0).round() / 10.0))
            })
        };
        let count = |mean: Option<f64>| Unit::Count.label(mean.unwrap_or(0.0).round());
        let crashes = mean(|report| Some(report.crashes as f64)).unwrap_or(0.0);
        let most = spec.crash_loop.map_or(0, |crashes| crashes.most);
        let crashes = match crashes {
            0.0 => "none".to_owned(),
            crashes if crashes >= f64::from(most) => {
                format!("{}, the most that the model allows", Unit::Count.label(crashes))
            }
            crashes => format!("{crashes:.1} on average"),
        };
        let findings = [
            (
                "back again",
                format!(
                    "half of the clients {}, 99% {}",
                    seconds(mean(|report| report.recovered_p50_s)),
                    seconds(mean(|report| report.recovered_p99_s))
                ),
            ),
            ("further crashes", crashes),
            (
                "attempts",
                format!(
                    "{:.1} per client, {} in the busiest second, at a capacity of {}/s",
                    mean(|report| Some(report.attempts_per_client)).unwrap_or(0.0),
                    count(mean(|report| Some(report.peak_1s as f64))),
                    Unit::Count.label(spec.rate)
                ),
            ),
        ];
        let timeline = runs.first().and_then(|run| Timeline::from_figures(&run.figures)).unwrap_or_default();
        let whole = (timeline.attempts.len() as f64 * timeline.bin_s).ceil().max(1.0);
        let course = Course {
            counted: "attempts per second",
            name: "attempts",
            per_second: resample(&timeline.attempts, timeline.bin_s, whole, whole as usize),
            reference: ("server capacity", vec![spec.rate; whole as usize]),
            fault_s: (0.0, spec.down_for_s),
        };
        Self { findings: findings.map(|(name, finding)| (name.to_owned(), finding)).to_vec(), course }
    }
}
