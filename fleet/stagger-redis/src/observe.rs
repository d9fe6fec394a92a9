//! What a fleet tells: events for a listener; metrics and log lines behind features.

use core::time::Duration;

use crate::registry::Registry;

/// Receives the events of a fleet.
pub(crate) type Listener = Box<dyn Fn(&FleetEvent) + Send + Sync>;

/// What has happened between this process and the store. Each is reported
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetEvent {
    /// There was no reply until the leases ended. Each guard uses its local share from now on.
    StoreLost {
        /// The last error, in words.
        reason: String,
    },
    /// The store has replied again. Guards have leases from now on.
    StoreRestored {
        /// How long the local shares were used.
        after: Duration,
    },
    /// Operator controls were set for the fleet, and are in force in this process.
    ControlsChanged {
        /// The note of the change: its time, author and reason.
        note: String,
    },
    /// Operator controls were set for the fleet that this process cannot apply. The former stay in force.
    ControlsRejected {
        /// What is wrong with them.
        reason: String,
    },
    /// The time of the operator controls is over: every target is enforced.
    ControlsEnded,
    /// Enough processes have their circuit breaker open: that of this process now needs half of the evidence.
    BreakerAdvised {
        /// The target of the breaker.
        target: String,
        /// How many processes have theirs open.
        open: u64,
    },
    /// The fleet has a pause: a process was told to wait, and now this one knows.
    Paused {
        /// The target of the quiet period.
        target: String,
        /// How long the pause still lasts.
        remaining: Duration,
    },
}

/// Gives the description and the unit of every metric of this crate to the recorder of the `metrics` crate. Call it
/// once, after the recorder was installed, along with [`stagger::observe::describe_metrics`].
///
/// ```
/// stagger_redis::describe_metrics();
/// ```
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    stagger::observe::describe_table(include_str!("metrics.md"));
}

/// Records the state of a fleet. Does nothing without the feature `metrics`.
#[cfg(feature = "metrics")]
pub(crate) fn record(namespace: &str, registry: &Registry) {
    use core::sync::atomic::Ordering::Relaxed;
    use std::sync::Arc;

    use metrics::{counter, gauge};

    use crate::guards::admission::AdmissionTarget;
    use crate::guards::breaker::BreakerTarget;
    use crate::guards::quiet::QuietTarget;
    use crate::leases::{TokenTarget, WindowTarget};

    let counts = &registry.counts;
    let labels = [("namespace", namespace.to_owned())];
    gauge!("stagger_fleet_leased", &labels).set(f64::from(u8::from(counts.is_leased.load(Relaxed))));
    gauge!("stagger_fleet_processes", &labels).set(counts.processes.load(Relaxed) as f64);
    counter!("stagger_fleet_reports_total", &labels).absolute(counts.reports.load(Relaxed));
    counter!("stagger_fleet_failures_total", &labels).absolute(counts.failures.load(Relaxed));
    counter!("stagger_fleet_losses_total", &labels).absolute(counts.losses.load(Relaxed));
    let labels_of = |name: &str| [("namespace", namespace.to_owned()), ("target", name.to_owned())];
    registry.for_each(|target: &Arc<TokenTarget>, _| {
        let labels = labels_of(&target.name);
        gauge!("stagger_fleet_tokens_held", &labels).set(target.ledger.held() as f64 / 1e6);
        gauge!("stagger_fleet_tokens_left", &labels).set(target.left.load(Relaxed) as f64 / 1e6);
    });
    registry.for_each(|window: &Arc<WindowTarget>, _| {
        let labels = labels_of(&window.name);
        gauge!("stagger_fleet_window_held", &labels).set(window.ledger.held() as f64);
        gauge!("stagger_fleet_window_left", &labels).set(window.left.load(Relaxed) as f64);
    });
    let now = registry.now();
    if let Some(known) = registry.controls().map(|controls| controls.known()) {
        // Without any reply yet, since the start.
        let unconfirmed = now.saturating_sub(known.confirmed_at.unwrap_or(0)) as f64 / 1e6;
        gauge!("stagger_fleet_controls_unconfirmed_seconds", &labels).set(unconfirmed);
        gauge!("stagger_fleet_controls_version", &labels).set(known.version as f64);
        gauge!("stagger_fleet_controls_obeyed", &labels).set(f64::from(u8::from(known.is_obeyed)));
    }
    registry.for_each(|admission: &Arc<AdmissionTarget>, _| {
        let (labels, seen) = (labels_of(&admission.name), admission.queue.snapshot(registry.now_nanos()));
        gauge!("stagger_fleet_admission_share", &labels).set(seen.share as f64 / 1e6);
        gauge!("stagger_fleet_admission_wait_seconds", &labels).set(seen.next_in as f64 / 1e9);
        counter!("stagger_fleet_admission_admitted_total", &labels).absolute(seen.admitted);
        counter!("stagger_fleet_admission_reserved_total", &labels).absolute(seen.reserved);
        counter!("stagger_fleet_admission_deferred_total", &labels).absolute(seen.deferred);
    });
    registry.for_each(|breaker: &Arc<BreakerTarget>, _| {
        let labels = labels_of(&breaker.name);
        gauge!("stagger_fleet_breakers_open", &labels).set(breaker.opinion.open() as f64);
        gauge!("stagger_fleet_breaker_advised", &labels).set(f64::from(u8::from(breaker.opinion.is_advised())));
    });
    registry.for_each(|quiet: &Arc<QuietTarget>, _| {
        let left = quiet.pause.left(now) as f64 / 1e6;
        gauge!("stagger_fleet_quiet_remaining_seconds", &labels_of(&quiet.name)).set(left);
    });
}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn record(_: &str, _: &Registry) {}

/// Logs an event. Does nothing without the feature `tracing`.
#[cfg(feature = "tracing")]
pub(crate) fn tell(namespace: &str, event: &FleetEvent) {
    match event {
        FleetEvent::StoreLost { reason } => {
            tracing::warn!(target: "stagger", namespace, reason, "store lost, local shares in use");
        }
        FleetEvent::StoreRestored { after } => {
            tracing::info!(target: "stagger", namespace, after_s = after.as_secs_f64(), "store restored");
        }
        FleetEvent::ControlsChanged { note } => {
            tracing::warn!(target: "stagger", namespace, note, "operator controls changed");
        }
        FleetEvent::ControlsRejected { reason } => {
            tracing::warn!(
                target: "stagger", namespace, reason,
                "operator controls rejected, the former stay in force"
            );
        }
        FleetEvent::ControlsEnded => {
            tracing::warn!(target: "stagger", namespace, "operator controls ended, all targets are enforced");
        }
        FleetEvent::BreakerAdvised { target, open } => {
            tracing::info!(
                target: "stagger", namespace, guard = target, open,
                "breakers of the fleet open, half of the evidence is enough"
            );
        }
        FleetEvent::Paused { target, remaining } => {
            let remaining_s = remaining.as_secs_f64();
            tracing::info!(target: "stagger", namespace, guard = target, remaining_s, "fleet paused");
        }
    }
}

#[cfg(not(feature = "tracing"))]
pub(crate) const fn tell(_: &str, _: &FleetEvent) {}
