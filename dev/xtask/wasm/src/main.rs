//! Calls where the standard library has neither a clock nor entropy nor a way to sleep. If any code asks for one of
//! them, the program ends with a trap; if a result is wrong, with another exit code than 0.

use std::future::{Future as _, IntoFuture as _, Ready, ready};
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};

use stagger::testing::VirtualClock;
use stagger::time::SleepFn;
use stagger::{Policy, blocking, policy, retry_with_timer};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));

fn main() -> ExitCode {
    let results = [
        stagger::seed() != stagger::seed(),
        POLICY.delays(stagger::seed()).count() == 3,
        blocking::retry(&POLICY, || Ok::<_, &str>(1)).run() == Ok(1),
        retries_block_on_a_clock_of_the_host(),
        retries_wait_on_a_timer_of_the_host(),
    ];
    match results.iter().position(|is_right| !is_right) {
        None => ExitCode::SUCCESS,
        Some(wrong) => ExitCode::from(u8::try_from(wrong + 1).unwrap_or(u8::MAX)),
    }
}

fn retries_block_on_a_clock_of_the_host() -> bool {
    let clock = VirtualClock::new();
    let timer = SleepFn::with_clock(|length| clock.advance(length), &clock);
    let mut attempts = 0;
    let operation = || {
        attempts += 1;
        if attempts < 3 { Err("not yet") } else { Ok(attempts) }
    };
    blocking::retry(&POLICY, operation).timer(timer).run() == Ok(3)
}

fn retries_wait_on_a_timer_of_the_host() -> bool {
    let clock = VirtualClock::new();
    let sleep = |length| -> Ready<()> {
        clock.advance(length);
        ready(())
    };
    let operation = || ready(Err::<u32, _>("never"));
    let mut call = pin!(retry_with_timer(&POLICY, SleepFn::with_clock(sleep, &clock), operation).into_future());
    call.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(Err("never"))
}
