//! Timers: by reference, for waits without an end, and on clocks that started before the first reading.

use core::cell::RefCell;
use core::time::Duration;

use stagger::time::{BlockingSleep, Clock, Sleep, Tokio};
use stagger::{Cancel, Instant, Policy, blocking, policy};

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

#[test]
fn a_reference_to_a_timer_has_its_resolution() {
    fn resolution<T: Sleep>(timer: T) -> Duration {
        timer.resolution()
    }
    assert_eq!([resolution(Tokio), resolution::<&Tokio>(&Tokio)], [ms(1); 2]);
}

/// A timer whose sleeps can be cancelled.
#[derive(Default)]
struct Cancellable(RefCell<Vec<Duration>>);

impl Clock for Cancellable {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl BlockingSleep for Cancellable {
    fn sleep(&self, _: Duration) {
        panic!("it is not told of the cancellation");
    }

    fn sleep_unless(&self, length: Duration, _: &Cancel) {
        self.0.borrow_mut().push(length);
    }
}

#[test]
fn a_reference_to_a_timer_can_cancel_its_sleeps() {
    let (timer, cancel) = (Cancellable::default(), Cancel::new());
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&timer).cancelled_by(&cancel);
    assert_eq!(call.run().unwrap_err().attempts(), 3);
    assert_eq!(*timer.0.borrow(), [ms(10); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_timer_can_be_rearmed_for_longer_than_its_clock_can_represent() {
    let mut sleeping = Tokio.sleep(ms(1));
    Tokio.rearm(&mut sleeping, Duration::MAX);
    let year = Duration::from_secs(365 * 86_400);
    tokio::time::timeout(year, sleeping).await.unwrap_err();
}

/// The clock counts from the first reading in the process, which may be of another runtime.
#[test]
fn a_clock_that_is_behind_the_first_reading_advances() {
    let elapsed = |advance: Duration| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            tokio::time::advance(advance).await;
            let before = Tokio.now();
            tokio::time::advance(ms(1_000)).await;
            Tokio.now().saturating_since(before)
        })
    };
    assert_eq!([Duration::from_secs(3_600), Duration::ZERO].map(elapsed), [ms(1_000); 2]);
}
