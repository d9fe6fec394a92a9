//! The burst invariant: however N failing calls and their retries come, in whatever order, with successes, refusals
//! and cancellations between them, a budget allows no more extra load than its documentation says; and no more under a
//! operator control that enforces it.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::budget::{Concurrent, ControlledBudget, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::{Budget, Ratio};

use super::play::{Book, Step, play, steps};
use crate::laws::support::{cases, secs};

/// Plays the steps with the budget, and with its like under a control.
fn play_both<B: Budget>(
    make: impl Fn() -> B,
    steps: &[Step],
    mut check: impl FnMut(&Book) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    play(&make(), steps, &mut check)?;
    play(&ControlledBudget::new(make()), steps, check).map(drop)
}

fn ratio() -> impl Strategy<Value = Ratio> {
    (0_u32..=1_000_000).prop_map(Ratio::millionths)
}

/// Slots of a tenth of a second.
fn window(ratio: Ratio, min_per_second: u32) -> Window {
    Window::builder().ttl(secs(1)).ratio(ratio).min_per_second(min_per_second).build().unwrap()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn bd_17_tokens(steps in steps(), capacity in 5_u32..60, reward in 0_u32..6, refill in 0_u32..4) {
        let tokens = Tokens::builder().capacity(capacity).reward(reward).refill(refill, secs(1));
        play_both(|| tokens.build().unwrap(), &steps, |book| {
            let came = u64::from(capacity) * 1_000 + u64::from(reward) * book.successes * 1_000
                + u64::from(refill) * (book.now / 1_000_000);
            prop_assert!(book.retries * 5_000 <= came, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_tokens_of_the_aws_sdks(steps in steps(), capacity in 14_u32..90) {
        let tokens = Tokens::AWS_2026.capacity(capacity);
        play_both(|| tokens.build().unwrap(), &steps, |book| {
            prop_assert!(book.retries * 14 <= u64::from(capacity) + 14 * book.successes, "{book:?}");
            Ok(())
        })?;
    }

    /// For ever, and not only in a window: a retry passes out of it no earlier than the calls that paid for it.
    #[test]
    fn bd_17_window(steps in steps(), ratio in ratio()) {
        play_both(|| window(ratio, 0), &steps, |book| {
            prop_assert!(book.retries <= ratio.of(book.calls), "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_window_with_a_minimum_in_every_window(steps in steps(), ratio in ratio(), least in 0_u32..5) {
        let slot = Duration::from_millis(100).as_nanos() as u64;
        play_both(|| window(ratio, least), &steps, |book| {
            // The slot in which the retry was lent, and the nine before it.
            let (calls, retries) = book.since((book.now / slot).saturating_sub(9) * slot);
            prop_assert!(retries <= ratio.of(calls) + u64::from(least), "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_lifetime(steps in steps(), ratio in (0_u32..1_000_000).prop_map(Ratio::millionths), bootstrap in 0_u32..50) {
        play_both(|| Lifetime::with(ratio, bootstrap).unwrap(), &steps, |book| {
            let (ratio, whole) = (u64::from(ratio.as_millionths()), 1_000_000);
            let most = u64::from(bootstrap).saturating_sub(1).max(ratio * book.calls / (whole - ratio));
            prop_assert!(book.retries <= most, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_throttle(steps in steps(), max in 1_u32..30, ratio in 1_u32..1_500) {
        play_both(|| Throttle::new(max, Ratio::millionths(ratio * 1_000)).unwrap(), &steps, |book| {
            let half = u64::from(max) * 500;
            prop_assert!(book.retries * 1_000 < half + u64::from(ratio) * book.successes, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_success_rate(steps in steps(), ratio in (1_u32..=1_000_000).prop_map(Ratio::millionths), last in 1_u32..=64) {
        let tolerated = Ratio::millionths(1_000_000 - ratio.as_millionths()).of(u64::from(last));
        play_both(|| SuccessRate::with(ratio, last).unwrap(), &steps, |book| {
            let windows = 1 + book.successes / (u64::from(last) - tolerated);
            prop_assert!(book.retries <= tolerated * windows, "{book:?}");
            Ok(())
        })?;
    }

    #[test]
    fn bd_17_concurrent(steps in steps(), ratio in ratio(), floor in 0_u32..5) {
        play_both(|| Concurrent::with(ratio, floor).unwrap(), &steps, |book| {
            let most = ratio.of(book.active).max(u64::from(floor));
            prop_assert!(book.retrying <= most, "{book:?}");
            Ok(())
        })?;
    }
}
