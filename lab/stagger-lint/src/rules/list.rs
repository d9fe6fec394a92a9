use super::{
    base, budget, cap, ceiling, config, connection, fleet, hint, idempotency, jitter, knocking, limit, log, no_effect,
    queue, system,
};
use crate::rule::Rule;

/// The rules for policies, ordered by code.
pub(crate) static ALL: [&Rule; 26] = [
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
    &limit::NO_RETRY_LIMIT,
    &limit::TOO_LONG,
    &limit::ATTEMPTS_TOO_LONG,
    &hint::HINT_ABOVE_LIMIT,
    &connection::RESET_ON_OPEN,
    &budget::NO_BUDGET,
    &fleet::LAYERS,
    &no_effect::NO_EFFECT,
    &idempotency::NOT_IDEMPOTENT,
    &hint::RENDEZVOUS,
    &queue::OVERLOAD,
    &knocking::KNOCKING,
    &connection::GIVES_UP,
    &ceiling::CEILING_BELOW_SPREAD,
    &queue::TIMEOUT_IN_QUEUE,
    &queue::STALE_QUEUE,
];

/// The rules for logs, ordered by code.
pub(crate) static OF_LOGS: [&Rule; 5] =
    [&log::IN_STEP, &log::BEYOND_BOUNDS, &log::SYNCHRONIZED, &log::ENDLESS_RETRIES, &log::POLICY_MISMATCH];

/// The rules for systems of services, ordered by code.
pub(crate) static OF_SYSTEMS: [&Rule; 6] = [
    &system::ATTEMPTS_MULTIPLY,
    &system::TIMEOUT_INVERTED,
    &system::UNGUARDED_RETRIES,
    &system::DEADLINE_DROPPED,
    &system::LOOP_GAIN,
    &system::STALE_QUEUE,
];

/// The rules for configurations of other systems, ordered by code.
pub(crate) static OF_CONFIGS: [&Rule; 15] = [
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
