//! The rules, one file per subject, and their lists. CONTRIBUTING.md describes how to add one.

mod attempts;
mod budget;
mod changes;
pub(crate) mod config;
mod connection;
mod delays;
mod fleet;
mod hint;
mod jitter;
pub(crate) mod log;
mod no_effect;
mod queue;
pub(crate) mod system;

use crate::analysis::PolicyAnalysis;
use crate::change::Change;
use crate::rule::Rule;

/// The rules for policies, ordered by code.
pub(crate) static ALL: [&Rule; 26] = [
    &jitter::NO_JITTER,
    &jitter::LOST_AT_CAP,
    &jitter::EQUAL_FIRST_DELAY,
    &fleet::SPREAD_TOO_SHORT,
    &delays::NO_CAP,
    &delays::CAP_NEAR_BASE,
    &delays::CAP_TOO_LONG,
    &delays::BASE_OUT_OF_RANGE,
    &delays::BELOW_TICK,
    &attempts::TOO_MANY_ATTEMPTS,
    &attempts::NO_RETRY_LIMIT,
    &attempts::TOO_LONG,
    &attempts::ATTEMPTS_TOO_LONG,
    &hint::HINT_ABOVE_LIMIT,
    &connection::RESET_ON_OPEN,
    &budget::NO_BUDGET,
    &attempts::LAYERS,
    &no_effect::NO_EFFECT,
    &attempts::NOT_IDEMPOTENT,
    &hint::RENDEZVOUS,
    &queue::OVERLOAD,
    &fleet::RETRIES_ABOVE_CAPACITY,
    &connection::GIVES_UP,
    &fleet::CEILING_BELOW_SPREAD,
    &queue::TIMEOUT_IN_QUEUE,
    &queue::STALE_QUEUE,
];

/// The rules for logs, ordered by code.
static OF_LOGS: [&Rule; 5] =
    [&log::EQUAL_DELAYS, &log::BEYOND_BOUNDS, &log::SYNCHRONIZED, &log::ENDLESS_RETRIES, &log::POLICY_MISMATCH];

/// The rules for systems of services, ordered by code.
static OF_SYSTEMS: [&Rule; 8] = [
    &system::ATTEMPTS_MULTIPLY,
    &system::TIMEOUT_INVERTED,
    &system::UNGUARDED_RETRIES,
    &system::DEADLINE_DROPPED,
    &system::LOOP_GAIN,
    &system::STALE_QUEUE,
    &system::OVERLOADED,
    &system::TIMEOUT_TOO_SHORT,
];

/// The rules for configurations of other systems, ordered by code.
static OF_CONFIGS: [&Rule; 15] = [
    &config::RETRIES_BY_DEFAULT,
    &config::LAYERS_OF_FILES,
    &config::NO_TIMEOUT,
    &config::NO_DELAY,
    &config::GIVES_UP,
    &config::LIMIT_UNREACHABLE,
    &config::IMPATIENT_PROBE,
    &config::FIELD_WITHOUT_EFFECT,
    &config::BINDS_NOTHING,
    &config::REFUSED_VALUE,
    &config::LAYERS_INVERT,
    &config::NO_RETRY_BUDGET,
    &config::MAKES_WORSE,
    &config::REJECTIONS_RETRIED,
    &config::RUNS_PILE_UP,
];

/// Returns the changes with which a fleet of known size comes back at about the rate of the capacity.
pub(crate) fn at_capacity(analysis: &PolicyAnalysis<'_>) -> Vec<Change> {
    let Some(window) = analysis.window() else { return Vec::new() };
    changes::at_capacity(analysis, window).into_iter().map(Change::Settings).collect()
}

impl Rule {
    /// Returns all rules, ordered by code: first those for policies (`S…`), then those for logs (`L…`), then those for
    /// systems of services (`M…`), then those for configurations of other systems (`C…`).
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.into_iter().chain(OF_LOGS).chain(OF_SYSTEMS).chain(OF_CONFIGS)
    }

    /// Returns the rule with this code or name, ignoring case.
    #[must_use]
    pub fn find(text: &str) -> Option<&'static Self> {
        Self::all().find(|rule| rule.code.eq_ignore_ascii_case(text) || rule.name.eq_ignore_ascii_case(text))
    }
}
