//! Metrics by name; nothing at all without the feature `metrics`.

/// The labels of a metric beside `target`.
type Label = (&'static str, &'static str);

#[cfg(feature = "metrics")]
fn labels(target: &str, label: Option<Label>) -> Vec<metrics::Label> {
    let target = metrics::Label::new("target", target.to_owned());
    core::iter::once(target).chain(label.map(|(name, value)| metrics::Label::from_static_parts(name, value))).collect()
}

/// What is at the moment.
#[cfg(feature = "metrics")]
pub(super) fn gauge(name: &'static str, target: &str, label: Option<Label>, value: f64) {
    metrics::gauge!(name, labels(target, label)).set(value);
}

/// What has been counted elsewhere, ever.
#[cfg(feature = "metrics")]
pub(super) fn total(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).absolute(value);
}

/// What has come since it was told last.
#[cfg(feature = "metrics")]
pub(super) fn more(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).increment(value);
}

#[cfg(not(feature = "metrics"))]
pub(super) const fn gauge(_: &'static str, _: &str, _: Option<Label>, _: f64) {}

#[cfg(not(feature = "metrics"))]
pub(super) const fn total(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

#[cfg(not(feature = "metrics"))]
pub(super) const fn more(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

/// 1 for the state that is, 0 for the others.
pub(super) fn one_of(name: &'static str, target: &str, label: &'static str, all: &[&'static str], is: &'static str) {
    for &state in all {
        gauge(name, target, Some((label, state)), f64::from(u8::from(state == is)));
    }
}
