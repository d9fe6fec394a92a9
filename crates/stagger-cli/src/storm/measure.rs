use core::time::Duration;

use serde_json::Value;
use stagger_sim::storm::ScenarioSpec;

use crate::plan::brief::brief;
use crate::plot::Unit;

/// A figure of a run, by the name that it has in the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) key: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) best: Best,
    pub(crate) place: Place,
}

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Count,
    Number,
    Seconds,
    Share,
    Verdict,
}

/// Which of several figures is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Best {
    Least,
    Most,
    Neither,
}

/// Where a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Also where there is little room.
    Always,
    /// In tables with room for it.
    WithRoom,
    /// In files alone.
    Files,
}

use Best::{Least, Most, Neither};
use Place::{Always, Files, WithRoom};
use Quantity::{Count, Number, Seconds, Share, Verdict};

const fn measure(key: &'static str, heading: &'static str, quantity: Quantity, best: Best, place: Place) -> Measure {
    Measure { key, heading, quantity, best, place }
}

const RECONNECT: [Measure; 30] = [
    measure("clients", "clients", Count, Neither, Files),
    measure("peak_100ms", "peak in 100ms", Count, Least, Always),
    measure("peak_1s", "peak in 1s", Count, Least, Always),
    measure("peak_100ms_after_1s", "peak in 100ms after 1s", Count, Least, Files),
    measure("overload_s", "overload", Seconds, Least, WithRoom),
    measure("attempts", "attempts", Count, Least, Files),
    measure("wasted", "attempts in vain", Count, Least, Files),
    measure("attempts_per_client", "attempts each", Number, Least, Always),
    measure("attempts_p50", "attempts p50", Count, Least, Files),
    measure("attempts_p99", "attempts p99", Count, Least, WithRoom),
    measure("attempts_max", "most attempts", Count, Least, Files),
    measure("recovered_p50_s", "recovered p50", Seconds, Least, Always),
    measure("recovered_p95_s", "recovered p95", Seconds, Least, Files),
    measure("recovered_p99_s", "recovered p99", Seconds, Least, Always),
    measure("recovered_mean_s", "recovered mean", Seconds, Least, Files),
    measure("t50_s", "half back at", Seconds, Least, Files),
    measure("t99_s", "99% back at", Seconds, Least, Files),
    measure("t100_s", "all back at", Seconds, Least, WithRoom),
    measure("connected", "connected", Count, Most, Files),
    measure("gave_up", "gave up", Count, Least, WithRoom),
    measure("unfinished", "unfinished", Count, Least, Files),
    measure("peak_in_flight", "peak in flight", Count, Least, Files),
    measure("peak_backlog", "peak backlog", Count, Least, Files),
    measure("waited_mean_s", "waited mean", Seconds, Least, Files),
    measure("fairness_recovered", "recovered p99 / p50", Number, Least, Files),
    measure("fairness_attempts", "attempts p99 / p50", Number, Least, Files),
    measure("efficiency_attempts", "efficiency: attempts", Share, Most, Files),
    measure("efficiency_time", "efficiency: time", Share, Most, WithRoom),
    measure("efficiency_mean_time", "efficiency: mean time", Share, Most, Files),
    measure("bin_s", "bin", Seconds, Neither, Files),
];

const FLUID: [Measure; 12] = [
    measure("clients", "clients", Count, Neither, Files),
    measure("peak_100ms", "peak in 100ms", Count, Least, Always),
    measure("peak_1s", "peak in 1s", Count, Least, Always),
    measure("attempts_per_client", "attempts each", Number, Least, Always),
    measure("recovered_mean_s", "recovered mean", Seconds, Least, Always),
    measure("t50_s", "half back at", Seconds, Least, Always),
    measure("t99_s", "99% back at", Seconds, Least, Always),
    measure("t100_s", "all back at", Seconds, Least, WithRoom),
    measure("connected_ratio", "connected", Share, Most, Files),
    measure("gave_up_ratio", "gave up", Share, Least, WithRoom),
    measure("peak_backlog", "peak backlog", Count, Least, Files),
    measure("bin_s", "bin", Seconds, Neither, Files),
];

const OUTAGE: [Measure; 9] = [
    measure("metastable", "stays down", Verdict, Least, Always),
    measure("recovery_s", "recovered after", Seconds, Least, Always),
    measure("success_ratio", "success", Share, Most, Always),
    measure("amplification", "attempts each", Number, Least, Always),
    measure("peak_1s", "peak in 1s", Count, Least, Always),
    measure("final_goodput", "goodput at the end", Share, Most, WithRoom),
    measure("final_attempts_per_request", "attempts each at the end", Number, Least, WithRoom),
    measure("rejected", "refused by breakers", Count, Neither, WithRoom),
    measure("bin_s", "bin", Seconds, Neither, Files),
];

const OCC: [Measure; 9] = [
    measure("clients", "clients", Count, Neither, Files),
    measure("calls", "calls", Count, Least, Always),
    measure("calls_per_client", "calls each", Number, Least, Always),
    measure("time_s", "all done at", Seconds, Least, Always),
    measure("time_per_client", "time of the least", Number, Least, WithRoom),
    measure("to_limit", "to the limit", Number, Least, Always),
    measure("calls_to_limit", "calls to the limit", Number, Least, WithRoom),
    measure("written", "written", Count, Most, Files),
    measure("gave_up", "gave up", Count, Least, WithRoom),
];

/// The figures that a scenario gives, in the order in which they are shown.
pub(crate) const fn measures(scene: &ScenarioSpec) -> &'static [Measure] {
    match scene {
        ScenarioSpec::Reconnect(_) => &RECONNECT,
        ScenarioSpec::Fluid(_) => &FLUID,
        ScenarioSpec::Outage(_) => &OUTAGE,
        ScenarioSpec::Occ(_) => &OCC,
        _ => &[],
    }
}

impl Measure {
    /// The figure of a run; `None` if it never came to be.
    pub(crate) fn read(&self, run: &Value) -> Option<f64> {
        let value = run.get(self.key)?;
        value.as_f64().or_else(|| value.as_bool().map(|yes| if yes { 1.0 } else { 0.0 }))
    }

    /// A figure for people.
    pub(crate) fn show(&self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return if self.quantity == Seconds { "never" } else { "-" }.to_owned();
        };
        match self.quantity {
            Count if value < 100.0 => Unit::Count.label((value * 10.0).round() / 10.0),
            Count => Unit::Count.label(value.round()),
            Number => format!("{value:.2}"),
            Seconds => brief(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
            Share => format!("{:.1}%", value * 100.0),
            // Of several seeds, the share that stays down.
            Verdict if value <= 0.0 => "no".to_owned(),
            Verdict if value >= 1.0 => "yes".to_owned(),
            Verdict => format!("{:.0}% of runs", value * 100.0),
        }
    }

    /// Whether one is better than the other; what never came to be is worse than everything.
    pub(crate) fn is_better(&self, one: Option<f64>, other: Option<f64>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => match self.best {
                Least => one < other,
                Most => one > other,
                Neither => false,
            },
            (Some(_), None) => self.best != Neither,
            (None, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str) -> Measure {
        *RECONNECT.iter().chain(&OUTAGE).find(|measure| measure.key == key).unwrap()
    }

    #[test]
    fn figures_are_read_at_a_glance() {
        for (key, value, want) in [
            ("peak_1s", Some(17_980.0), "17,980"),
            ("peak_1s", Some(1_234.4), "1,234"),
            ("attempts_p99", Some(6.5), "6.5"),
            ("attempts_per_client", Some(4.0), "4.00"),
            ("recovered_p99_s", Some(15.23), "15.2s"),
            ("recovered_p99_s", None, "never"),
            ("efficiency_time", None, "-"),
            ("success_ratio", Some(0.98765), "98.8%"),
            ("metastable", Some(1.0), "yes"),
            ("metastable", Some(0.5), "50% of runs"),
        ] {
            assert_eq!(of(key).show(value), want, "{key}");
        }
    }

    #[test]
    fn never_is_worse_than_late() {
        let p99 = of("recovered_p99_s");
        assert!(
            p99.is_better(Some(1e9), None) && !p99.is_better(None, Some(1e9)) && p99.is_better(Some(1.0), Some(2.0))
        );
        assert!(of("success_ratio").is_better(Some(0.9), Some(0.8)));
    }
}
