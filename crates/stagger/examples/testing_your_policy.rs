//! Testing code that retries without waiting: virtual time, scripted outcomes, recorded decisions, injected faults.
//!
//! ```sh
//! cargo run -p stagger --example testing_your_policy
//! ```

use core::time::Duration;
use std::time::Instant;

use stagger::testing::{FaultInjector, NoSleep, Recorder, Script, VirtualClock};
use stagger::time::{BlockingSleep, ThreadSleep};
use stagger::{Policy, Ratio, Retrier, Seed, StopReason, blocking, policy};

/// The policy under test.
const POLICY: Policy = policy!(exponential(secs(1), secs(60)).max_attempts(6).max_elapsed(mins(2)));

/// The same number of attempts without waits, for code that takes a retrier and no timer.
const NO_WAIT: Policy = policy!(zero().max_attempts(6));

/// Loads a value: the code under test, which makes its own calls. The program passes `ThreadSleep` as the timer.
fn load<T: BlockingSleep>(
    api: &Retrier,
    timer: &T,
    mut fetch: impl FnMut() -> Result<u32, &'static str>,
) -> Result<u32, &'static str> {
    api.blocking_call(|_| fetch()).timer(timer).run().map_err(|error| error.into_inner_or(|_| "rejected"))
}

fn main() {
    let start = Instant::now();

    // Bounds of the policy, without running it.
    let (_, longest) = POLICY.elapsed_bounds(5).unwrap_or_default();
    assert_eq!(longest, Duration::from_secs(1 + 2 + 4 + 8 + 16));

    // Virtual time: how long could a call take? At most 31 s, by the sum above.
    let clock = VirtualClock::new();
    for seed in (0..1_000).map(Seed::new) {
        let call = blocking::retry(&POLICY, || Err::<(), _>("down")).timer(&clock).seed(seed);
        let error = call.detailed().run().expect_err("the service is down");
        assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 6));
        assert!(error.elapsed() <= longest);
    }
    println!("a thousand calls took {:?} on virtual time", clock.elapsed());

    // Scripted outcomes and recorded decisions.
    let (mut script, recorder) = (Script::new([Err("busy"), Err("busy"), Ok(42)]), Recorder::new());
    let call = blocking::retry(&POLICY, || script.next("no more")).timer(NoSleep);
    assert_eq!(call.on_event(recorder.listener()).run(), Ok(42));
    let (delays, ceilings) = (recorder.delays(), [1, 2].map(Duration::from_secs));
    assert!(delays.len() == 2 && delays.iter().zip(ceilings).all(|(delay, ceiling)| *delay <= ceiling));

    // A slow operation: its duration counts towards the time limit.
    let clock = VirtualClock::new();
    let slow = || {
        clock.advance(Duration::from_secs(50));
        Err::<(), _>("slow")
    };
    let error = blocking::retry(&POLICY, slow).timer(&clock).detailed().run().expect_err("the operation fails");
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Elapsed, 3));

    // Injected faults: of a thousand calls to an operation that fails three times in ten, how many fail despite the
    // retries?
    let faults = FaultInjector::new(Seed::new(7)).errors(Ratio::percent(30));
    let call = || blocking::retry(&POLICY, || faults.inject(&NoSleep, || "injected")).timer(NoSleep).run();
    let failed = (0..1_000).filter(|_| call().is_err()).count();
    println!("{failed} of 1000 calls failed");
    // 0.3 to the power of six is 0.07 %.
    assert!(failed <= 5);

    // Code that makes its own calls, deep inside: it takes the timer, or a retrier whose policy does not wait.
    assert_eq!(load(&Retrier::new(POLICY), &NoSleep, || Err("down")), Err("down"));
    assert_eq!(load(&Retrier::new(NO_WAIT), &ThreadSleep, || Err("down")), Err("down"));

    println!("total real time: {:?}", start.elapsed());
}
