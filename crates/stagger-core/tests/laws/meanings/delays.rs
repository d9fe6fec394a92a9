//! Meanings 1 to 5: how a delay is computed.

use core::time::Duration;
use std::collections::HashSet;

use proptest::prelude::*;
use stagger_core::schedule::{Backoff, draw};
use stagger_core::{Jitter, Policy, Ratio, Seed};

use crate::laws::support::{any_delays, cases, length, oracle};

fn nanos((lo, hi): (Duration, Duration)) -> (u64, u64) {
    (lo.as_nanos() as u64, hi.as_nanos() as u64)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn meaning_01_jitter_is_drawn_after_the_cap(
        base in length(), times in 1..1_000_u32, jitter in 0..4_usize, seed in any::<u64>(),
    ) {
        let cap = base.saturating_mul(times).min(Duration::from_nanos(1 << 61));
        let base = base.min(cap);
        let jitter = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated][jitter];
        let policy = Policy::exponential(base, cap).jitter(jitter).build().unwrap();
        // `cap` is at most 1000 bases, and 2^10 is above 1000.
        for n in [12, 13, 100] {
            let (lo, hi) = policy.bounds(n).unwrap();
            let least = match jitter {
                Jitter::None => cap,
                Jitter::Full => Duration::ZERO,
                Jitter::Equal => cap / 2,
                _ => base,
            };
            prop_assert!(hi == cap || cap.as_nanos() > 1 << 53, "retry {n} reaches {hi:?} of {cap:?}");
            prop_assert!(lo.abs_diff(least) <= cap / 1_000_000_000, "retry {n} reaches down to {lo:?}, not {least:?}");
        }
        for delay in policy.schedule(Seed::new(seed)).take(30) {
            prop_assert!(delay <= cap);
        }
    }

    #[test]
    fn meaning_02_independent_jitters_have_documented_intervals(policy in any_delays()) {
        prop_assume!(policy.jitter() != Jitter::Decorrelated);
        for (n, ceiling) in (1..).zip(oracle::ceilings(&policy, 40)) {
            let want = oracle::interval(&policy, ceiling);
            prop_assert_eq!(policy.bounds(n).map(nanos), Some(want), "retry {}", n);
        }
    }

    #[test]
    fn meaning_02_decorrelated_spans_base_to_3_previous_delays(
        base in length(), above in length(), seed in any::<u64>(),
    ) {
        let cap = base.saturating_add(above);
        // Up to 104 days, an `f64` represents every nanosecond exactly.
        prop_assume!(cap < Duration::from_nanos(1 << 53));
        let policy = Policy::decorrelated(base, cap).build().unwrap();
        let mut previous = base;
        for (n, delay) in (1..40).zip(policy.schedule(Seed::new(seed))) {
            let hi = base.max(cap.min(3 * previous));
            let bits = oracle::bits(seed, 0, n, oracle::DELAY);
            prop_assert_eq!(delay, draw(base, hi, bits), "retry {} after {:?}", n, previous);
            previous = delay;
        }
    }

    #[test]
    fn meaning_02_default_jitter_is_full_if_ceilings_grow(delay in length()) {
        for (builder, want) in [
            (Policy::exponential(delay, Duration::MAX), Jitter::Full),
            (Policy::linear(delay, delay, Duration::MAX), Jitter::Full),
            (Policy::constant(delay), Jitter::Equal),
            (Policy::list(&[delay]), Jitter::Equal),
            (Policy::decorrelated(delay, Duration::MAX), Jitter::Decorrelated),
        ] {
            prop_assert_eq!(builder.build().unwrap().jitter(), want);
        }
        prop_assert_eq!(Policy::zero().build().unwrap().jitter(), Jitter::None);
        prop_assert_eq!(Policy::stop().build().unwrap().jitter(), Jitter::None);
    }

    #[test]
    fn meaning_03_factor_jitter_exceeds_the_cap_by_its_ratio(
        base in 1..=1_u64 << 47, times in 1..50_u64, share in 0..=1_000_000_u32, n in 1..20_u32,
    ) {
        let (base, cap) = (Duration::from_nanos(base), Duration::from_nanos(base * times));
        let share = Ratio::millionths(share);
        let policy = Policy::exponential(base, cap).jitter(Jitter::Factor(share)).build().unwrap();
        let ceiling = (base.as_nanos() << (n - 1)).min(cap.as_nanos()) as u64;
        let (lo, hi) = nanos(policy.bounds(n).unwrap());
        prop_assert_eq!(lo + hi, 2 * ceiling);
        prop_assert!(hi.abs_diff(ceiling + share.of(ceiling)) <= 1 + (ceiling >> 50));
    }

    #[test]
    fn meaning_04_draws_are_numbered_and_randomly_accessible(
        policy in any_delays(), seed in any::<u64>(),
    ) {
        prop_assume!(policy.jitter() != Jitter::Decorrelated);
        let series = policy.schedule(Seed::new(seed));
        for ((n, ceiling), delay) in (1..).zip(oracle::ceilings(&policy, 40)).zip(series) {
            let (lo, hi) = oracle::interval(&policy, ceiling);
            let want = oracle::draw(lo, hi, oracle::bits(seed, 0, n, oracle::DELAY));
            prop_assert_eq!(delay, Duration::from_nanos(want), "retry {}", n);
            prop_assert_eq!(policy.delay(n as u32, Seed::new(seed)), Some(delay));
        }
    }

    #[test]
    fn meaning_04_random_access_replays_decorrelated_draws(
        base in length(), above in length(), seed in any::<u64>(),
    ) {
        let policy = Policy::decorrelated(base, base.saturating_add(above)).build().unwrap();
        for (n, delay) in (1..40).zip(policy.schedule(Seed::new(seed))) {
            prop_assert_eq!(policy.delay(n, Seed::new(seed)), Some(delay), "retry {}", n);
        }
    }

    #[test]
    fn meaning_04_the_spread_has_its_own_draw_number(longest in length(), seed in any::<u64>()) {
        let plain = Policy::DEFAULT;
        let spread = plain.to_builder().spread(longest).build().unwrap();
        let want = oracle::draw(0, longest.as_nanos() as u64, oracle::bits(seed, 0, 0, oracle::SPREAD));
        prop_assert_eq!(spread.first_spread(Seed::new(seed)), Duration::from_nanos(want));
        prop_assert!(plain.schedule(Seed::new(seed)).take(9).eq(spread.schedule(Seed::new(seed)).take(9)));
    }

    #[test]
    fn meaning_05_every_call_has_its_own_seed(
        seed in any::<u64>(), ids in prop::collection::hash_set(any::<u64>(), 2..60),
    ) {
        let root = Seed::new(seed);
        let policy = Policy::exponential(Duration::from_secs(3600), Duration::MAX).build().unwrap();
        let first: HashSet<_> = ids.iter().map(|&id| policy.delay(1, root.for_call(id)).unwrap()).collect();
        // An hour has 2^41 nanoseconds: two of sixty draws are equal once in a billion cases.
        prop_assert!(first.len() + 1 >= ids.len());
        let keys: HashSet<_> = ids.iter().map(|&id| root.for_call(id).get()).collect();
        prop_assert_eq!(keys.len(), ids.len());
        prop_assert_eq!(Seed::new(root.get()), root);
    }
}

#[test]
fn meaning_02_a_list_keeps_its_delays_and_repeats_the_last() {
    let delays = [10, 20, 5].map(Duration::from_millis);
    let policy = Policy::list(&delays).jitter(Jitter::None).build().unwrap();
    let Backoff::List(list) = policy.backoff() else { panic!("the backoff must be a list") };
    assert!(list.iter().eq(delays));
    assert_eq!((list.len(), list.is_empty()), (3, false));
    assert_eq!(format!("{list:?}"), "[10ms, 20ms, 5ms]");
    let series: Vec<_> = policy.schedule(Seed::new(1)).take(5).map(|delay| delay.as_millis()).collect();
    assert_eq!(series, [10, 20, 5, 5, 5]);
}
