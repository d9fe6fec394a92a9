//! Cancellation by a future and by a handle.

use core::cell::Cell;
use core::future::pending;
use core::time::Duration;
use std::sync::mpsc;
use std::time::Instant;

use stagger::observe::Action;
use stagger::testing::Recorder;
use stagger::{Cancel, Cause, Policy, Rejected, StopReason, blocking, policy};

use super::support::{Fail, ms};

const HOURLY: Policy = policy!(constant(mins(60)).jitter(Jitter::None).unlimited_attempts());

async fn fails() -> Result<(), Fail> {
    Err(Fail::TRANSIENT)
}

#[tokio::test(start_paused = true)]
async fn a_future_cancels_a_sleep_and_keeps_the_last_error() {
    let (start, recorder) = (tokio::time::Instant::now(), Recorder::new());
    let call = stagger::retry(&HOURLY, fails).cancelled_by(tokio::time::sleep(ms(30)));
    let error = call.on_event(recorder.listener()).await.unwrap_err();
    assert_eq!(
        (error.stop_reason(), error.attempts(), error.error()),
        (StopReason::Cancelled, 1, Some(&Fail::TRANSIENT))
    );
    assert_eq!(start.elapsed(), ms(30));
    assert_eq!(recorder.events().last().map(|event| event.action), Some(Action::Stop(StopReason::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_future_cancels_an_attempt_by_dropping_it() {
    let (start, calls) = (tokio::time::Instant::now(), Cell::new(0));
    let operation = async || {
        calls.set(calls.get() + 1);
        if calls.get() == 2 { pending().await } else { fails().await }
    };
    // The first attempt fails, an hour passes, the second hangs.
    let call = stagger::retry(&HOURLY, operation).cancelled_by(tokio::time::sleep(ms(3_600_050)));
    let error = call.await.unwrap_err();
    assert_eq!(
        (error.stop_reason(), error.attempts(), error.error()),
        (StopReason::Cancelled, 2, Some(&Fail::TRANSIENT))
    );
    assert_eq!(start.elapsed(), ms(3_600_050));

    let hangs = async || pending::<Result<(), Fail>>().await;
    let error = stagger::retry(&HOURLY, hangs).cancelled_by(tokio::time::sleep(ms(5))).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Cancelled, 1));
    assert_eq!(error.cause(), &Cause::Rejected(Rejected::Cancelled), "no attempt had failed yet");
}

#[tokio::test(start_paused = true)]
async fn a_future_cancels_a_call_without_delays() {
    const EAGER: Policy = policy!(zero().unlimited_attempts());
    let (calls, (cancel, cancelled)) = (Cell::new(0_u32), tokio::sync::oneshot::channel());
    let mut cancel = Some(cancel);
    let operation = || {
        calls.set(calls.get() + 1);
        if calls.get() == 10 {
            cancel.take().unwrap().send(()).unwrap();
        }
        assert!(calls.get() < 1_000, "cancellation is never checked");
        fails()
    };
    let error = stagger::retry(&EAGER, operation).cancelled_by(cancelled).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Cancelled, 10));
}

#[test]
fn a_handle_wakes_a_blocking_sleep() {
    let cancel = Cancel::new();
    let (failed, has_failed) = mpsc::channel();
    let handle = cancel.clone();
    let thread = std::thread::spawn(move || {
        let operation = || {
            failed.send(()).unwrap();
            Err::<(), _>(Fail::TRANSIENT)
        };
        blocking::retry(&HOURLY, operation).cancelled_by(&handle).run()
    });
    has_failed.recv().unwrap();
    // By now the thread sleeps or is about to.
    std::thread::sleep(ms(10));
    let start = Instant::now();
    cancel.cancel();
    let error = thread.join().unwrap().unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(
        (error.stop_reason(), error.attempts(), error.error()),
        (StopReason::Cancelled, 1, Some(&Fail::TRANSIENT))
    );
    assert!(has_failed.recv().is_err(), "no further attempt");
}

#[test]
fn cancelling_a_handle_during_an_attempt_stops_after_it() {
    let (cancel, calls) = (Cancel::new(), Cell::new(0));
    let operation = || {
        calls.set(calls.get() + 1);
        cancel.cancel();
        Err::<(), _>(Fail::TRANSIENT)
    };
    let error = blocking::retry(&HOURLY, operation).cancelled_by(&cancel).run().unwrap_err();
    assert_eq!((error.stop_reason(), calls.get(), error.error()), (StopReason::Cancelled, 1, Some(&Fail::TRANSIENT)));
}

#[test]
fn a_shared_handle_cancels_all_its_calls() {
    let cancel = Cancel::new();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let handle = cancel.clone();
            std::thread::spawn(move || {
                blocking::retry(&HOURLY, || Err::<(), _>(Fail::TRANSIENT)).cancelled_by(&handle).run()
            })
        })
        .collect();
    cancel.cancel();
    for thread in threads {
        assert_eq!(thread.join().unwrap().unwrap_err().stop_reason(), StopReason::Cancelled);
    }
}
