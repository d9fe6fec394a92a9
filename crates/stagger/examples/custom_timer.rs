//! A custom timer, for a runtime that stagger does not support out of the box: a clock, and a future that sleeps on it.
//!
//! ```sh
//! cargo run -p stagger --example custom_timer
//! ```

use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};

use stagger::time::{Clock, Sleep, SleepFn, SystemClock};
use stagger::{Instant, Policy, policy, retry_with_timer};

const POLICY: Policy = policy!(constant(ms(10)).max_attempts(4));

/// A thread for each sleep: simple, and sufficient for a few.
#[derive(Clone, Copy, Debug)]
struct Threads;

/// The state shared by a sleep's future and its thread.
#[derive(Clone, Debug, Default)]
struct Sleeping(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    waker: Option<Waker>,
}

impl Clock for Threads {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl Sleep for Threads {
    type Sleeping = Sleeping;

    fn sleep(&self, length: Duration) -> Sleeping {
        let sleeping = Sleeping::default();
        let shared = sleeping.clone();
        thread::spawn(move || {
            thread::sleep(length);
            let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_over = true;
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        });
        sleeping
    }
}

impl Future for Sleeping {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Runs a future to completion: a minimal runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        thread::park();
    }
}

fn main() {
    let mut calls = 0;
    let operation = || {
        calls += 1;
        let answer = if calls < 4 { Err("not yet") } else { Ok("done") };
        async move { answer }
    };
    let report = block_on(retry_with_timer(&POLICY, Threads, operation).with_report());
    println!("{} attempts in {:?}", report.attempts, report.elapsed);
    // Three waits, each drawn from 5 to 10 ms.
    assert!(report.elapsed >= Duration::from_millis(15));
    assert_eq!((report.result, report.attempts), (Ok("done"), 4));

    // Where a function is enough, a closure can be the timer.
    let timer = SleepFn::new(|length| Box::pin(async move { Threads.sleep(length).await }));
    let answer = block_on(retry_with_timer(&POLICY, timer, async || Err::<(), _>("never")));
    assert_eq!(answer, Err("never"));
}
