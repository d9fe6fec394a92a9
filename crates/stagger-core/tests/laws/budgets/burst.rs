//! The burst invariant: for N failing calls and their retries in any order, mixed with successes, rejections and
//! cancellations, a budget allows no more extra load than its documentation states. The same holds under an operator
//! control that enforces the budget.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::budget::{Concurrent, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Guard, Ratio};

use super::steps::{Step, Tally, run_steps, steps};
use crate::laws::support::{cases, secs};

/// Runs the steps with the budget, and again with a second one under an operator control.
fn run_both<B: Guard>(
    make: impl Fn() -> B,
    steps: &[Step],
    mut check: impl FnMut(&Tally) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    run_steps(&make(), steps, &mut check)?;
    let (budget, control) = (make(), RetryControl::new());
    run_steps(&Controlled::new(&budget, &control), steps, check).map(drop)
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0_u32..=1_000_000).prop_map(Ratio::millionths)
}

/// Creates a window with slots of 100 ms.
fn window(ratio: Ratio, min_per_second: u32) -> Window {
    Window::builder().ttl(secs(1)).ratio(ratio).min_per_second(min_per_second).build().unwrap()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn bd_17_tokens_bound_retries(steps in steps(), capacity in 5_u32..60, reward in 0_u32..6, refill in 0_u32..4) {
        let tokens = Tokens::builder().capacity(capacity).reward(reward).refill(refill, secs(1));
        run_both(|| tokens.build().unwrap(), &steps, |tally| {
            let available = u64::from(capacity) * 1_000 + u64::from(reward) * tally.successes * 1_000
                + u64::from(refill) * (tally.now / 1_000_000);
            prop_assert!(tally.retries * 5_000 <= available, "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_aws_sdk_tokens_bound_retries(steps in steps(), capacity in 14_u32..90) {
        let tokens = Tokens::AWS_2026.capacity(capacity);
        run_both(|| tokens.build().unwrap(), &steps, |tally| {
            prop_assert!(tally.retries * 14 <= u64::from(capacity) + 14 * tally.successes, "{tally:?}");
            Ok(())
        })?;
    }

    /// The bound holds for all time and not only per window: a retry expires no earlier than the calls that earned it.
    #[test]
    fn bd_17_window_bounds_retries(steps in steps(), ratio in ratio()) {
        run_both(|| window(ratio, 0), &steps, |tally| {
            prop_assert!(tally.retries <= ratio.of(tally.calls), "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_window_bounds_retries_with_a_minimum(steps in steps(), ratio in ratio(), min_per_second in 0_u32..5) {
        let slot = Duration::from_millis(100).as_nanos() as u64;
        run_both(|| window(ratio, min_per_second), &steps, |tally| {
            // The slot in which the retry was granted, and the nine before it.
            let (calls, retries) = tally.since((tally.now / slot).saturating_sub(9) * slot);
            prop_assert!(retries <= ratio.of(calls) + u64::from(min_per_second), "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_lifetime_bounds_retries(
        steps in steps(), ratio in (0_u32..1_000_000).prop_map(Ratio::millionths), bootstrap in 0_u32..50,
    ) {
        run_both(|| Lifetime::with(ratio, bootstrap).unwrap(), &steps, |tally| {
            let (ratio, whole) = (u64::from(ratio.as_millionths()), 1_000_000);
            let max = u64::from(bootstrap).saturating_sub(1).max(ratio * tally.calls / (whole - ratio));
            prop_assert!(tally.retries <= max, "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_throttle_bounds_retries(steps in steps(), max in 1_u32..30, ratio in 1_u32..1_500) {
        run_both(|| Throttle::new(max, Ratio::millionths(ratio * 1_000)).unwrap(), &steps, |tally| {
            let half = u64::from(max) * 500;
            prop_assert!(tally.retries * 1_000 < half + u64::from(ratio) * tally.successes, "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_success_rate_bounds_retries(
        steps in steps(), ratio in (1_u32..=1_000_000).prop_map(Ratio::millionths), last in 1_u32..=64,
    ) {
        let tolerated = Ratio::millionths(1_000_000 - ratio.as_millionths()).of(u64::from(last));
        run_both(|| SuccessRate::with(ratio, last).unwrap(), &steps, |tally| {
            let windows = 1 + tally.successes / (u64::from(last) - tolerated);
            prop_assert!(tally.retries <= tolerated * windows, "{tally:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_concurrent_bounds_active_retries(steps in steps(), ratio in ratio(), floor in 0_u32..5) {
        run_both(|| Concurrent::with(ratio, floor).unwrap(), &steps, |tally| {
            let max = ratio.of(tally.active).max(u64::from(floor));
            prop_assert!(tally.retrying <= max, "{tally:?}");
            Ok(())
        })?;
    }
}
