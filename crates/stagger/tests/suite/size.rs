//! Size and allocations of a call. See also `stagger-bench`.

use core::future::{Ready, ready};
use core::hint::black_box;
use core::pin::pin;

use stagger::testing::NoSleep;
use stagger::{Policy, Retrier, blocking, policy, retry_with_timer};

use super::support::{Fail, poll_times};

const POLICY: Policy = policy!(zero().max_attempts(4));

/// Returns the bytes that `retry` adds to a future that holds `BYTES` bytes and borrows nothing.
fn added_bytes<const BYTES: usize>() -> usize {
    let operation = || async {
        let held = black_box([0_u8; BYTES]);
        tokio::task::yield_now().await;
        black_box(held);
        Ok::<(), Fail>(())
    };
    size_of_val(&stagger::retry(&POLICY, operation)) - size_of_val(&operation())
}

#[test]
fn a_call_adds_at_most_64_bytes_to_its_operation() {
    assert!(added_bytes::<1>() <= 64, "{}", added_bytes::<1>());
    assert!(added_bytes::<1024>() <= 64, "{}", added_bytes::<1024>());
    // A future that consists only of its value leaves the compiler no spare bits for a tag.
    let operation = || ready(Ok::<u64, Fail>(7));
    assert!(size_of_val(&stagger::retry(&POLICY, operation)) - size_of::<Ready<Result<u64, Fail>>>() <= 64);
}

fn failing(times: u32) -> impl FnMut() -> Result<u32, Fail> {
    let mut calls = 0;
    move || {
        calls += 1;
        if calls <= times { Err(Fail::TRANSIENT) } else { Ok(calls) }
    }
}

fn allocations(run: impl FnOnce()) -> u64 {
    allocation_counter::measure(run).count_total
}

#[test]
fn a_call_that_does_not_sleep_allocates_nothing() {
    for failures in [0, 3] {
        let mut operation = failing(failures);
        let count = allocations(|| {
            blocking::retry(&POLICY, &mut operation).run().unwrap();
        });
        assert_eq!(count, 0, "blocking, {failures} failures");

        let mut operation = failing(failures);
        let count = allocations(|| {
            let call = pin!(stagger::retry(&POLICY, || ready(operation())));
            assert!(poll_times(call, 1).is_ready());
        });
        assert_eq!(count, 0, "on tokio, {failures} failures");

        let mut operation = failing(failures);
        let count = allocations(|| {
            let call = retry_with_timer(&Policy::DEFAULT, NoSleep, || ready(operation()));
            assert!(poll_times(pin!(call.with_report()), 1).is_ready());
        });
        assert_eq!(count, 0, "with a report, on a timer that does not allocate, {failures} failures");

        let (retrier, mut operation) = (Retrier::new(POLICY).when(|_: &Fail| true), failing(failures));
        let count = allocations(|| {
            assert!(poll_times(pin!(retrier.run_on(NoSleep, || ready(operation()))), 1).is_ready());
            retrier.blocking(|| Ok::<_, Fail>(())).unwrap();
        });
        assert_eq!(count, 0, "through a retrier, {failures} failures");
    }
}

#[tokio::test(start_paused = true)]
async fn the_sleeps_of_a_call_on_tokio_share_one_allocation() {
    const SLEEPING: Policy = policy!(constant(ms(10)).max_attempts(4));
    let mut operation = failing(3);
    let mut call = Box::pin(stagger::retry(&SLEEPING, || ready(operation())));
    let first = allocations(|| assert!(poll_times(call.as_mut(), 1).is_pending()));
    assert_eq!(first, 1, "the boxed sleep");
    for retry in 1..=3 {
        tokio::time::advance(core::time::Duration::from_millis(11)).await;
        let is_ready = core::cell::Cell::new(false);
        let more = allocations(|| is_ready.set(poll_times(call.as_mut(), 1).is_ready()));
        assert_eq!((more, is_ready.get()), (0, retry == 3), "retry {retry}: the sleep is rearmed");
    }
}
