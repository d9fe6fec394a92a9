use std::sync::Arc;

use stagger_core::breaker::{CircuitBreaker, Window as BreakerWindow};
use stagger_core::budget::{
    Adaptive, AdaptiveBuilder, BudgetError, Concurrent, Lifetime, Refund, SuccessRate, Throttle, Tokens, TokensBuilder,
    Window, WindowBuilder,
};
use stagger_core::guard::LimiterMode;
use stagger_core::pacer::{Pacer, PacerBuilder};
use stagger_core::quiet::{QuietPeriod, QuietPeriodBuilder, QuietTrigger};
use stagger_core::{Budget, Policy, Ratio, Seed};
use stagger_lease::sim::{LeasedTokens, LeasedTokensBuilder};
use stagger_sim::outage::ProcessGuards;

use super::words::{Words, count, ratio, refill};
use stagger_report::storm::parse;

/// Adds a new guard to the guards of a process.
pub(super) type AddGuard = Arc<dyn Fn(ProcessGuards, Seed) -> ProcessGuards + Send + Sync>;

/// A kind of guard, with the names of its settings.
pub(super) struct Kind {
    pub(super) keyword: &'static str,
    pub(super) role: Role,
    pub(super) settings: &'static [&'static str],
    /// Creates the guard from its settings.
    pub(super) build: fn(&mut Words<'_>) -> Result<AddGuard, String>,
}

/// What a guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    None,
    Budget,
    Breaker,
    Quiet,
    Pacer,
}

/// All kinds, in the order of the help text.
pub(super) const KINDS: &[Kind] = &[
    Kind { keyword: "none", role: Role::None, settings: &[], build: |_| Ok(Arc::new(|process, _| process)) },
    Kind {
        keyword: "tokens",
        role: Role::Budget,
        settings: &[
            "capacity",
            "initial",
            "cost",
            "transient-cost",
            "throttled-cost",
            "local-cost",
            "reward",
            "refund",
            "refill",
        ],
        build: tokens,
    },
    Kind { keyword: "window", role: Role::Budget, settings: &["ttl", "ratio", "min-per-second"], build: window },
    Kind { keyword: "lifetime", role: Role::Budget, settings: &["ratio", "bootstrap"], build: lifetime },
    Kind { keyword: "throttle", role: Role::Budget, settings: &["max-tokens", "token-ratio"], build: throttle },
    Kind { keyword: "concurrent", role: Role::Budget, settings: &["ratio", "floor"], build: concurrent },
    Kind {
        keyword: "adaptive",
        role: Role::Budget,
        settings: &["multiplier", "window", "max-rejection-probability", "min-requests"],
        build: adaptive,
    },
    Kind { keyword: "success-rate", role: Role::Budget, settings: &["ratio", "last"], build: success_rate },
    Kind {
        keyword: "breaker",
        role: Role::Breaker,
        settings: &[
            "consecutive",
            "failure-ratio",
            "slow-ratio",
            "slow-after",
            "window",
            "min-calls",
            "open",
            "probes",
            "healthy-probes",
            "probe-wait",
        ],
        build: breaker,
    },
    Kind {
        keyword: "quiet",
        role: Role::Quiet,
        settings: &["mode", "trigger", "max", "max-wait", "max-waiting", "probe-wait"],
        build: quiet,
    },
    Kind { keyword: "pacer", role: Role::Pacer, settings: &["mode", "max-wait", "max-waiting"], build: pacer },
    Kind {
        keyword: LEASE,
        role: Role::Budget,
        settings: &["tokens", "initial", "cost", "reward", "refill", "expected"],
        build: lease,
    },
];

/// The budget that processes share.
pub(super) const LEASE: &str = "lease";

/// Returns a guard that is a budget, or the problems of its settings.
fn budget<B: Budget + 'static>(
    words: &Words<'_>,
    build: impl Fn(Seed) -> Result<B, BudgetError> + Send + Sync + 'static,
) -> Result<AddGuard, String> {
    build(Seed::new(0)).map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, seed| match build(seed) {
        Ok(budget) => process.budget(budget),
        // The settings are valid, as the call above has shown; they do not depend on the seed.
        Err(_) => process,
    }))
}

fn tokens(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let refunds = [("every-success", Refund::EverySuccess), ("last-cost", Refund::LastCost)];
    let builder = Tokens::builder();
    let builder = words.apply(builder, "capacity", count, TokensBuilder::capacity)?;
    let builder = words.apply(builder, "initial", count, TokensBuilder::initial)?;
    // Of all kinds first, so that the cost of one kind overrides it.
    let builder = words.apply(builder, "cost", count, TokensBuilder::cost)?;
    let builder = words.apply(builder, "transient-cost", count, TokensBuilder::transient_cost)?;
    let builder = words.apply(builder, "throttled-cost", count, TokensBuilder::throttled_cost)?;
    let builder = words.apply(builder, "local-cost", count, TokensBuilder::local_cost)?;
    let reward = |text: &str| match count(text) {
        Ok(tokens) => Ok((tokens, None)),
        Err(_) => ratio(text).map(|share| (0, Some(share))),
    };
    let builder = words.apply(builder, "reward", reward, |builder, (tokens, share)| match share {
        Some(share) => builder.fractional_reward(share),
        None => builder.reward(tokens),
    })?;
    let refund = |text: &str| parse::keyword(text, &refunds);
    let builder = words.apply(builder, "refund", refund, TokensBuilder::refund)?;
    let builder = words.apply(builder, "refill", refill, |builder, (tokens, per)| builder.refill(tokens, per))?;
    budget(words, move |_| builder.build())
}

fn window(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let builder = words.apply(Window::builder(), "ttl", parse::duration, WindowBuilder::ttl)?;
    let builder = words.apply(builder, "ratio", ratio, WindowBuilder::ratio)?;
    let builder = words.apply(builder, "min-per-second", count, WindowBuilder::min_per_second)?;
    budget(words, move |_| builder.build())
}

fn lifetime(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let share = words.take("ratio", ratio)?.unwrap_or(Ratio::percent(10));
    let bootstrap = words.take("bootstrap", count)?.unwrap_or(100);
    budget(words, move |_| Lifetime::with(share, bootstrap))
}

/// By default the throttle of the example in gRPC proposal A6: ten tokens, and a tenth of a token back per success.
fn throttle(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let max_tokens = words.take("max-tokens", count)?.unwrap_or(10);
    let token_ratio = words.take("token-ratio", ratio)?.unwrap_or(Ratio::percent(10));
    budget(words, move |_| Throttle::new(max_tokens, token_ratio))
}

fn concurrent(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let share = words.take("ratio", ratio)?.unwrap_or(Ratio::percent(20));
    let floor = words.take("floor", count)?.unwrap_or(3);
    budget(words, move |_| Concurrent::with(share, floor))
}

fn adaptive(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let multiplier = words.take("multiplier", ratio)?;
    let window = words.take("window", parse::duration)?;
    let most = words.take("max-rejection-probability", ratio)?;
    let min_requests = words.take("min-requests", count)?;
    budget(words, move |seed| {
        let builder = Adaptive::builder(seed);
        let builder = multiplier.map_or(builder, |multiplier| builder.multiplier(multiplier));
        let builder = window.map_or(builder, |window| builder.window(window));
        let builder = most.map_or(builder, |most| builder.max_rejection_probability(most));
        min_requests.map_or(builder, |requests| AdaptiveBuilder::min_requests(builder, requests)).build()
    })
}

fn success_rate(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let share = words.take("ratio", ratio)?.unwrap_or(Ratio::percent(90));
    let last = words.take("last", count)?.unwrap_or(50);
    budget(words, move |_| SuccessRate::with(share, last))
}

fn breaker(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let consecutive = words.take("consecutive", count)?;
    let failure_ratio = words.take("failure-ratio", ratio)?;
    let slow = match (words.take("slow-after", parse::duration)?, words.take("slow-ratio", ratio)?) {
        (Some(after), Some(ratio)) => Some((after, ratio)),
        (None, None) => None,
        (None, Some(_)) => return Err(words.wrong("slow-ratio needs slow-after: the length from which a call is slow")),
        (Some(_), None) => {
            return Err(words.wrong("slow-after needs slow-ratio: the share of slow calls that trips it"));
        }
    };
    let window = words.take("window", |text| match count(text) {
        Ok(calls) => Ok(BreakerWindow::Calls(calls)),
        Err(_) => parse::duration(text).map(BreakerWindow::Time),
    })?;
    let min_calls = words.take("min-calls", count)?;
    let open = words.take("open", policy)?;
    let probes = words.take("probes", count)?;
    let healthy_probes = words.take("healthy-probes", count)?;
    let probe_wait = words.take("probe-wait", parse::duration)?;
    // Without a rule of its own it has that of the default breaker.
    let has_ratio = failure_ratio.is_some() || slow.is_some();
    let consecutive = consecutive.or((!has_ratio).then_some(5));
    let build = move |seed| {
        let builder = CircuitBreaker::builder(seed);
        let builder = consecutive.map_or(builder, |failures| builder.consecutive(failures));
        let builder = failure_ratio.map_or(builder, |ratio| builder.failure_ratio(ratio));
        let builder = slow.map_or(builder, |(after, ratio)| builder.slow_ratio(after, ratio));
        let builder = window.map_or(builder, |window| builder.window(window));
        let builder = min_calls.map_or(builder, |calls| builder.min_calls(calls));
        let builder = open.map_or(builder, |policy| builder.open(policy));
        let builder = probes.map_or(builder, |probes| builder.probes(probes));
        let builder = healthy_probes.map_or(builder, |probes| builder.healthy_probes(probes));
        probe_wait.map_or(builder, |longest| builder.probe_wait(longest)).build()
    };
    build(Seed::new(0)).map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, seed| match build(seed) {
        Ok(breaker) => process.breaker(breaker),
        // The settings are valid, as the call above has shown; they do not depend on the seed.
        Err(_) => process,
    }))
}

const MODES: [(&str, LimiterMode); 3] =
    [("wait", LimiterMode::Wait), ("fail-fast", LimiterMode::FailFast), ("observe", LimiterMode::Observe)];

fn quiet(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let triggers = [("hints-and-refusals", QuietTrigger::HintsAndRefusals), ("hints", QuietTrigger::Hints)];
    let builder = QuietPeriod::builder();
    let builder = words.apply(builder, "mode", |text| parse::keyword(text, &MODES), QuietPeriodBuilder::mode)?;
    let builder =
        words.apply(builder, "trigger", |text| parse::keyword(text, &triggers), QuietPeriodBuilder::trigger)?;
    let builder = words.apply(builder, "max", parse::duration, QuietPeriodBuilder::max)?;
    let builder = words.apply(builder, "max-wait", parse::duration, QuietPeriodBuilder::max_wait)?;
    let builder = words.apply(builder, "max-waiting", count, QuietPeriodBuilder::max_waiting)?;
    let builder = words.apply(builder, "probe-wait", parse::duration, QuietPeriodBuilder::probe_wait)?;
    builder.build().map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, _| match builder.build() {
        Ok(quiet) => process.quiet(quiet),
        // The settings are valid, as the call above has shown.
        Err(_) => process,
    }))
}

fn pacer(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let builder = words.apply(Pacer::builder(), "mode", |text| parse::keyword(text, &MODES), PacerBuilder::mode)?;
    let builder = words.apply(builder, "max-wait", parse::duration, PacerBuilder::max_wait)?;
    let builder = words.apply(builder, "max-waiting", count, PacerBuilder::max_waiting)?;
    builder.build().map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, _| match builder.build() {
        Ok(pacer) => process.pacer(pacer),
        // The settings are valid, as the call above has shown.
        Err(_) => process,
    }))
}

fn lease(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let builder = words.apply(LeasedTokens::builder(), "tokens", count, LeasedTokensBuilder::capacity)?;
    let builder = words.apply(builder, "initial", count, LeasedTokensBuilder::initial)?;
    let builder = words.apply(builder, "cost", count, LeasedTokensBuilder::cost)?;
    let builder = words.apply(builder, "reward", count, LeasedTokensBuilder::reward)?;
    let builder = words.apply(builder, "refill", refill, |builder, (tokens, per)| builder.refill(tokens, per))?;
    let builder = words.apply(builder, "expected", count, LeasedTokensBuilder::expected)?;
    let tokens = builder.build().map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, _| process.shared(tokens)))
}

/// Parses a policy, which is in parentheses if it has settings.
fn policy(text: &str) -> Result<Policy, String> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text).trim();
    if inner.is_empty() {
        return Err("the policy is empty; write one such as (constant base=5s)".to_owned());
    }
    inner.parse().map_err(|error: stagger_core::text::ParseError| error.to_string())
}
