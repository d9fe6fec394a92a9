use std::sync::Arc;

use stagger_core::budget::Tokens;
use stagger_core::{Ratio, Seed};

use super::table::Table;
use crate::outage::ProcessGuards;

pub(super) type NewGuards = Arc<dyn Fn(Seed) -> ProcessGuards + Send + Sync>;

/// Takes out the guards of an edge: a bucket of tokens that successes fill.
pub(super) fn edge_guards(table: &mut Table<'_>) -> Option<NewGuards> {
    let mut budget = table.table("budget")?;
    let (tokens, refund) = (budget.count("tokens", 10), budget.share("refund", 0.1));
    let at = budget.at;
    budget.finish();
    let refund = Ratio::millionths((refund * 1e6).round() as u32);
    let builder = Tokens::builder().capacity(tokens).cost(1).fractional_reward(refund);
    match builder.build() {
        Err(error) => {
            table.problem(at..at, format!("budget: {error}"));
            None
        }
        // The settings are valid, as has been seen.
        Ok(_) => Some(Arc::new(move |_| match builder.build() {
            Ok(tokens) => ProcessGuards::none().budget(tokens),
            Err(_) => ProcessGuards::none(),
        })),
    }
}
