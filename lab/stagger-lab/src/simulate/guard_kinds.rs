//! The kinds of guards, with their settings, and the words in which these are written.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::breaker::{CircuitBreaker, Window as BreakerWindow};
use stagger_core::budget::{
    Adaptive, BudgetError, Concurrent, Lifetime, Refund, SuccessRate, Throttle, Tokens, TokensBuilder, Window,
    WindowBuilder,
};
use stagger_core::guard::LimiterMode;
use stagger_core::pacer::{Pacer, PacerBuilder};
use stagger_core::quiet::{QuietPeriod, QuietPeriodBuilder, QuietTrigger};
use stagger_core::text::{nearest, parse_number};
use stagger_core::{Budget, Policy, Ratio, Seed};
use stagger_lease::sim::{LeasedTokens, LeasedTokensBuilder};
use stagger_report::storm::parse;
use stagger_sim::outage::ProcessGuards;

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
        let mut builder = Adaptive::builder(seed);
        if let Some(multiplier) = multiplier {
            builder = builder.multiplier(multiplier);
        }
        if let Some(window) = window {
            builder = builder.window(window);
        }
        if let Some(most) = most {
            builder = builder.max_rejection_probability(most);
        }
        if let Some(requests) = min_requests {
            builder = builder.min_requests(requests);
        }
        builder.build()
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
    let consecutive = if consecutive.is_none() && !has_ratio { Some(5) } else { consecutive };
    let build = move |seed| {
        let mut builder = CircuitBreaker::builder(seed);
        if let Some(failures) = consecutive {
            builder = builder.consecutive(failures);
        }
        if let Some(ratio) = failure_ratio {
            builder = builder.failure_ratio(ratio);
        }
        if let Some((after, ratio)) = slow {
            builder = builder.slow_ratio(after, ratio);
        }
        if let Some(window) = window {
            builder = builder.window(window);
        }
        if let Some(calls) = min_calls {
            builder = builder.min_calls(calls);
        }
        if let Some(policy) = open {
            builder = builder.open(policy);
        }
        if let Some(probes) = probes {
            builder = builder.probes(probes);
        }
        if let Some(probes) = healthy_probes {
            builder = builder.healthy_probes(probes);
        }
        if let Some(longest) = probe_wait {
            builder = builder.probe_wait(longest);
        }
        builder.build()
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

/// The settings of one guard, as text. The guard takes out those that it has.
#[derive(Debug)]
pub(super) struct Words<'a> {
    keyword: &'static str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    /// Splits settings at their spaces.
    pub(super) fn parse(keyword: &'static str, text: &'a str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for word in split(text, char::is_whitespace)?.into_iter().filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if value.is_empty() {
                return Err(format!("{keyword}: `{name}` has no value; write it as {name}=VALUE"));
            }
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(format!("{keyword}: `{name}` is set twice; keep one of them"));
            }
            pairs.push((name, value));
        }
        Ok(Self { keyword, pairs })
    }

    /// Takes out a setting and parses it; returns `None` if it was not given.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(at) = self.pairs.iter().position(|(known, _)| *known == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        parse(value).map(Some).map_err(|error| self.wrong(&format!("{name}: {error}")))
    }

    /// Passes a setting to the setter of a builder, if it was given.
    pub(super) fn apply<B, T>(
        &mut self,
        builder: B,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        set: impl FnOnce(B, T) -> B,
    ) -> Result<B, String> {
        Ok(match self.take(name, parse)? {
            Some(value) => set(builder, value),
            None => builder,
        })
    }

    /// Returns an error about this guard.
    pub(super) fn wrong(&self, problem: &str) -> String {
        format!("{}: {problem}", self.keyword)
    }

    /// Checks that no setting is left over.
    pub(super) fn finish(&self, known: &[&str]) -> Result<(), String> {
        let Some((name, _)) = self.pairs.first() else {
            return Ok(());
        };
        let remedy = match (nearest(name, known.iter().copied()), known) {
            (Some(nearest), _) => format!("did you mean `{nearest}`?"),
            (None, []) => format!("{} has no settings", self.keyword),
            (None, [one]) => format!("use {one}"),
            (None, [rest @ .., last]) => format!("use {} or {last}", rest.join(", ")),
        };
        Err(self.wrong(&format!("`{name}` is not a setting; {remedy}")))
    }
}

/// Splits text at separators outside of parentheses, and trims the parts.
pub(super) fn split(text: &str, is_separator: impl Fn(char) -> bool) -> Result<Vec<&str>, String> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("`)` closes nothing; remove it")?,
            c if depth == 0 && is_separator(c) => {
                parts.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("`(` is not closed; add `)`".to_owned());
    }
    parts.push(text[from..].trim());
    Ok(parts)
}

/// Parses a whole number of 0 or more.
pub(super) fn count(text: &str) -> Result<u32, String> {
    match parse_number(text) {
        Ok(number) if number.fract() == 0.0 && number <= f64::from(u32::MAX) => Ok(number as u32),
        _ => Err(format!("`{text}` is not a whole number; expected one like 0, 500 or 10k")),
    }
}

/// Parses a share such as 10% or 0.1; it may be above 1.
pub(crate) fn ratio(text: &str) -> Result<Ratio, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 1e4),
        None => (text, 1e6),
    };
    match parse_number(number).map(|number| (number * whole).round()) {
        Ok(millionths) if millionths <= f64::from(u32::MAX) => Ok(Ratio::millionths(millionths as u32)),
        _ => Err(format!("`{text}` is not a share; expected a form like 10% or 0.1")),
    }
}

/// Parses a number of tokens in a time, such as 50/s, 30/min or 10/500ms.
pub(super) fn refill(text: &str) -> Result<(u32, Duration), String> {
    let wrong = || format!("`{text}` is not a number of tokens in a time; expected a form like 50/s or 10/500ms");
    let (tokens, per) = text.split_once('/').ok_or_else(wrong)?;
    let per = match per {
        "s" => Duration::from_secs(1),
        "m" | "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        length => parse::duration(length).map_err(|_| wrong())?,
    };
    Ok((count(tokens).map_err(|_| wrong())?, per))
}
