//! The tower layer and the reqwest middleware decide as `Retrier::run` does, for the same retrier, script and seed.

mod case;
mod drivers;

use core::time::Duration;
use std::io::ErrorKind;

use stagger::{NestedRetries, Policy, Seed, scope};
use tokio::runtime::{Builder, Runtime};

use self::case::Reply::{Broken, Hint, Silent, Status};
use self::case::{Case, NOT_PROCESSED, Reply, Setup};

const SCRIPTS: [&[Reply]; 16] = [
    // Successes.
    &[],
    &[Status(503), Status(200)],
    &[Broken(ErrorKind::ConnectionReset), Status(500), Status(204)],
    // Transient failures, to the end.
    &[Status(503); 12],
    &[Broken(ErrorKind::ConnectionRefused); 12],
    &[Status(502), Broken(ErrorKind::ConnectionReset), Status(429), Status(500), Status(503), Status(504), Status(408)],
    // Permanent failures.
    &[Status(404)],
    &[Status(503), Status(501)],
    &[Broken(ErrorKind::ConnectionReset), Broken(ErrorKind::PermissionDenied)],
    // Hints.
    &[Hint(503, "retry-after", "2"), Hint(429, "retry-after-ms", "30"), Status(200)],
    &[Hint(503, "stagger-reservation", "150;token=0123456789abcdef0123456789abcdef"), Status(503), Status(200)],
    &[Status(503), Hint(503, "retry-after", "3600")],
    // Not processed, once and twice.
    &[NOT_PROCESSED, Status(503), Status(200)],
    &[Status(503), NOT_PROCESSED, NOT_PROCESSED],
    // Silence, which only a timeout or a deadline ends.
    &[Silent, Status(503), Silent, Status(200)],
    &[Status(503), Silent, Silent, Silent, Silent, Silent, Silent, Silent, Silent],
];

const SETUPS: [Setup; 10] = [
    Setup::Plain,
    Setup::Budget,
    Setup::Breaker,
    Setup::OpenBreaker,
    Setup::Timeout,
    Setup::Deadline(Duration::ZERO),
    Setup::Deadline(Duration::from_millis(150)),
    Setup::Nested(NestedRetries::Disable),
    Setup::Nested(NestedRetries::ShareBudget),
    Setup::Nested(NestedRetries::Allow),
];

const POLICIES: [&str; 6] = [
    "exponential base=20ms cap=1s jitter=full max-attempts=6",
    "exponential base=20ms cap=1s jitter=equal max-attempts=6 spread=40ms",
    "decorrelated base=20ms cap=1s max-attempts=6 throttled-base=100ms",
    "constant base=50ms jitter=none max-attempts=4 max-elapsed=180ms",
    "exponential base=20ms cap=1s hint=exact max-attempts=3",
    "zero max-attempts=5",
];

/// Whether an attempt of the script ends only by a limit, which this setup does not have.
fn never_ends(script: &[Reply], setup: Setup) -> bool {
    script.iter().any(|reply| matches!(reply, Silent)) && !matches!(setup, Setup::Timeout | Setup::Deadline(_))
}

/// Makes the calls of every case.
fn for_each_case(mut check: impl FnMut(&Case<'_>, &Runtime)) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for policy in POLICIES {
        let policy: Policy = policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}"));
        for script in SCRIPTS {
            for setup in SETUPS.into_iter().filter(|&setup| !never_ends(script, setup)) {
                for seed in (0..5).map(|n| Seed::new(0x5eed).for_call(n)) {
                    check(&Case { policy: &policy, script, setup, seed }, &runtime);
                }
            }
        }
    }
}

/// Makes the call where the setup says.
fn block_on<T>(runtime: &Runtime, setup: Setup, call: impl Future<Output = T>) -> T {
    match setup {
        Setup::Nested(_) => runtime.block_on(scope::inside(call)),
        _ => runtime.block_on(call),
    }
}

#[test]
fn the_tower_layer_decides_as_a_plain_call() {
    for_each_case(|case, runtime| {
        let want = block_on(runtime, case.setup, drivers::run(case));
        assert_eq!(block_on(runtime, case.setup, drivers::tower(case)), want, "{case:?}");
    });
}

#[cfg(feature = "reqwest-middleware")]
#[test]
fn the_reqwest_middleware_decides_as_a_plain_call() {
    for_each_case(|case, runtime| {
        let want = block_on(runtime, case.setup, drivers::run(case));
        assert_eq!(block_on(runtime, case.setup, drivers::reqwest(case)), want, "{case:?}");
    });
}
