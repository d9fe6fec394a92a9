use core::fmt::{self, Write as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use metrics::with_local_recorder;
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tracing::field::{Field, Visit};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Records the metrics that this thread emits.
pub(super) struct Metrics {
    recorder: DebuggingRecorder,
    snapshotter: Snapshotter,
}

/// The current value of one metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricValue {
    pub(super) kind: &'static str,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let recorder = DebuggingRecorder::new();
        Self { snapshotter: recorder.snapshotter(), recorder }
    }

    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        with_local_recorder(&self.recorder, work)
    }

    /// Returns every metric with its name, a histogram as the number of its samples. Resets everything, so that the
    /// next call returns only what was recorded since.
    pub(super) fn all(&self) -> Vec<(String, MetricValue)> {
        let metrics = self.snapshotter.snapshot().into_vec();
        let seen = metrics.into_iter().map(|(key, _, _, value)| {
            let kind = match key.kind() {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            let labels = key.key().labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect();
            let value = match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(values) => values.len() as f64,
            };
            (key.key().name().to_owned(), MetricValue { kind, labels, value })
        });
        seen.collect()
    }

    /// Returns the values of a target's metrics by name and by the value of the other label ("" if there is none).
    pub(super) fn values(&self, target: &str) -> BTreeMap<(String, String), f64> {
        let of_target =
            |(_, seen): &(String, MetricValue)| seen.labels.get("target").is_some_and(|name| name == target);
        let value = |(name, seen): (String, MetricValue)| {
            let other = seen.labels.into_iter().find(|(key, _)| key != "target");
            ((name, other.map_or_else(String::new, |(_, value)| value)), seen.value)
        };
        self.all().into_iter().filter(of_target).map(value).collect()
    }
}

/// Collects the tracing events of this thread, one line each.
#[derive(Clone)]
pub(super) struct Logs {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Default for Logs {
    fn default() -> Self {
        Self::at(Level::TRACE)
    }
}

impl Logs {
    /// Collects events of this level and of more severe ones.
    pub(super) fn at(level: Level) -> Self {
        Self { level, lines: Arc::default() }
    }

    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        with_default(self.clone(), work)
    }

    /// Returns the lines collected since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.lines.lock().unwrap())
    }

    pub(super) fn messages(&self) -> BTreeSet<String> {
        self.take().iter().filter_map(|line| line.split('|').nth(1).map(str::to_owned)).collect()
    }
}

impl Subscriber for Logs {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "stagger" && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level();
        self.lines.lock().unwrap().push(format!("{level}|{}|{}", line.message, line.fields.trim_start()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => write!(self.fields, " {name}={value:?}").unwrap(),
        }
    }
}
