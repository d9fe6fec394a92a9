//! The quiet period.

use std::sync::Arc;

use stagger_core::quiet::{QuietPeriod, QuietPeriodBuilder, QuietTrigger};
use stagger_report::parse;

use super::words::{Words, count};
use super::{AddGuard, Kind};

pub(super) const QUIET: Kind =
    Kind { keyword: "quiet", settings: &["trigger", "max", "max-wait", "max-waiting", "probe-wait"], build: quiet };

fn quiet(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let triggers = [("hints-and-refusals", QuietTrigger::HintsAndRefusals), ("hints", QuietTrigger::Hints)];
    let builder = QuietPeriod::builder();
    let builder =
        words.apply(builder, "trigger", |text| parse::keyword(text, &triggers), QuietPeriodBuilder::trigger)?;
    let builder = words.apply(builder, "max", parse::duration, QuietPeriodBuilder::max)?;
    let builder = words.apply(builder, "max-wait", parse::duration, QuietPeriodBuilder::max_wait)?;
    let builder = words.apply(builder, "max-waiting", count, QuietPeriodBuilder::max_waiting)?;
    let builder = words.apply(builder, "probe-wait", parse::duration, QuietPeriodBuilder::probe_wait)?;
    builder.build().map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, _| match builder.build() {
        Ok(quiet) => process.guard(quiet),
        // The settings are valid, as the call above has shown.
        Err(_) => process,
    }))
}
