//! Metrics by name; no-ops without the feature `metrics`.

/// A label of a metric besides `target`.
type Label = (&'static str, &'static str);

#[cfg(feature = "metrics")]
fn labels(target: &str, label: Option<Label>) -> Vec<metrics::Label> {
    let target = metrics::Label::new("target", target.to_owned());
    core::iter::once(target).chain(label.map(|(name, value)| metrics::Label::from_static_parts(name, value))).collect()
}

/// Sets a gauge.
#[cfg(feature = "metrics")]
pub(super) fn gauge(name: &'static str, target: &str, label: Option<Label>, value: f64) {
    metrics::gauge!(name, labels(target, label)).set(value);
}

/// Sets a counter to a total that is counted elsewhere.
#[cfg(feature = "metrics")]
pub(super) fn absolute(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).absolute(value);
}

/// Increments a counter.
#[cfg(feature = "metrics")]
pub(super) fn increment(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).increment(value);
}

#[cfg(not(feature = "metrics"))]
pub(super) const fn gauge(_: &'static str, _: &str, _: Option<Label>, _: f64) {}

#[cfg(not(feature = "metrics"))]
pub(super) const fn absolute(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

#[cfg(not(feature = "metrics"))]
pub(super) const fn increment(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

/// Sets a gauge per state: 1 for the current one, 0 for the others.
pub(super) fn state_gauges(
    name: &'static str,
    target: &str,
    label: &'static str,
    all: &[&'static str],
    is: &'static str,
) {
    for &state in all {
        gauge(name, target, Some((label, state)), f64::from(u8::from(state == is)));
    }
}
