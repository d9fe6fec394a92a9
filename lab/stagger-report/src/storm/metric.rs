use core::time::Duration;

use stagger_sim::storm::{Metric, MetricValue, Quantity, VerdictKind};

use stagger_terminal::plan::brief;
use stagger_terminal::plot::Unit;

/// Formats a value of a metric for display: a mean over runs, or `None` if it does not exist.
pub(super) fn format(metric: &Metric, value: Option<f64>) -> String {
    let Some(value) = value else {
        return if metric.quantity == Quantity::Seconds { "never" } else { "-" }.to_owned();
    };
    match metric.quantity {
        Quantity::Count if value < 100.0 => Unit::Count.label((value * 10.0).round() / 10.0),
        Quantity::Count => Unit::Count.label(value.round()),
        Quantity::Seconds => brief(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
        Quantity::Ratio => format!("{:.1}%", value * 100.0),
        // The mean over several seeds is a share.
        Quantity::Bool if value <= 0.0 => "no".to_owned(),
        Quantity::Bool if value >= 1.0 => "yes".to_owned(),
        Quantity::Bool => format!("{:.0}% of runs", value * 100.0),
        Quantity::Verdict => verdict(value).map_or("mixed", VerdictKind::name).to_owned(),
        _ => format!("{value:.2}"),
    }
}

/// Returns the verdict of a run; `None` if the value is a mean over runs and that of no verdict.
fn verdict(mean: f64) -> Option<VerdictKind> {
    VerdictKind::ALL.into_iter().find(|verdict| (MetricValue::Verdict(*verdict).as_f64() - mean).abs() < f64::EPSILON)
}

/// Returns the unit of an axis for a metric.
pub(super) const fn unit(metric: &Metric) -> Unit {
    match metric.quantity {
        Quantity::Seconds => Unit::Seconds,
        Quantity::Ratio => Unit::Share,
        _ => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use stagger_sim::storm::{OutageReport, ReconnectReport};

    use super::*;

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
            let mut metrics = ReconnectReport::METRICS.iter().chain(OutageReport::METRICS);
            assert_eq!(format(metrics.find(|metric| metric.key == key).unwrap(), value), want, "{key}");
        }
    }
}
