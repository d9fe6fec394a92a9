//! Delays are within their bounds for every seed, and reach them.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::schedule::{Backoff, draw};
use stagger_core::{Jitter, Policy, Seed};

use crate::laws::support::{any_delays, any_policy, cases, length};

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_delay_is_within_its_bounds(policy in any_policy(), seed in any::<u64>()) {
        let mut delays = policy.schedule(Seed::new(seed));
        for n in 1..40 {
            let bounds = policy.bounds(n);
            let delay = delays.next();
            prop_assert_eq!(delay.is_none(), *policy.backoff() == Backoff::Stop);
            prop_assert_eq!(policy.delay(n, Seed::new(seed)), delay);
            if let (Some((lo, hi)), Some(delay)) = (bounds, delay) {
                prop_assert!(lo <= delay && delay <= hi, "retry {n}: {delay:?} outside {lo:?}..{hi:?}");
            }
        }
    }

    /// `min(cap, U[ceiling, ceiling + length])`, as documented for `Jitter::Added`.
    #[test]
    fn additive_jitter_is_between_the_ceiling_and_the_cap(
        base in 1..1_000_000_u64, cap in prop::option::of(1..1_000_000_000_u64), added in length(), seed in any::<u64>()
    ) {
        let builder = Policy::exponential(Duration::from_nanos(base), Duration::MAX).jitter(Jitter::Added(added));
        let cap = cap.map_or(u64::MAX, |cap| cap.max(base));
        let builder = if cap == u64::MAX { builder.uncapped() } else { builder.cap(Duration::from_nanos(cap)) };
        let policy = builder.build().unwrap();
        for (n, delay) in (1..40_u32).zip(policy.schedule(Seed::new(seed))) {
            let ceiling = base << (n - 1).min(40);
            let longest = ceiling.saturating_add(u64::try_from(added.as_nanos()).unwrap_or(u64::MAX));
            let want = [ceiling, longest].map(|nanos| Duration::from_nanos(nanos.min(cap).min(i64::MAX as u64)));
            prop_assert_eq!(policy.bounds(n), Some((want[0], want[1])));
            prop_assert!(want[0] <= delay && delay <= want[1], "retry {n}: {delay:?} outside {want:?}");
            prop_assert_eq!(policy.delay(n, Seed::new(seed)), Some(delay));
        }
        prop_assert_eq!(policy.to_string().parse(), Ok(policy));
    }

    #[test]
    fn the_drawn_spread_is_at_most_the_configured_spread(longest in length(), seed in any::<u64>()) {
        let policy = Policy::DEFAULT.to_builder().spread(longest).build().unwrap();
        prop_assert!(policy.first_spread(Seed::new(seed)) <= longest);
    }

    #[test]
    fn draws_are_monotonic_and_reach_both_ends(lo in length(), more in length(), a in any::<u64>(), b in any::<u64>()) {
        let hi = lo.saturating_add(more);
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(draw(lo, hi, a) <= draw(lo, hi, b));
        let hi = hi.min(Duration::from_nanos(i64::MAX as u64));
        prop_assert_eq!((draw(lo, hi, 0), draw(lo, hi, u64::MAX)), (lo, hi));
        prop_assert_eq!(draw(hi, lo, a), hi);
    }

    /// A clone continues from the position of the original, and they advance independently.
    #[test]
    fn a_cloned_schedule_yields_the_same_delays(policy in any_delays(), seed in any::<u64>(), taken in 0..20_usize) {
        let mut schedule = policy.schedule(Seed::new(seed));
        schedule.by_ref().take(taken).for_each(drop);
        let clone = schedule.clone();
        prop_assert!(schedule.take(10).eq(clone.take(10)));
    }

    #[test]
    fn the_number_of_delays_is_the_number_of_retries(policy in any_policy(), seed in any::<u64>()) {
        let want = match (policy.backoff(), policy.max_attempts()) {
            (Backoff::Stop, _) => 0,
            (_, Some(most)) => 100.min(most.get() as usize - 1),
            (_, None) => 100,
        };
        prop_assert_eq!(policy.delays(Seed::new(seed)).take(100).count(), want);
    }
}
