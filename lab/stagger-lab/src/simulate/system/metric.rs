use stagger_report::metric::{Metric, VerdictEntry};
use stagger_sim::storm::Quantity;

use super::document::{Document, RunEntry};

/// Returns the figures of a run: of the system, of the services as `NAME.figure`, and of the edges as `FROM/TO.figure`.
pub(super) fn metrics(document: &Document, run: &RunEntry) -> Vec<Metric> {
    use Quantity::{Bool, Count, Number, Ratio, Seconds, Verdict};
    let verdict = VerdictEntry::ALL.iter().position(|(_, verdict)| *verdict == run.verdict);
    let mut all: Vec<(String, Quantity, Option<f64>)> = [
        ("verdict", Verdict, verdict.map(|position| position as f64)),
        ("metastable", Bool, Some(f64::from(u8::from(run.metastable)))),
        ("down_before_fault", Bool, Some(f64::from(u8::from(run.down_before_fault)))),
        ("fell_at_s", Seconds, run.fell_at_s),
        ("recovery_s", Seconds, run.recovery_s),
        ("success_ratio", Ratio, Some(run.success_ratio)),
        ("success_ratio_during_fault", Ratio, Some(run.success_ratio_during_fault)),
        ("final_success_ratio", Ratio, Some(run.final_success_ratio)),
        ("amplification", Number, Some(run.amplification)),
    ]
    .map(|(key, quantity, value)| (key.to_owned(), quantity, value))
    .into();
    for (service, of) in document.system.services.iter().zip(&run.services) {
        let figures = [
            ("throughput", Number, of.throughput),
            ("goodput", Number, of.goodput),
            ("wasted_ratio", Ratio, of.wasted_ratio),
            ("refused", Count, of.refused as f64),
            ("dropped", Count, of.dropped as f64),
            ("peak", Count, f64::from(of.peak)),
        ];
        let figures = figures.map(|(key, quantity, value)| (format!("{}.{key}", service.name), quantity, Some(value)));
        all.extend(figures);
    }
    for (edge, of) in document.system.edges.iter().zip(&run.edges) {
        let figures = [
            ("attempts_per_request", Number, of.attempts_per_request),
            ("attempts_per_request_during_fault", Number, of.attempts_per_request_during_fault),
            ("timed_out", Count, of.timed_out as f64),
            ("cached", Count, of.cached as f64),
        ];
        let name = format!("{}/{}", edge.from, edge.to);
        all.extend(figures.map(|(key, quantity, value)| (format!("{name}.{key}"), quantity, Some(value))));
    }
    all.into_iter().map(|(key, quantity, value)| Metric { key, quantity, value }).collect()
}

/// Returns the mean of a figure over the runs; `None` if it does not exist for at least one of them.
pub(super) fn mean<T>(runs: &[RunEntry], of: impl Fn(&RunEntry) -> T) -> Option<f64>
where
    T: Into<Option<f64>>,
{
    let sum: Option<f64> = runs.iter().map(|run| of(run).into()).sum();
    sum.filter(|_| !runs.is_empty()).map(|sum| sum / runs.len() as f64)
}
