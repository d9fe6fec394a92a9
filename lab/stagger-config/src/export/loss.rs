use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Jitter, Policy};

use super::System;

/// A setting that a system cannot express, and what it does instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Name of the setting in the policy language, or `delays`, `timeout`, `attempt-timeout` and `budget`.
    pub name: &'static str,
    /// The setting as it was asked for, such as `jitter=full`.
    pub setting: String,
    /// What the system does instead, and what you can do.
    pub instead: String,
}

impl fmt::Display for Loss {
    /// Writes `jitter=full: gRPC draws within ±20% of the ceiling`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.instead)
    }
}

impl Loss {
    pub(super) fn new(system: System, name: &'static str, value: impl fmt::Display) -> Self {
        Self { name, setting: format!("{name}={value}"), instead: instead(system, name).to_owned() }
    }
}

/// Returns what a system does in place of a setting, by the name of the setting in the policy language.
#[must_use]
pub fn instead(system: System, name: &str) -> &'static str {
    match (system, name) {
        (System::Grpc, "jitter") => "gRPC draws within ±20% of the ceiling",
        (System::Grpc, "max-attempts") => "gRPC makes at most 5",
        (System::Grpc, "floor") => "gRPC has no minimum delay",
        (System::Grpc, "spread") => "gRPC makes the first attempt immediately",
        (System::Grpc, "max-elapsed") => "set a deadline on the call, which also ends its last attempt",
        (System::Grpc, "hint") => "gRPC waits for exactly the duration of a pushback",
        (System::Grpc, "max-hint") => "gRPC waits for the duration of a pushback, limited only by the deadline",
        (System::Grpc, "max-hint=inf") => "read again, the policy has the default limit of this library",
        (System::Grpc, "throttled-base") => "gRPC waits no longer after RESOURCE_EXHAUSTED",
        (System::Grpc, "local-base") => "gRPC does not distinguish local exhaustion",
        (System::Grpc, "stable-after") => "a gRPC call is not a connection",
        (System::Grpc, "attempt-timeout") => "a channel limits the time of a call and not of an attempt",
        (System::Grpc, "budget") => "gRPC has tokens that failures take and successes return: retryThrottling",
        (_, "jitter") => "Envoy draws whole milliseconds from 0 to below the ceiling",
        (_, "floor") => "Envoy has no minimum delay",
        (_, "spread") => "Envoy makes the first attempt immediately",
        (_, "max-elapsed") => "set the timeout of the route, which also ends the last attempt",
        (System::Envoy, "hint") => "Envoy reads Retry-After only if rate_limited_retry_back_off names the header",
        (_, "hint") => "a VirtualService cannot tell Envoy to read Retry-After",
        (_, "throttled-base") => "Envoy waits no longer after 429",
        (_, "local-base") => "Envoy does not distinguish local exhaustion",
        (_, "stable-after") => "a request is not a connection",
        (_, "budget") => "Envoy limits the retries at once, or their share of the active requests",
        _ => "the system has no such setting",
    }
}

/// Returns the settings in which the policy that a system follows differs from the one that was asked for.
pub(super) fn losses(system: System, requested: &Policy, mapped: &Policy) -> Vec<Loss> {
    fn differing<T: PartialEq + Copy>(requested: T, mapped: T) -> Option<T> {
        (requested != mapped).then_some(requested)
    }
    let loss = |name: &'static str, value: Option<String>| value.map(|value| Loss::new(system, name, value));
    let length = |length: Duration| Compact(length).to_string();
    let attempts = differing(requested.max_attempts(), mapped.max_attempts());
    let (hint, longest_hint) = match system {
        System::Grpc => (
            differing(requested.hint_mode(), mapped.hint_mode()),
            differing(requested.max_hint(), mapped.max_hint()).map(|longest| longest.map_or("inf".to_owned(), length)),
        ),
        // Not read at all, so how it is read does not matter.
        System::Envoy | System::Istio => (Some(requested.hint_mode()), None),
    };
    let listed = [
        loss("jitter", differing(requested.jitter(), mapped.jitter()).map(|jitter| jitter.to_string())),
        loss("max-attempts", attempts.map(|limit| limit.map_or("inf".to_owned(), |limit| limit.to_string()))),
        loss("floor", differing(requested.floor(), mapped.floor()).map(length)),
        loss("spread", differing(requested.spread(), mapped.spread()).map(length)),
        loss("max-elapsed", requested.max_elapsed().map(length)),
        loss("hint", hint.map(|mode| mode.to_string())),
        loss("max-hint", longest_hint),
        loss("throttled-base", differing(requested.throttled_base(), mapped.throttled_base()).map(length)),
        loss("local-base", differing(requested.local_base(), mapped.local_base()).map(length)),
        loss("stable-after", requested.stable_after().map(length)),
    ];
    let mut losses: Vec<Loss> = listed.into_iter().flatten().collect();
    for loss in losses.iter_mut().filter(|loss| loss.setting == "max-hint=inf") {
        loss.instead = instead(system, "max-hint=inf").to_owned();
    }
    let (wanted, found) = (ceilings(requested), ceilings(mapped));
    let compared = wanted.len().min(found.len());
    if wanted[..compared] != found[..compared] {
        let setting = format!("delays up to {}", list(&wanted[..compared]));
        losses.push(Loss { name: "delays", setting, instead: format!("up to {} there", list(&found[..compared])) });
    }
    losses
}

/// Number of delays that are compared: of those behind them, all but those of slowly growing policies have reached the
/// cap.
const COMPARED: u32 = 20;

/// Returns the upper bounds of the delays that a call can have, before jitter.
pub(super) fn ceilings(policy: &Policy) -> Vec<Duration> {
    let plain = policy.to_builder().jitter(Jitter::None).floor(Duration::ZERO).unlimited_elapsed().build();
    let Ok(plain) = plain else { return Vec::new() };
    let retries = policy.max_attempts().map_or(u32::MAX, |attempts| attempts.get() - 1);
    (1..=COMPARED.min(retries)).map_while(|retry| plain.bounds(retry)).map(|(_, ceiling)| ceiling).collect()
}

/// Writes the first few lengths.
fn list(lengths: &[Duration]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = lengths.iter().take(SHOWN).map(|length| Compact(*length).to_string()).collect();
    shown.join(", ") + if lengths.len() > SHOWN { ", …" } else { "" }
}
