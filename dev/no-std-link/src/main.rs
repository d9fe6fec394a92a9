//! Links stagger-core into a program that has no standard library and no allocator.
//!
//! The test is that it links. It cannot run, because an entry point needs unsafe code. If a dependency linked the
//! standard library, there would be two panic handlers; if one allocated, there would be no allocator.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;
use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, policy};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));

/// Keeps the function in the program although it is never called.
#[used]
static ENTRY: fn() -> Duration = wait_of_one_call;

/// Uses every part that could depend on the standard library: text, floating point, forecasts, the decision.
fn wait_of_one_call() -> Duration {
    let parsed = black_box("decorrelated base=1s cap=60s").parse().unwrap_or(POLICY);
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&parsed, &mut state, Seed::new(black_box(1)));
    let (guards, now) = (Guards::none(), || Instant::ZERO);
    let Ok(permit) = retry.begin(Permits::NONE, now, &guards) else { return Duration::ZERO };
    let mean = parsed.elapsed_mean(3).unwrap_or_default();
    match retry.decide(Outcome::TRANSIENT, permit, now, &guards) {
        Decision::Retry { after, .. } => after.max(mean),
        _ => mean.max(parsed.elapsed_quantile(3, 0.5).unwrap_or_default()),
    }
}

#[panic_handler]
fn halt(_: &PanicInfo<'_>) -> ! {
    loop {}
}
