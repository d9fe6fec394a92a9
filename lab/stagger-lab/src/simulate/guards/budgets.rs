//! The budgets.

use std::sync::Arc;

use stagger_core::budget::{
    Adaptive, BudgetError, Concurrent, Lifetime, Refund, SuccessRate, Throttle, Tokens, TokensBuilder, Window,
    WindowBuilder,
};
use stagger_core::{Guard, Ratio, Seed};
use stagger_report::parse;

use super::words::{Words, count, ratio, refill};
use super::{AddGuard, Kind};

pub(super) const TOKENS: Kind = Kind {
    keyword: "tokens",
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
};
pub(super) const WINDOW: Kind =
    Kind { keyword: "window", settings: &["ttl", "ratio", "min-per-second"], build: window };
pub(super) const LIFETIME: Kind = Kind { keyword: "lifetime", settings: &["ratio", "bootstrap"], build: lifetime };
pub(super) const THROTTLE: Kind =
    Kind { keyword: "throttle", settings: &["max-tokens", "token-ratio"], build: throttle };
pub(super) const CONCURRENT: Kind = Kind { keyword: "concurrent", settings: &["ratio", "floor"], build: concurrent };
pub(super) const ADAPTIVE: Kind = Kind {
    keyword: "adaptive",
    settings: &["multiplier", "window", "max-rejection-probability", "min-requests"],
    build: adaptive,
};
pub(super) const SUCCESS_RATE: Kind =
    Kind { keyword: "success-rate", settings: &["ratio", "last"], build: success_rate };

/// Returns a guard that is a budget, or the problems of its settings.
fn budget<B: Guard + 'static>(
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
