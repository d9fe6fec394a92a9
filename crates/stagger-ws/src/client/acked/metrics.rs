/// The metrics of a window: its part of all unacknowledged messages of a target, and how many messages were sent again.
#[derive(Debug)]
pub(super) struct WindowMetrics {
    #[cfg(feature = "metrics")]
    unacked: metrics::Gauge,
    #[cfg(feature = "metrics")]
    resent: metrics::Counter,
}

#[cfg(feature = "metrics")]
impl WindowMetrics {
    pub(super) fn new(target: &str) -> Self {
        Self {
            unacked: metrics::gauge!("stagger_ws_unacked", "target" => target.to_owned()),
            resent: metrics::counter!("stagger_ws_resent_total", "target" => target.to_owned()),
        }
    }

    pub(super) fn added(&self) {
        self.unacked.increment(1.0);
    }

    #[allow(clippy::cast_precision_loss, reason = "a window of 2^52 messages fits nowhere")]
    pub(super) fn removed(&self, messages: usize) {
        self.unacked.decrement(messages as f64);
    }

    pub(super) fn resent(&self) {
        self.resent.increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
impl WindowMetrics {
    pub(super) const fn new(_: &str) -> Self {
        Self {}
    }

    pub(super) const fn added(&self) {}

    pub(super) const fn removed(&self, _: usize) {}

    pub(super) const fn resent(&self) {}
}
