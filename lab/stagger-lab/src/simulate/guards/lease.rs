//! The budget that processes share.

use std::sync::Arc;

use stagger_lease::sim::{LeasedTokens, LeasedTokensBuilder};

use super::words::{Words, count, refill};
use super::{AddGuard, Kind};

pub(super) const LEASE: Kind =
    Kind { keyword: "lease", settings: &["tokens", "initial", "cost", "reward", "refill", "expected"], build: lease };

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
