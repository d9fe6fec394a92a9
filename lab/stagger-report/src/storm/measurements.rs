//! What a drill says about its measurements: how reliable they are, and whether simulations agree.

use core::time::Duration;

use stagger_sim::storm::{Agreement, ComparedFigure, Measurements, ReconnectReport, StormReport};
use stagger_terminal::plan::brief;
use stagger_terminal::plot::Unit;

/// Returns whether the document contains measured runs.
pub(super) fn is_measured(storm: &StormReport) -> bool {
    measured_runs(storm).next().is_some()
}

/// Returns one sentence for each measured run about the machine and the server.
pub(super) fn measurements(storm: &StormReport) -> Vec<String> {
    measured_runs(storm).map(|(name, measured)| format!("{name}: {}", describe(measured))).collect()
}

/// Returns one sentence for the unreliable runs that have the same reasons, with these.
pub(super) fn unreliable_runs(storm: &StormReport) -> Vec<String> {
    let mut doubted: Vec<(Vec<&str>, &[String])> = Vec::new();
    for (name, measured) in measured_runs(storm).filter(|(_, measured)| !measured.warnings.is_empty()) {
        match doubted.iter_mut().find(|(_, warnings)| **warnings == *measured.warnings) {
            Some((names, _)) => names.push(name),
            None => doubted.push((vec![name], &measured.warnings)),
        }
    }
    doubted.iter().map(|(names, warnings)| unreliable(names, warnings)).collect()
}

/// Returns a sentence on these runs, for which the same warnings were given.
pub fn unreliable(names: &[&str], warnings: &[String]) -> String {
    let these = if names.len() == 1 { "this run" } else { "these runs" };
    let (names, warnings) = (names.join("; "), warnings.join("; "));
    format!("unreliable: {names}: the machine, rather than the policy, may have shaped {these}: {warnings}")
}

/// Returns what a comparison with simulations says, and whether it is explained by the figures that differ instead of
/// all.
pub const fn verdict_on(agrees: Option<bool>) -> (&'static str, bool) {
    match agrees {
        None => ("no verdict, because the run is unreliable", false),
        Some(true) => ("agrees with the simulations, at most 10% or noise outside their range", false),
        Some(false) => ("differs from the simulations, more than 10% and noise outside their range", true),
    }
}

/// Returns one sentence for each run that was compared with simulations: whether they agree, the figures, and the
/// largest difference.
pub(super) fn agreements(storm: &StormReport) -> Vec<String> {
    let compared = measured_runs(storm).filter_map(|(name, measured)| Some((name, measured.agreement.as_ref()?)));
    compared.map(|(name, agreement)| format!("{name}: {}", verdict(agreement))).collect()
}

fn verdict(agreement: &Agreement) -> String {
    let figure = |compared: &ComparedFigure| {
        let (heading, text) = (heading(&compared.figure), |value| figure_text(&compared.figure, value));
        let range = match (compared.simulated_min, compared.simulated_max) {
            (Some(min), Some(max)) if text(Some(min)) != text(Some(max)) => {
                format!(" ({} to {})", text(Some(min)), text(Some(max)))
            }
            _ => String::new(),
        };
        format!("{heading} {} measured, {} simulated{range}", text(compared.measured), text(compared.simulated))
    };
    let (verdict, by_differences) = verdict_on(agreement.agrees);
    let figures = agreement.figures.iter().filter(|compared| !by_differences || !compared.agrees).map(figure);
    let mut parts = vec![verdict.to_owned()];
    parts.push(figures.collect::<Vec<_>>().join("; "));
    if let Some((compared, difference)) = agreement.largest_difference() {
        let side = if difference < 0.0 { "below" } else { "above" };
        let percent = 100.0 * difference.abs();
        parts.push(format!(
            "the largest difference is that of {}, {percent:.0}% {side} the mean of {} simulations",
            heading(&compared.figure),
            agreement.simulations
        ));
    }
    format!("{}: {}", parts[0], parts[1..].join("; "))
}

/// Returns the heading of a figure of a mass disconnect.
fn heading(figure: &str) -> &str {
    if figure == "burst_100ms" {
        return "most in any 100ms";
    }
    ReconnectReport::METRICS.iter().find(|metric| metric.key == figure).map_or(figure, |metric| metric.heading)
}

fn figure_text(figure: &str, value: Option<f64>) -> String {
    let Some(value) = value else { return "never".to_owned() };
    match figure {
        "attempts_per_client" => format!("{value:.2}"),
        _ if figure.ends_with("_s") => Unit::Seconds.label((value * 100.0).round() / 100.0),
        _ => Unit::Count.label(value.round()),
    }
}

fn measured_runs(storm: &StormReport) -> impl Iterator<Item = (&str, &Measurements)> {
    storm
        .strategies
        .iter()
        .flat_map(|strategy| strategy.runs.iter().filter_map(|run| Some((&*strategy.name, run.measured.as_ref()?))))
}

fn describe(measured: &Measurements) -> String {
    let time = |seconds: f64| brief(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let count = |number: u64| Unit::Count.label(number as f64);
    let mut parts: Vec<String> = measured.client.iter().map(|command| format!("clients of `{command}`")).collect();
    parts.push(format!("connections lost within {}", time(measured.disconnect_window_s)));
    if let Some(down) = measured.down_s {
        parts.push(format!("server down for {}", time(down)));
    }
    if let Some(server) = &measured.server {
        let (arrived, rejected) = (count(server.arrived), count(server.rejected));
        parts.push(format!("{arrived} attempts reached the server, {rejected} rejected"));
    }
    parts.push(format!("timers up to {} late", time(measured.max_timer_delay_s)));
    if let Some(share) = measured.peak_cpu_ratio {
        parts.push(format!("peak CPU usage {:.0}% in one second", share * 100.0));
    }
    let (overflows, drops) = (measured.listen_overflows, measured.listen_drops);
    parts.push(match (overflows, drops, measured.syn_retransmits, measured.segments_retransmitted) {
        (Some(overflows), Some(drops), Some(syns), Some(segments)) => format!(
            "listen overflows {}, listen drops {}, SYN retransmits {}, segment retransmits {}",
            count(overflows),
            count(drops),
            count(syns),
            count(segments),
        ),
        _ => "no kernel counters on this system".to_owned(),
    });
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::ReconnectScenario;

    use super::*;

    #[test]
    fn only_measured_runs_have_measurements_and_warnings() {
        let scenario = ReconnectScenario::builder(3).build().unwrap();
        let run = scenario.run(&Policy::DEFAULT, Seed::new(1));
        let simulated =
            StormReport::new(&scenario).with_strategy("ours, simulated", &Policy::DEFAULT, [(Seed::new(1), &run)]);
        assert!(!is_measured(&simulated) && measurements(&simulated).is_empty());

        let mut measured = Measurements::default();
        (measured.down_s, measured.disconnect_window_s) = (Some(0.25), 0.04);
        (measured.warnings, measured.max_timer_delay_s) = (vec!["late".to_owned(), "busy".to_owned()], 0.002);
        let with_run = |measured| {
            simulated
                .clone()
                .with_strategy("ours", &Policy::DEFAULT, [(Seed::new(1), &run)])
                .with_measurements(measured)
        };
        let storm = with_run(measured.clone());
        let sentences = measurements(&storm);
        assert_eq!(sentences.len(), 1);
        for part in ["ours: ", "lost within 40ms", "down for 250ms", "up to 2ms late", "no kernel counters"] {
            assert!(sentences[0].contains(part), "{part}: {sentences:?}");
        }
        assert!(unreliable_runs(&storm)[0].ends_with("late; busy"));
        measured.warnings.clear();
        (measured.listen_overflows, measured.listen_drops) = (Some(0), Some(5));
        (measured.syn_retransmits, measured.segments_retransmitted) = (Some(6), Some(7));
        let storm = with_run(measured);
        assert!(unreliable_runs(&storm).is_empty());
        assert!(
            measurements(&storm)[0]
                .ends_with("listen overflows 0, listen drops 5, SYN retransmits 6, segment retransmits 7")
        );
    }

    #[test]
    fn a_verdict_names_the_figures_and_the_largest_difference() {
        let compared = |figure: &str, measured, (min, mean, max), agrees| {
            let mut compared = ComparedFigure::default();
            (compared.figure, compared.measured, compared.agrees) = (figure.to_owned(), measured, agrees);
            (compared.simulated_min, compared.simulated, compared.simulated_max) = (Some(min), Some(mean), Some(max));
            compared
        };
        let mut agreement = Agreement::default();
        (agreement.agrees, agreement.simulations) = (Some(true), 8);
        agreement.figures = vec![
            compared("burst_100ms", Some(66.0), (58.0, 60.0, 68.0), true),
            compared("attempts_per_client", Some(1.0), (1.0, 1.0, 1.0), true),
        ];
        assert_eq!(
            verdict(&agreement),
            "agrees with the simulations, at most 10% or noise outside their range: most in any 100ms 66 measured, 60 \
             simulated (58 to 68); attempts per client 1.00 measured, 1.00 simulated; the largest difference is that \
             of most in any 100ms, 10% above the mean of 8 simulations"
        );
        agreement.agrees = Some(false);
        agreement.figures.push(compared("recovered_p99_s", Some(2.0), (4.0, 4.0, 4.0), false));
        assert_eq!(
            verdict(&agreement),
            "differs from the simulations, more than 10% and noise outside their range: recovered p99 2s measured, 4s \
             simulated; the largest difference is that of recovered p99, 50% below the mean of 8 simulations"
        );
        agreement.agrees = None;
        agreement.figures = vec![compared("recovered_p99_s", None, (4.0, 4.0, 4.0), false)];
        assert_eq!(
            verdict(&agreement),
            "no verdict, because the run is unreliable: recovered p99 never measured, 4s simulated"
        );
    }
}
