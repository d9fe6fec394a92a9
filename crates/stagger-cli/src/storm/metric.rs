use core::time::Duration;

use serde_json::Value;
use stagger_sim::storm::ScenarioSpec;

use crate::plan::brief::brief;
use crate::plot::Unit;

/// Metric of a run, identified by its name in the JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) key: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) better: Better,
    pub(crate) visibility: Visibility,
}

/// Kind of a value, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Count,
    Number,
    Seconds,
    Share,
    Bool,
}

/// Which of two values of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    Neither,
}

/// Where a metric is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// In every table, even a narrow one.
    Always,
    /// In tables that are wide enough.
    WithRoom,
    /// In JSON, CSV and HTML only.
    FilesOnly,
}

use Better::{Higher, Lower, Neither};
use Quantity::{Bool, Count, Number, Seconds, Share};
use Visibility::{Always, FilesOnly, WithRoom};

const fn metric(
    key: &'static str,
    heading: &'static str,
    quantity: Quantity,
    better: Better,
    visibility: Visibility,
) -> Metric {
    Metric { key, heading, quantity, better, visibility }
}

const RECONNECT: [Metric; 30] = [
    metric("clients", "clients", Count, Neither, FilesOnly),
    metric("peak_100ms", "peak in 100ms", Count, Lower, Always),
    metric("peak_1s", "peak in 1s", Count, Lower, Always),
    metric("peak_100ms_after_1s", "peak in 100ms after 1s", Count, Lower, FilesOnly),
    metric("overload_s", "overload time", Seconds, Lower, WithRoom),
    metric("attempts", "attempts", Count, Lower, FilesOnly),
    metric("wasted", "wasted attempts", Count, Lower, FilesOnly),
    metric("attempts_per_client", "attempts per client", Number, Lower, Always),
    metric("attempts_p50", "attempts p50", Count, Lower, FilesOnly),
    metric("attempts_p99", "attempts p99", Count, Lower, WithRoom),
    metric("attempts_max", "attempts max", Count, Lower, FilesOnly),
    metric("recovered_p50_s", "recovered p50", Seconds, Lower, Always),
    metric("recovered_p95_s", "recovered p95", Seconds, Lower, FilesOnly),
    metric("recovered_p99_s", "recovered p99", Seconds, Lower, Always),
    metric("recovered_mean_s", "recovered mean", Seconds, Lower, FilesOnly),
    metric("t50_s", "50% back at", Seconds, Lower, FilesOnly),
    metric("t99_s", "99% back at", Seconds, Lower, FilesOnly),
    metric("t100_s", "100% back at", Seconds, Lower, WithRoom),
    metric("connected", "connected", Count, Higher, FilesOnly),
    metric("gave_up", "gave up", Count, Lower, WithRoom),
    metric("unfinished", "unfinished", Count, Lower, FilesOnly),
    metric("peak_in_flight", "peak in flight", Count, Lower, FilesOnly),
    metric("peak_backlog", "peak backlog", Count, Lower, FilesOnly),
    metric("waited_mean_s", "mean wait", Seconds, Lower, FilesOnly),
    metric("fairness_recovered", "recovered p99 / p50", Number, Lower, FilesOnly),
    metric("fairness_attempts", "attempts p99 / p50", Number, Lower, FilesOnly),
    metric("efficiency_attempts", "attempt efficiency", Share, Higher, FilesOnly),
    metric("efficiency_time", "time efficiency", Share, Higher, WithRoom),
    metric("efficiency_mean_time", "mean time efficiency", Share, Higher, FilesOnly),
    metric("bin_s", "bin width", Seconds, Neither, FilesOnly),
];

const FLUID: [Metric; 12] = [
    metric("clients", "clients", Count, Neither, FilesOnly),
    metric("peak_100ms", "peak in 100ms", Count, Lower, Always),
    metric("peak_1s", "peak in 1s", Count, Lower, Always),
    metric("attempts_per_client", "attempts per client", Number, Lower, Always),
    metric("recovered_mean_s", "recovered mean", Seconds, Lower, Always),
    metric("t50_s", "50% back at", Seconds, Lower, Always),
    metric("t99_s", "99% back at", Seconds, Lower, Always),
    metric("t100_s", "100% back at", Seconds, Lower, WithRoom),
    metric("connected_ratio", "connected", Share, Higher, FilesOnly),
    metric("gave_up_ratio", "gave up", Share, Lower, WithRoom),
    metric("peak_backlog", "peak backlog", Count, Lower, FilesOnly),
    metric("bin_s", "bin width", Seconds, Neither, FilesOnly),
];

const OUTAGE: [Metric; 9] = [
    metric("metastable", "metastable", Bool, Lower, Always),
    metric("recovery_s", "recovered after", Seconds, Lower, Always),
    metric("success_ratio", "success", Share, Higher, Always),
    metric("amplification", "attempts per request", Number, Lower, Always),
    metric("peak_1s", "peak in 1s", Count, Lower, Always),
    metric("final_goodput", "final goodput", Share, Higher, WithRoom),
    metric("final_attempts_per_request", "final attempts per request", Number, Lower, WithRoom),
    metric("rejected", "rejected by breakers", Count, Neither, WithRoom),
    metric("bin_s", "bin width", Seconds, Neither, FilesOnly),
];

const OCC: [Metric; 9] = [
    metric("clients", "clients", Count, Neither, FilesOnly),
    metric("calls", "calls", Count, Lower, Always),
    metric("calls_per_client", "calls per client", Number, Lower, Always),
    metric("time_s", "completed at", Seconds, Lower, Always),
    metric("time_per_client", "time / minimum", Number, Lower, WithRoom),
    metric("to_limit", "ratio to limit", Number, Lower, Always),
    metric("calls_to_limit", "calls / minimum", Number, Lower, WithRoom),
    metric("written", "written", Count, Higher, FilesOnly),
    metric("gave_up", "gave up", Count, Lower, WithRoom),
];

/// Returns the metrics of a scenario, in display order.
pub(crate) const fn metrics(spec: &ScenarioSpec) -> &'static [Metric] {
    match spec {
        ScenarioSpec::Reconnect(_) => &RECONNECT,
        ScenarioSpec::Fluid(_) => &FLUID,
        ScenarioSpec::Outage(_) => &OUTAGE,
        ScenarioSpec::Occ(_) => &OCC,
        _ => &[],
    }
}

impl Metric {
    /// Returns the value of a run; `None` if it does not exist.
    pub(crate) fn value(&self, run: &Value) -> Option<f64> {
        let value = run.get(self.key)?;
        value.as_f64().or_else(|| value.as_bool().map(|yes| if yes { 1.0 } else { 0.0 }))
    }

    /// Formats a value for display.
    pub(crate) fn format(&self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return if self.quantity == Seconds { "never" } else { "-" }.to_owned();
        };
        match self.quantity {
            Count if value < 100.0 => Unit::Count.label((value * 10.0).round() / 10.0),
            Count => Unit::Count.label(value.round()),
            Number => format!("{value:.2}"),
            Seconds => brief(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
            Share => format!("{:.1}%", value * 100.0),
            // The mean over several seeds is a share.
            Bool if value <= 0.0 => "no".to_owned(),
            Bool if value >= 1.0 => "yes".to_owned(),
            Bool => format!("{:.0}% of runs", value * 100.0),
        }
    }

    /// Returns whether one value is better than another; a missing one is worse than any.
    pub(crate) fn is_better(&self, a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => match self.better {
                Lower => a < b,
                Higher => a > b,
                Neither => false,
            },
            (Some(_), None) => self.better != Neither,
            (None, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str) -> Metric {
        *RECONNECT.iter().chain(&OUTAGE).find(|metric| metric.key == key).unwrap()
    }

    #[test]
    fn values_are_formatted_briefly() {
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
            assert_eq!(of(key).format(value), want, "{key}");
        }
    }

    #[test]
    fn a_missing_value_is_worse_than_any_other() {
        let p99 = of("recovered_p99_s");
        assert!(
            p99.is_better(Some(1e9), None) && !p99.is_better(None, Some(1e9)) && p99.is_better(Some(1.0), Some(2.0))
        );
        assert!(of("success_ratio").is_better(Some(0.9), Some(0.8)));
    }
}
