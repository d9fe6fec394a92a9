//! The pacer.

use std::sync::Arc;

use stagger_core::pacer::Pacer;
use stagger_report::parse;

use super::words::{Words, count};
use super::{AddGuard, Kind};

pub(super) const PACER: Kind = Kind { keyword: "pacer", settings: &["max-wait", "max-waiting"], build: pacer };

fn pacer(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let max_wait = words.take("max-wait", parse::duration)?;
    let max_waiting = words.take("max-waiting", count)?;
    Ok(Arc::new(move |process, _| {
        let mut pacer = Pacer::new();
        if let Some(longest) = max_wait {
            pacer = pacer.max_wait(longest);
        }
        if let Some(calls) = max_waiting {
            pacer = pacer.max_waiting(calls);
        }
        process.guard(pacer)
    }))
}
