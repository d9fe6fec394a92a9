use super::super::rule::Rule;
use super::{base, cap, connection, effect, fleet, hint, jitter, limit, logs, repeat};

/// The rules about policies, by code.
pub(in crate::lint) static ALL: [&Rule; 20] = [
    &jitter::NO_JITTER,
    &jitter::LOST_AT_CAP,
    &jitter::FIRST_IN_STEP,
    &fleet::SPREAD_TOO_SHORT,
    &cap::NO_CAP,
    &cap::CAP_NEAR_BASE,
    &cap::CAP_TOO_LONG,
    &base::BASE_OUT_OF_RANGE,
    &base::BELOW_TICK,
    &limit::TOO_MANY_ATTEMPTS,
    &limit::NO_END,
    &limit::TOO_LONG,
    &limit::ATTEMPTS_TOO_LONG,
    &hint::HINT_REFUSED,
    &connection::RESET_ON_OPEN,
    &fleet::NO_BUDGET,
    &fleet::LAYERS,
    &effect::NO_EFFECT,
    &repeat::NOT_IDEMPOTENT,
    &hint::RENDEZVOUS,
];

/// The rules about logs, by code.
pub(in crate::lint) static OF_LOGS: [&Rule; 5] =
    [&logs::IN_STEP, &logs::BEYOND_BOUNDS, &logs::TOGETHER, &logs::WITHOUT_END, &logs::NOT_THE_POLICY];
