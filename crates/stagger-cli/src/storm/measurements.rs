use core::time::Duration;

use stagger_sim::storm::{Measured, Storm};

use crate::plan::brief::brief;
use crate::plot::Unit;

/// Whether anything of it was really made.
pub(crate) fn is_measured(storm: &Storm) -> bool {
    measured_runs(storm).next().is_some()
}

/// What was seen of the machine while a storm was really made, a sentence for each run.
pub(crate) fn measurements(storm: &Storm) -> Vec<String> {
    measured_runs(storm).map(|(name, measured)| format!("{name}: {}", describe(measured))).collect()
}

/// Which runs are doubtful, and why, a sentence for each.
pub(crate) fn unreliable_runs(storm: &Storm) -> Vec<String> {
    let doubted = measured_runs(storm).filter(|(_, measured)| !measured.doubts.is_empty());
    doubted
        .map(|(name, measured)| {
            let doubts = measured.doubts.join("; ");
            format!("doubtful: {name}: the machine may have shaped it, and not the policy: {doubts}")
        })
        .collect()
}

fn measured_runs(storm: &Storm) -> impl Iterator<Item = (&str, &Measured)> {
    storm
        .strategies
        .iter()
        .flat_map(|strategy| strategy.runs.iter().filter_map(|run| Some((&*strategy.name, run.measured.as_ref()?))))
}

fn describe(measured: &Measured) -> String {
    let time = |seconds: f64| brief(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    let count = |number: u64| Unit::Count.label(number as f64);
    let mut parts = vec![format!("connections lost within {}", time(measured.lost_within_s))];
    if let Some(down) = measured.down_s {
        parts.push(format!("server down for {}", time(down)));
    }
    if let Some(server) = &measured.server {
        let (arrived, refused) = (count(server.arrived), count(server.refused));
        parts.push(format!("the server saw {arrived} attempts and refused {refused}"));
    }
    parts.push(format!("timers up to {} late", time(measured.timers_late_s)));
    if let Some(share) = measured.busiest_second {
        parts.push(format!("processors busy for {:.0}% of the busiest second", share * 100.0));
    }
    let dropped = measured.listen_overflows.zip(measured.listen_drops);
    parts.push(match (dropped, measured.syn_retransmits, measured.segments_retransmitted) {
        (Some((overflows, drops)), Some(syns), Some(segments)) => format!(
            "listen overflows {}, listen drops {}, SYNs sent again {}, segments {}",
            count(overflows),
            count(drops),
            count(syns),
            count(segments),
        ),
        _ => "what the kernel dropped or sent again is not known on this system".to_owned(),
    });
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::Scenario;

    use super::*;

    #[test]
    fn what_was_measured_is_told_with_its_doubts_and_what_was_simulated_is_not() {
        let scenario = Scenario::builder(3).build().unwrap();
        let run = scenario.run(&Policy::DEFAULT, Seed::new(1));
        let simulated = Storm::new(&scenario).with("ours, simulated", &Policy::DEFAULT, [(Seed::new(1), &run)]);
        assert!(!is_measured(&simulated) && measurements(&simulated).is_empty());

        let mut measured = Measured::default();
        (measured.down_s, measured.lost_within_s) = (Some(0.25), 0.04);
        (measured.doubts, measured.timers_late_s) = (vec!["late".to_owned(), "busy".to_owned()], 0.002);
        let made =
            |measured| simulated.clone().with("ours", &Policy::DEFAULT, [(Seed::new(1), &run)]).measured(measured);
        let storm = made(measured.clone());
        let told = measurements(&storm);
        assert_eq!(told.len(), 1);
        for part in ["ours: ", "lost within 40ms", "down for 250ms", "up to 2ms late", "not known on this system"] {
            assert!(told[0].contains(part), "{part}: {told:?}");
        }
        assert!(unreliable_runs(&storm)[0].ends_with("late; busy"));
        measured.doubts.clear();
        (measured.listen_overflows, measured.listen_drops) = (Some(0), Some(5));
        (measured.syn_retransmits, measured.segments_retransmitted) = (Some(6), Some(7));
        let storm = made(measured);
        assert!(unreliable_runs(&storm).is_empty());
        assert!(measurements(&storm)[0].ends_with("listen overflows 0, listen drops 5, SYNs sent again 6, segments 7"));
    }
}
