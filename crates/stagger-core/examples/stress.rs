//! Every guard under four threads, for ThreadSanitizer on x86-64 Linux:
//!
//! ```sh
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" TSAN_OPTIONS=halt_on_error=1 \
//!   cargo run --release -p stagger-core --example stress --target x86_64-unknown-linux-gnu --target-dir target/tsan -- 300000
//! ```
//!
//! The argument is the number of calls per guard and thread. Threads are joined by their handles alone, because the
//! sanitizer does not see the synchronization inside a standard library that was built without it.

use core::error::Error;
use core::time::Duration;
use std::env;
use std::sync::Arc;
use std::thread;

use stagger_core::admission::{Admission, Secret};
use stagger_core::breaker::{CircuitBreaker, Window as BreakerWindow};
use stagger_core::budget::{
    Adaptive, Concurrent, ControlMode, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window,
};
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::hedge::Latencies;
use stagger_core::pacer::Pacer;
use stagger_core::quiet::QuietPeriod;
use stagger_core::{FailureKind, Guard, Instant, Outcome, Ratio, Seed, ServerHint};

const THREADS: u64 = 4;

/// Runs `call` with the numbers below `calls` in each of four threads, on one value.
fn together<T: Send + Sync + 'static>(
    name: &str,
    calls: u64,
    value: T,
    call: fn(&T, u64),
) -> Result<Arc<T>, Box<dyn Error>> {
    let value = Arc::new(value);
    let start = |_| {
        let value = Arc::clone(&value);
        thread::spawn(move || (0..calls).for_each(|number| call(&value, number)))
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    for thread in threads {
        thread.join().map_err(|_| format!("{name}: a thread has panicked"))?;
    }
    println!("{name:<22} {} calls", THREADS * calls);
    Ok(value)
}

/// Returns the time of a call: a call per millisecond, so that windows pass.
const fn time(number: u64) -> Instant {
    Instant::from_nanos(number * 1_000_000)
}

/// Makes a call with a retry, of which every third fails and every fifth retry is cancelled before it is made.
fn call(budget: &dyn Guard, number: u64) {
    let now = time(number);
    let outcome = if number % 3 == 0 { Outcome::TRANSIENT } else { Outcome::Success };
    if let Answer::Go(first) = budget.ask(Ask::FIRST, Permit::NONE, &now) {
        budget.settle(first, End::Made(&outcome), &now);
    }
    if let Some(retry) = budget.reserve(FailureKind::Transient, &now) {
        if number % 5 == 0 {
            budget.settle(retry, End::NeverMade, &now);
        } else {
            budget.settle(retry, End::Made(&outcome), &now);
        }
    }
    let _ = (budget.available(), budget.is_at_rest(&now));
}

/// Makes an attempt. Failures come in groups, so that the breaker opens and closes.
fn attempt(breaker: &CircuitBreaker, number: u64) {
    let now = time(number * 50);
    if let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &now) {
        let outcome = if number / 100 % 2 == 0 { Outcome::TRANSIENT } else { Outcome::Success };
        breaker.settle(permit, End::Made(&outcome), &now);
    }
    if number % 64 == 0 {
        let _ = (breaker.snapshot(&now), breaker.is_at_rest(&now), breaker.would_refuse(Duration::ZERO, None, &now));
    }
}

/// Makes an attempt, which leaves its place if it has to wait. Groups of calls are refused, now and then with a hint.
fn place(guard: &dyn Guard, number: u64) {
    let now = time(number);
    match guard.ask(Ask::FIRST, Permit::NONE, &now) {
        Answer::Go(permit) => {
            let hint = if number % 1_000 == 0 { Some(ServerHint::AtLeast(Duration::from_millis(50))) } else { None };
            let is_refused = number / 100 % 4 == 0;
            let outcome = if is_refused { Outcome::throttled(hint) } else { Outcome::Success };
            guard.settle(permit, End::Made(&outcome), &now);
        }
        Answer::Wait { permit, .. } => guard.settle(permit, End::NeverMade, &now),
        Answer::No { .. } => {}
    }
}

fn places(calls: u64) -> Result<(), Box<dyn Error>> {
    let quiet = together("QuietPeriod", calls, QuietPeriod::new(), |it, n| place(it, n))?;
    let pacer = together("Pacer", calls, Pacer::new(), |it, n| place(it, n))?;
    let waiting = (quiet.snapshot(&time(calls)).waiting, pacer.snapshot().waiting);
    if waiting != (0, 0) {
        return Err(format!("places are left: {waiting:?}").into());
    }
    Ok(())
}

fn budgets(calls: u64) -> Result<(), Box<dyn Error>> {
    let refilled = Tokens::builder().refill(10, Duration::from_secs(1)).build()?;
    together("Tokens", calls, refilled, |it, n| call(it, n))?;
    together("Window", calls, Window::new(), |it, n| call(it, n))?;
    together("Lifetime", calls, Lifetime::new(), |it, n| call(it, n))?;
    together("SuccessRate", calls, SuccessRate::new(), |it, n| call(it, n))?;
    together("Adaptive", calls, Adaptive::new(Seed::new(1)), |it, n| call(it, n))?;
    together("Throttle", calls, Throttle::new(10, Ratio::percent(10))?, |it, n| {
        call(it, n);
        if n % 1_000 == 0 {
            let _ = it.reconfigure(10 + (n / 1_000 % 5) as u32, Ratio::percent(10));
        }
    })?;
    let concurrent = together("Concurrent", calls, Concurrent::new(), |it, n| call(it, n))?;
    let left = concurrent.snapshot();
    if (left.firsts, left.retries) != (0, 0) {
        return Err(format!("calls are left in the budget: {left:?}").into());
    }
    together("Controlled", calls, (Tokens::new(), RetryControl::new()), |(tokens, control), n| {
        call(&Controlled::new(tokens, control), n);
        call(control, n);
        if n % 100 == 0 {
            control.set(ControlMode::ALL[(n / 100) as usize % ControlMode::ALL.len()]);
        }
    })?;
    Ok(())
}

fn breakers(calls: u64) -> Result<(), Box<dyn Error>> {
    let builder = CircuitBreaker::builder(Seed::new(1));
    let by_ratio = builder.failure_ratio(Ratio::percent(50)).min_calls(10);
    together("breaker, consecutive", calls, builder.consecutive(3).build()?, attempt)?;
    together("breaker, calls", calls, by_ratio.window(BreakerWindow::Calls(50)).build()?, attempt)?;
    let by_time = by_ratio.window(BreakerWindow::Time(Duration::from_secs(1))).build()?;
    together("breaker, time", calls, by_time, attempt)?;
    let commanded = together("breaker, commands", calls, builder.consecutive(3).build()?, |it, n| {
        attempt(it, n);
        match n % 1_000 {
            0 => it.force_open(&time(n)),
            200 => it.force_closed(&time(n)),
            400 => it.reset(&time(n)),
            _ => {}
        }
    })?;
    commanded.reset(&Instant::ZERO);
    if let Answer::No { .. } = commanded.ask(Ask::FIRST, Permit::NONE, &Instant::ZERO) {
        return Err("the breaker was reset and does not admit a call".into());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let calls = env::args().nth(1).map_or(Ok(10_000), |calls| calls.parse())?;
    budgets(calls)?;
    breakers(calls)?;
    places(calls)?;
    together("Latencies", calls, Latencies::new(100), |it, n| {
        it.record(Duration::from_millis(n % 100));
        let _ = (it.quantile(Ratio::percent(95)), it.len());
    })?;
    together("Admission", calls, Admission::per_second(500).build(Secret::new([1; 16]))?, |it, n| {
        let _ = (it.try_admit(time(n)), it.snapshot(time(n)));
    })?;
    Ok(())
}
