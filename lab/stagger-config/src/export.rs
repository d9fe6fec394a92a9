//! Policies as configurations of other systems: what can be said exactly, and a list of what cannot.
//!
//! ```
//! use stagger_config::export::{Circumstances, System, export};
//! use stagger_core::Policy;
//!
//! let policy: Policy = "exponential base=25ms cap=1s max-attempts=4".parse()?;
//! let exported = export(System::Istio, &policy, &Circumstances::default())?;
//! assert!(exported.text.contains("attempts: 3"));
//! // Istio has no field for the cap: it is ten times the base.
//! assert!(exported.losses.iter().any(|loss| loss.to_string().starts_with("jitter=full: ")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::profile::ENVOY;
use stagger_core::schedule::Backoff;
use stagger_core::text::Compact;
use stagger_core::{Jitter, Policy, Ratio};
use stagger_http::grpc::Codes;
use stagger_http::service_config::{
    AttemptPolicy, MethodConfig, MethodName, MethodRetries, RetryThrottling, ServiceConfig, ServiceConfigError,
};

use crate::entry::RetryBudget;
use crate::formats::ISTIO_UNLIMITED;
use crate::units::{to_go, to_protobuf};

/// A system that policies are exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum System {
    /// gRPC service config.
    Grpc,
    /// Envoy: a route, and a cluster if there is a budget.
    Envoy,
    /// Istio: a `VirtualService`, and a `DestinationRule` if there is a budget.
    Istio,
}

/// What a configuration says beside the policy. By default, nothing: the system's defaults apply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circumstances {
    attempt_timeout: Option<Duration>,
    timeout: Option<Duration>,
    budget: Option<RetryBudget>,
}

impl Circumstances {
    /// Sets the time limit of one attempt. Default: the system's.
    #[must_use]
    pub const fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    /// Sets the time limit of all attempts and delays together. Default: the system's, which is 15 s in Envoy and none
    /// in the others.
    #[must_use]
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets what limits the retries of all calls together. Default: the system's, which is three retries at once in
    /// Envoy and nothing in the others.
    #[must_use]
    pub const fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }
}

/// A policy as the configuration of another system.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// The configuration.
    pub text: String,
    /// What the system does differently than the policy and the circumstances say.
    pub losses: Vec<Loss>,
    /// What remains to be done with the text.
    pub next_steps: Vec<&'static str>,
}

/// Why a policy has no counterpart in a system, each reason with a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    problems: Vec<String>,
}

impl ExportError {
    /// Returns `value` if there are no problems, and the error otherwise.
    fn unless<T>(problems: impl IntoIterator<Item = Option<&'static str>>, value: T) -> Result<T, Self> {
        let problems: Vec<_> = problems.into_iter().flatten().map(str::to_owned).collect();
        if problems.is_empty() { Ok(value) } else { Err(Self { problems }) }
    }

    /// Returns the reasons.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl core::error::Error for ExportError {}

impl From<ServiceConfigError> for ExportError {
    fn from(error: ServiceConfigError) -> Self {
        Self { problems: error.problems().map(str::to_owned).collect() }
    }
}

/// Writes a policy as the configuration of a system, with its circumstances.
///
/// [`read`](crate::read) of the text yields the policy in its attempts and delays, and the circumstances, except for
/// what is listed as lost.
///
/// # Errors
/// [`ExportError`] if the policy makes no retries, or has delays or no limit of attempts for which the system has no
/// field.
pub fn export(system: System, policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    match system {
        System::Grpc => export_grpc(policy, circumstances),
        System::Envoy => export_envoy(policy, circumstances),
        System::Istio => export_istio(policy, circumstances),
    }
}

/// A setting that a system cannot express, and what it does instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Name of the setting in the policy language, or `delays`, `timeout`, `attempt-timeout` and `budget`.
    pub name: &'static str,
    text: String,
}

impl fmt::Display for Loss {
    /// Writes the setting as it was asked for, what the system does instead, and what you can do: `jitter=full: gRPC
    /// draws within ±20% of the ceiling`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Loss {
    fn new(system: System, name: &'static str, value: impl fmt::Display) -> Self {
        Self { name, text: format!("{name}={value}: {}", instead(system, name)) }
    }
}

/// Returns what a system does in place of a setting, by the name of the setting in the policy language. For gRPC only
/// what is not in a policy: the library that writes service configs has the rest.
fn instead(system: System, name: &str) -> &'static str {
    match (system, name) {
        (System::Grpc, "attempt-timeout") => "a channel limits the time of a call and not of an attempt",
        (System::Grpc, "budget") => "gRPC has tokens that failures take and successes return: retryThrottling",
        (System::Istio, "timeout" | "attempt-timeout") => "Istio takes whole milliseconds; round it",
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

/// Returns the settings in which the policy that Envoy follows differs from the one that was asked for.
fn losses(system: System, requested: &Policy, mapped: &Policy) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut lose = |name, value: String| losses.push(Loss::new(system, name, value));
    let length = |length: Duration| Compact(length).to_string();
    if requested.jitter() != mapped.jitter() {
        lose("jitter", requested.jitter().to_string());
    }
    if requested.floor() != mapped.floor() {
        lose("floor", length(requested.floor()));
    }
    if requested.spread() != mapped.spread() {
        lose("spread", length(requested.spread()));
    }
    if let Some(limit) = requested.max_elapsed() {
        lose("max-elapsed", length(limit));
    }
    // Hints are not read at all, so how they are read does not matter.
    lose("hint", requested.hint_mode().to_string());
    if requested.throttled_base() != mapped.throttled_base() {
        lose("throttled-base", length(requested.throttled_base()));
    }
    if requested.local_base() != mapped.local_base() {
        lose("local-base", length(requested.local_base()));
    }
    if let Some(lived) = requested.stable_after() {
        lose("stable-after", length(lived));
    }
    let (wanted, found) = (ceilings(requested), ceilings(mapped));
    let compared = wanted.len().min(found.len());
    if wanted[..compared] != found[..compared] {
        let text = format!("delays up to {}: up to {} there", list(&wanted[..compared]), list(&found[..compared]));
        losses.push(Loss { name: "delays", text });
    }
    losses
}

/// Number of delays that are compared: of those behind them, all but those of slowly growing policies have reached the
/// cap.
const COMPARED: u32 = 20;

/// Returns the upper bounds of the delays that a call can have, before jitter.
fn ceilings(policy: &Policy) -> Vec<Duration> {
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

/// A policy contains neither status codes nor method names.
const GRPC_NEXT_STEPS: [&str; 2] = [
    "this config retries every method after UNAVAILABLE; restrict it to idempotent methods, and set their status codes",
    "pass the config to the channel, which retries by itself and knows what the server has processed; \
     do not retry above it",
];

fn export_grpc(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let (retries, unmapped) = MethodRetries::from_policy(policy, Codes::UNAVAILABLE)?;
    let mut losses: Vec<Loss> =
        unmapped.iter().map(|setting| Loss { name: setting.name(), text: setting.to_string() }).collect();
    let mut method = MethodConfig::new([MethodName::All], AttemptPolicy::Retry(retries));
    if let Some(limit) = circumstances.timeout {
        method = method.with_timeout(limit);
    }
    let mut config = ServiceConfig::new(vec![method])?;
    if let Some(limit) = circumstances.attempt_timeout {
        losses.push(Loss::new(System::Grpc, "attempt-timeout", Compact(limit)));
    }
    match circumstances.budget {
        None | Some(RetryBudget::Unlimited) => {}
        Some(budget) => match throttling(budget) {
            Some(throttling) => config = config.with_throttling(throttling),
            None => losses.push(Loss::new(System::Grpc, "budget", budget)),
        },
    }
    Ok(Exported { text: format!("{config}\n"), losses, next_steps: GRPC_NEXT_STEPS.to_vec() })
}

/// Returns the budget as gRPC has it, if it stays as it is: whole tokens, and a ratio in whole thousandths.
fn throttling(budget: RetryBudget) -> Option<RetryThrottling> {
    let RetryBudget::Throttle { tokens, ratio } = budget else { return None };
    let thousandths = (ratio * 1e3).round();
    let is_kept = tokens.fract() == 0.0 && (ratio * 1e3 - thousandths).abs() < 1e-6;
    if !is_kept || !(1.0..=1_000.0).contains(&tokens) || !(1.0..=1e6).contains(&thousandths) {
        return None;
    }
    RetryThrottling::new(tokens as u32, Ratio::millionths(thousandths as u32 * 1_000)).ok()
}

/// Conditions under which no server has processed the request. A policy does not contain conditions.
const RETRY_ON: &str = "connect-failure,refused-stream,reset-before-request";

const ENVOY_NEXT_STEPS: [&str; 2] = [
    "this route retries what no server has processed; add conditions, such as gateway-error, only where requests are \
     idempotent",
    "merge the fields into your route and cluster; do not retry above this proxy",
];

/// What Envoy's fields say.
struct EnvoyFields {
    retries: u32,
    base: Duration,
    cap: Duration,
}

impl EnvoyFields {
    /// Maps a policy, whose cap may be fixed by its base.
    fn from_policy(
        system: System,
        policy: &Policy,
        cap: impl FnOnce(Duration) -> Option<Duration>,
    ) -> Result<(Self, Vec<Loss>), ExportError> {
        const LEAST: Duration = Duration::from_millis(1);
        let (is_growing, shape) = match policy.backoff() {
            Backoff::Exponential { .. } | Backoff::Constant { .. } => (true, None),
            Backoff::Stop => (false, Some("the policy makes no retries; leave out the retry policy")),
            Backoff::Zero => (false, Some("Envoy's delays are at least 1ms; use a backoff with a delay")),
            _ => (false, Some("Envoy's delays double up to a cap; use exponential or constant backoff")),
        };
        let attempts = policy.max_attempts().map(NonZeroU32::get);
        let mut problems = vec![shape];
        if is_growing {
            match attempts {
                Some(1) => problems.push(Some("max-attempts=1 makes no retries; leave out the retry policy")),
                None => problems.push(Some("Envoy needs a limit of attempts; set max-attempts")),
                Some(_) => {}
            }
            if policy.base() < LEAST {
                problems.push(Some("Envoy's delays are at least 1ms; raise the base"));
            }
        }
        ExportError::unless(problems, ())?;
        // As a cap, the ceiling of the last retry is never reached.
        let highest = ceilings(policy).last().copied().unwrap_or_default();
        let base = policy.base();
        let cap = cap(base).or(policy.cap()).unwrap_or(highest).max(base);
        let fields = Self { retries: attempts.unwrap_or(1).saturating_sub(1), base, cap };
        let mapped = ENVOY.policy().to_builder().base(base).cap(cap).max_attempts(fields.retries.saturating_add(1));
        let invalid = "Envoy's delays have a base and a cap above it; set both";
        let mapped = mapped.build().or_else(|_| ExportError::unless([Some(invalid)], *policy))?;
        let lost = losses(system, policy, &mapped);
        Ok((fields, lost))
    }
}

/// Returns the threshold of a circuit breaker, unless the budget has no counterpart.
enum Threshold {
    Absent,
    Retries(u32),
    Share { percent: f64, least: u32 },
}

impl Threshold {
    fn of(system: System, circumstances: &Circumstances, losses: &mut Vec<Loss>) -> Self {
        match circumstances.budget {
            None => Self::Absent,
            Some(RetryBudget::Unlimited) if system == System::Istio => Self::Retries(ISTIO_UNLIMITED),
            Some(RetryBudget::Unlimited) => Self::Retries(u32::MAX),
            // Istio takes 0 for no number, which is no limit.
            Some(RetryBudget::Concurrent(retries)) if retries > 0 || system != System::Istio => Self::Retries(retries),
            // And as few as 0 for no number, which is three.
            Some(RetryBudget::ShareOfActive { ratio, least })
                if (0.0..=1.0).contains(&ratio) && (least > 0 || system != System::Istio) =>
            {
                Self::Share { percent: (ratio * 1e8).round() / 1e6, least }
            }
            Some(budget) => {
                losses.push(Loss::new(system, "budget", budget));
                Self::Absent
            }
        }
    }
}

fn export_envoy(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let (fields, mut losses) = EnvoyFields::from_policy(System::Envoy, policy, |_| None)?;
    let mut text = "route:\n".to_owned();
    if let Some(limit) = circumstances.timeout {
        text += &format!("  timeout: {}\n", to_protobuf(limit));
    }
    text += &format!("  retry_policy:\n    retry_on: {RETRY_ON}\n    num_retries: {}\n", fields.retries);
    if let Some(limit) = circumstances.attempt_timeout {
        text += &format!("    per_try_timeout: {}\n", to_protobuf(limit));
    }
    text += &format!(
        "    retry_back_off:\n      base_interval: {}\n      max_interval: {}\n",
        to_protobuf(fields.base),
        to_protobuf(fields.cap)
    );
    let breaker = "cluster:\n  circuit_breakers:\n    thresholds:\n";
    match Threshold::of(System::Envoy, circumstances, &mut losses) {
        Threshold::Absent => {}
        Threshold::Retries(retries) => text += &format!("{breaker}    - max_retries: {retries}\n"),
        Threshold::Share { percent, least } => {
            text += &format!(
                "{breaker}    - retry_budget:\n        budget_percent:\n          value: {percent}\n        \
                 min_retry_concurrency: {least}\n"
            );
        }
    }
    Ok(Exported { text, losses, next_steps: ENVOY_NEXT_STEPS.to_vec() })
}

/// The cap that Istio writes into its routes: it has no field for it.
const CAP_FACTOR: u32 = 10;

const ISTIO_NEXT_STEPS: [&str; 2] = [
    "this route retries what no server has processed; add conditions, such as gateway-error, only where requests are \
     idempotent",
    "replace the host `example`; do not retry in the clients of this route",
];

fn export_istio(policy: &Policy, circumstances: &Circumstances) -> Result<Exported, ExportError> {
    let cap = |base: Duration| Some(base.saturating_mul(CAP_FACTOR));
    let (fields, mut losses) = EnvoyFields::from_policy(System::Istio, policy, cap)?;
    let is_whole = is_in_milliseconds(fields.base);
    ExportError::unless([if is_whole { None } else { Some("Istio takes whole milliseconds; round the base") }], ())?;
    let mut text = istio_object("VirtualService");
    text += "  hosts: [example]\n  http:\n  - route:\n    - destination: {host: example}\n";
    let mut limited = |name, limit: Option<Duration>| {
        let limit = limit?;
        if is_in_milliseconds(limit) {
            return Some(to_go(limit));
        }
        losses.push(Loss::new(System::Istio, name, Compact(limit)));
        None
    };
    let (each, all) =
        (limited("attempt-timeout", circumstances.attempt_timeout), limited("timeout", circumstances.timeout));
    if let Some(limit) = all {
        text += &format!("    timeout: {limit}\n");
    }
    text += &format!("    retries:\n      attempts: {}\n      retryOn: {RETRY_ON}\n", fields.retries);
    if let Some(limit) = each {
        text += &format!("      perTryTimeout: {limit}\n");
    }
    text += &format!("      backoff: {}\n", to_go(fields.base));
    let rule = |limit: &str| {
        format!("---\n{}  host: example\n  trafficPolicy:\n    {limit}\n", istio_object("DestinationRule"))
    };
    match Threshold::of(System::Istio, circumstances, &mut losses) {
        Threshold::Absent => {}
        Threshold::Retries(retries) => {
            text += &rule(&format!("connectionPool: {{http: {{maxRetries: {retries}}}}}"));
        }
        Threshold::Share { percent, least } => {
            text += &rule(&format!("retryBudget: {{percent: {percent}, minRetryConcurrency: {least}}}"));
        }
    }
    Ok(Exported { text, losses, next_steps: ISTIO_NEXT_STEPS.to_vec() })
}

/// Returns whether the webhook of Istio takes a length.
fn is_in_milliseconds(length: Duration) -> bool {
    !length.is_zero() && length.subsec_nanos().is_multiple_of(1_000_000)
}

/// The head of an object.
fn istio_object(kind: &str) -> String {
    format!("apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata:\n  name: example\nspec:\n")
}
