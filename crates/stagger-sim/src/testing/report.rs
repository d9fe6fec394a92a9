use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::plot::Plot;

pub(super) struct Report<'a> {
    pub(super) policy: &'a Policy,
    pub(super) seed: Seed,
    pub(super) rows: &'a [(&'static str, String)],
    /// What the figures ask for; nothing if they are in order.
    pub(super) remedy: Option<String>,
    pub(super) plot: Plot<'a>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = [("policy", self.policy.to_string()), ("seed", self.seed.get().to_string())];
        let remedy = self.remedy.as_ref().map(|remedy| ("remedy", remedy.clone()));
        let rows = || own.iter().chain(self.rows).chain(&remedy);
        let width = rows().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in rows() {
            writeln!(f, "  {name:<width$}  {value}")?;
        }
        write!(f, "\n{}", self.plot)
    }
}

/// Returns the run if the claim holds; otherwise panics at the caller's location.
#[track_caller]
pub(super) fn check_claim<R: fmt::Display>(run: &R, holds: bool, what: impl fmt::Display) -> &R {
    assert!(holds, "{what}\n\n{run}");
    run
}

/// Formats a time with two decimals; `None` is `never`.
pub(super) fn time(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{:.2}", Compact(time)))
}
