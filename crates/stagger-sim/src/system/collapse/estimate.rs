use core::fmt;
use core::time::Duration;

use stagger_core::Seed;

use super::process::Health;
use super::splitting::{Count, Plan, Process, plan};
use crate::engine::progress::Progress;
use crate::engine::sweep::Sweep;
use crate::system::definition::System;
use crate::system::error::{SystemError, SystemPart, SystemProblem};

/// An estimate of the time until a healthy system collapses by chance, however rare that is.
///
/// Random variation is a trigger, too: at high load a queue now and then grows beyond the time limit of its callers, and
/// their retries keep it there. Plain runs see that only if it happens within hours. This estimate splits the way to a
/// collapse into levels (importance splitting): trials start from states in which a queue is unusually long, and end where
/// it is longer still or back to normal. A system that collapses once in years takes seconds.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{Seed, policy};
/// use stagger_sim::Progress;
/// use stagger_sim::system::{Edge, RareCollapse, Service, System};
///
/// // Ten requests per second can be served. Callers give up after three seconds, and make two attempts.
/// let system = System::builder(8.0)
///     .service(Service::new("server").service_time(Duration::from_millis(100)).backlog(100))
///     .edge(Edge::from_users("server").timeout(Duration::from_secs(3)).policy(policy!(zero().max_attempts(2))))
///     .build()?;
/// let time = RareCollapse::new().replications(4).run(&system, Seed::new(1), &Progress::new())?.expect("not cancelled");
/// assert!(time.low > Duration::from_secs(3_600), "{time}");
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
///
/// # Definitions
///
/// - A window is as wide as those of a [verdict](super::super::SystemFigures::window). It is bad if less than 90 % of the
///   requests that end in it are served (95 % if there is a cache). A *collapse* begins with the first of five bad windows
///   in a row, whether the system would recover later or not.
/// - The *time* is that between the start of the system, with empty queues and warm caches, and the beginning of the
///   collapse. If collapses are rare, it is counted from when the queues are as long as usual. Triggers are ignored.
/// - The *level* of a state is the time that an attempt would wait at the busiest service, attempts at it × service time /
///   workers, as a share of the shortest time limit of its callers. What is normal, and which levels there are, is chosen
///   in runs of their own. The choice affects the width of the error bar and not the mean.
///
/// The mean is the simulated time over the expected number of collapses, of several independent replications; the error
/// bar is Student's interval for the logarithm of that number. With the default effort, it contains the exact mean of a
/// Markov chain in 95 % to 97 % of the cases; with 8 replications of 50 trials, in 87 % to 96 %.
///
/// Memory: the states at a level are kept, one for each trial, each with its queues and caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RareCollapse {
    replications: u32,
    trials: u32,
    plain: Option<Duration>,
}

/// How long it takes until a healthy system collapses by chance.
///
/// Displays as `once in 40 days (95 %: 33 to 48 days)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollapseTime {
    /// The mean time until a collapse begins; `None` if no collapse was found.
    pub mean: Option<Duration>,
    /// The lower end of the interval that contains the mean with a confidence of 95 %. If no collapse was found, three of
    /// them in the trials of the last level would give this mean.
    pub low: Duration,
    /// The upper end of the interval; `None` if no collapse was found.
    pub high: Option<Duration>,
    /// Number of levels: 0 for plain runs.
    pub levels: u32,
    /// Trials that were cut off after 10 million events, neither collapsed nor back to normal. They count as the latter: the
    /// mean is too long if there are many.
    pub undecided: u64,
}

impl Default for RareCollapse {
    fn default() -> Self {
        Self::new()
    }
}

impl RareCollapse {
    /// Creates an estimate with 16 replications of 200 trials from each level.
    pub const fn new() -> Self {
        Self { replications: 16, trials: 200, plain: None }
    }

    /// Sets the number of independent replications. Range: 2 to 10,000, to which other values are clamped.
    pub const fn replications(mut self, replications: u32) -> Self {
        self.replications = replications;
        self
    }

    /// Sets the number of trials from each level in a replication. Range: 50 to 100,000, to which other values are clamped.
    pub const fn trials(mut self, trials: u32) -> Self {
        self.trials = trials;
        self
    }

    /// Counts collapses in plain runs of this simulated length instead, one for each replication: to check the estimate
    /// where collapses are frequent. Range: up to 100 years, to which longer ones are clamped.
    pub const fn plain(mut self, length: Duration) -> Self {
        self.plain = Some(length);
        self
    }

    /// Estimates the time for a system, on all cores; the result depends only on the seed. Returns `None` if it was
    /// cancelled.
    ///
    /// # Errors
    /// [`SystemError`] if an edge has guards, which cannot be copied in the midst of a run.
    pub fn run(self, system: &System, seed: Seed, progress: &Progress) -> Result<Option<CollapseTime>, SystemError> {
        let guarded = system.settings.edges.iter().enumerate().filter(|(_, edge)| edge.guards.is_some());
        let problems: Vec<_> = guarded
            .map(|(nth, edge)| {
                let message =
                    format!("edge to {}: it has guards, which this estimate cannot copy; remove them", edge.to);
                SystemProblem::new(SystemPart::Edge(nth), message)
            })
            .collect();
        if !problems.is_empty() {
            return Err(SystemError { problems });
        }
        let system = system.to_builder().without_triggers().build()?;
        Ok(self.of(&Health::new(&system, seed), Health::delay(&system), seed, progress))
    }

    /// Estimates the time for a process whose collapses are noticed after they have lasted for `delay`.
    pub(super) fn of<P: Process + Sync>(
        self,
        start: &P,
        delay: Duration,
        seed: Seed,
        progress: &Progress,
    ) -> Option<CollapseTime> {
        let plan = match self.plain {
            Some(length) => {
                let length = length.min(CENTURY).as_secs_f64();
                Plan { normal: 0.0, levels: Vec::new(), trials: 0, warm_up: 0.0, length }
            }
            None => plan(start, self.trials.clamp(50, 100_000), seed.for_call(0), progress)?,
        };
        let seeds: Vec<_> = (1..=u64::from(self.replications.clamp(2, 10_000))).map(|nth| seed.for_call(nth)).collect();
        let counts =
            Sweep::new().run(&[()], &seeds, progress, |(), seed, progress| plan.estimate(start, seed, progress));
        let counts: Option<Vec<_>> = counts.into_iter().flatten().collect();
        Some(CollapseTime { levels: plan.levels.len() as u32, ..CollapseTime::of(&counts?, delay) })
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

impl CollapseTime {
    fn of(counts: &[Count], delay: Duration) -> Self {
        let replications = counts.len() as f64;
        let seconds: f64 = counts.iter().map(|count| count.seconds).sum();
        let collapses: f64 = counts.iter().map(|count| count.collapses).sum();
        let mean = collapses / replications;
        let squares: f64 = counts.iter().map(|count| (count.collapses - mean).powi(2)).sum();
        let error = (squares / (replications - 1.0) / replications).sqrt();
        // From the end of one collapse to the start of the next.
        let time = |collapses: f64| {
            let time = Duration::try_from_secs_f64(seconds / collapses).unwrap_or(Duration::MAX);
            time.saturating_sub(delay)
        };
        let undecided = counts.iter().map(|count| count.undecided).sum();
        if collapses > 0.0 {
            let factor = (student(replications - 1.0) * error / mean).exp();
            let [low, high] = [collapses * factor, collapses / factor].map(time);
            Self { mean: Some(time(collapses)), low, high: Some(high), levels: 0, undecided }
        } else {
            let resolution: f64 = counts.iter().map(|count| count.resolution).sum::<f64>() / replications;
            Self { mean: None, low: time(3.0 * resolution), high: None, levels: 0, undecided }
        }
    }
}

/// Returns the two-sided 95 % quantile of Student's distribution, from 1 degree of freedom: the expansion of Cornish and
/// Fisher, good to 1 % from 4 degrees.
fn student(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

impl fmt::Display for CollapseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.mean, self.high) {
            (Some(mean), Some(high)) => {
                let (length, name) = unit(mean);
                let [mean, low, high] = [mean, self.low, high].map(|time| number(time.as_secs_f64() / length));
                write!(f, "once in {mean} {name} (95 %: {low} to {high} {name})")
            }
            _ => {
                let (length, name) = unit(self.low);
                write!(f, "not within {} {name}", number(self.low.as_secs_f64() / length))
            }
        }
    }
}

/// Returns the unit in which people say a time, in seconds, and its name.
fn unit(time: Duration) -> (f64, &'static str) {
    let units = [(365.25 * 86_400.0, "years"), (86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    units.into_iter().find(|(length, _)| time.as_secs_f64() >= 2.0 * length).unwrap_or((1.0, "seconds"))
}

/// Returns a number with two digits or more.
fn number(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_match_published_tables() {
        for (freedom, want) in [(4.0, 2.776), (7.0, 2.365), (15.0, 2.131), (30.0, 2.042), (1e6, 1.960)] {
            assert!((student(freedom) / want - 1.0).abs() < 0.01, "{freedom}: {} is not {want}", student(freedom));
        }
    }

    #[test]
    fn times_are_said_in_the_unit_of_their_mean() {
        let days = |days: f64| Duration::from_secs_f64(86_400.0 * days);
        let time =
            CollapseTime { mean: Some(days(40.2)), low: days(33.0), high: Some(days(48.4)), levels: 9, undecided: 0 };
        assert_eq!(time.to_string(), "once in 40 days (95 %: 33 to 48 days)");
        let none = CollapseTime { mean: None, high: None, low: days(3_000.0), ..time };
        assert_eq!(none.to_string(), "not within 8.2 years");
        let short = CollapseTime { mean: Some(days(0.001)), low: days(0.0005), high: Some(days(0.002)), ..time };
        assert_eq!(short.to_string(), "once in 86 seconds (95 %: 43 to 173 seconds)");
    }

    #[test]
    fn without_a_collapse_the_lower_end_is_that_of_three() {
        let count = Count { collapses: 0.0, resolution: 0.5, seconds: 300.0, undecided: 0 };
        let time = CollapseTime::of(&[count; 4], Duration::ZERO);
        assert_eq!((time.mean, time.high, time.low), (None, None, Duration::from_secs(800)));
    }
}
