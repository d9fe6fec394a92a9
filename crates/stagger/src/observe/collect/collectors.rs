//! Guards that are polled: their values each time, and an event if they have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use stagger_core::Instant;
use stagger_core::breaker::{BreakerSnapshot, BreakerState, CircuitBreaker};
use stagger_core::budget::{ControlMode, ControlSetting, ControlSnapshot};

use super::record::{absolute, gauge, state_gauges};
use crate::control::RetryControls;

pub(super) struct BreakerCollector {
    target: String,
    breaker: Arc<CircuitBreaker>,
    was: BreakerState,
    transitions: u64,
}

impl BreakerCollector {
    pub(super) fn new(target: &str, breaker: Arc<CircuitBreaker>) -> Self {
        Self { target: target.to_owned(), breaker, was: BreakerState::Closed, transitions: 0 }
    }

    pub(super) fn record(&mut self, now: Instant) {
        let target = &*self.target;
        let seen = self.breaker.snapshot(&now);
        let states: Vec<_> = BreakerState::ALL.iter().map(|state| state.name()).collect();
        state_gauges("stagger_breaker_state", target, "state", &states, seen.state.name());
        absolute("stagger_breaker_transitions_total", target, None, seen.transitions);
        absolute("stagger_breaker_rejections_total", target, None, seen.rejections);
        if seen.transitions != self.transitions {
            log_transition(target, &seen, self.was, seen.transitions.wrapping_sub(self.transitions));
        }
        self.was = seen.state;
        self.transitions = seen.transitions;
    }
}

pub(super) struct ControlCollector {
    controls: RetryControls,
    /// The latest known setting of each target.
    settings: BTreeMap<Arc<str>, ControlSetting>,
}

impl ControlCollector {
    pub(super) const fn new(controls: RetryControls) -> Self {
        Self { controls, settings: BTreeMap::new() }
    }

    pub(super) fn record(&mut self) {
        let modes: Vec<_> = ControlMode::ALL.iter().map(|mode| mode.name()).collect();
        for (target, seen) in self.controls.snapshots() {
            state_gauges("stagger_control_mode", &target, "mode", &modes, seen.mode.name());
            gauge("stagger_control_share", &target, None, seen.share.as_f64());
            for (cause, rejections) in causes(&seen) {
                absolute("stagger_control_rejections_total", &target, Some(("cause", cause)), rejections);
            }
            let is = ControlSetting::new(seen.mode, seen.share);
            let was = self.settings.get(&target).copied().unwrap_or_default();
            if is != was {
                log_control_change(&target, is, was);
                self.settings.insert(target, is);
            }
        }
    }
}

/// Returns why retries were rejected, and how many; `observed` counts those that were only observed, and passed.
const fn causes(seen: &ControlSnapshot) -> [(&'static str, u64); 4] {
    [
        ("guards", seen.rejected),
        ("observed", seen.would_have_rejected),
        ("share", seen.limited),
        ("no_retries", seen.stopped),
    ]
}

#[cfg(feature = "tracing")]
fn log_transition(target_name: &str, seen: &BreakerSnapshot, was: BreakerState, transitions: u64) {
    let state = seen.state.name();
    let was = was.name();
    let cause = seen.cause.name();
    if matches!(seen.state, BreakerState::Open | BreakerState::ForcedOpen) {
        tracing::warn!(target: "stagger", target_name, state, was, cause, transitions, "breaker changed");
    } else {
        tracing::info!(target: "stagger", target_name, state, was, cause, transitions, "breaker changed");
    }
}

#[cfg(feature = "tracing")]
fn log_control_change(target_name: &str, is: ControlSetting, was: ControlSetting) {
    let setting = is.to_string();
    let is_normal = is == ControlSetting::default();
    let was = was.to_string();
    if is_normal {
        tracing::info!(target: "stagger", target_name, setting, was, "operator control changed");
    } else {
        tracing::warn!(target: "stagger", target_name, setting, was, "operator control changed");
    }
}

#[cfg(not(feature = "tracing"))]
const fn log_transition(_: &str, _: &BreakerSnapshot, _: BreakerState, _: u64) {}

#[cfg(not(feature = "tracing"))]
const fn log_control_change(_: &str, _: ControlSetting, _: ControlSetting) {}
