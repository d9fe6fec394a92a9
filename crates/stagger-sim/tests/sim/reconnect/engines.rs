//! Compares both engines with each other.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::{Jitter, Policy, Ratio, Seed, profile::Profile};
use stagger_sim::Engine;
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario, RetryAfter};

fn policies() -> impl Strategy<Value = Policy> {
    let jitters = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        Just(Jitter::Factor(Ratio::percent(30))),
    ];
    let made = (1_u64..2_000, 1_u64..50, jitters, 0_u64..3_000, prop_oneof![Just(None), (1_u32..12).prop_map(Some)])
        .prop_map(|(base, grows, jitter, spread, most)| {
            let base = Duration::from_millis(base);
            let builder = Policy::exponential(base, base * u32::try_from(grows).unwrap())
                .jitter(jitter)
                .spread(Duration::from_millis(spread));
            most.map_or(builder.unlimited_attempts(), |most| builder.max_attempts(most)).build().unwrap()
        });
    let named = (0..Profile::all().count()).prop_map(|n| Profile::all().nth(n).unwrap().policy());
    prop_oneof![3 => made, 1 => named]
}

fn hints() -> impl Strategy<Value = RetryAfter> {
    prop_oneof![
        Just(RetryAfter::None),
        (0_u64..5_000).prop_map(|millis| RetryAfter::Fixed(Duration::from_millis(millis))),
        Just(RetryAfter::Staggered),
        Just(RetryAfter::Reservations),
    ]
}

fn scenarios() -> impl Strategy<Value = ReconnectScenario> {
    let micros = |most: u64| (0..most).prop_map(Duration::from_micros);
    let first = prop_oneof![Just(FirstAttempt::AfterDelay), Just(FirstAttempt::Immediate)];
    let ways = prop_oneof![Just((0_u64, 0_u64)), (0_u64..50, 0_u64..50), (0_u64..60_000, 0_u64..60_000)];
    let size = prop_oneof![1_u64..50, 1_u64..3_000];
    (size, 1.0..5_000.0_f64, 1_u32..300, ways, micros(2_000_000), micros(3_000_000), first, hints()).prop_map(
        |(clients, rate, backlog, (least, more), window, down, first, hints)| {
            ReconnectScenario::builder(clients)
                .rate(rate)
                .backlog(backlog)
                .one_way(Duration::from_micros(least), Duration::from_micros(least + more))
                .disconnect_window(window)
                .down_for(down)
                .horizon(Duration::from_secs(100))
                .first_attempt(first)
                .retry_after(hints)
                .build()
                .unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_engines_give_the_same_figures(scenario in scenarios(), policy in policies(), seed: u64) {
        let seed = Seed::new(seed);
        let (calendar, heap) = (scenario.run(&policy, seed), scenario.run_with_engine(Engine::Heap, &policy, seed));
        prop_assert_eq!(calendar, heap);
    }

    #[test]
    fn all_clients_are_accounted_for(scenario in scenarios(), policy in policies(), seed: u64) {
        let figures = scenario.run(&policy, Seed::new(seed));
        prop_assert_eq!(figures.connected + figures.gave_up + figures.unfinished, figures.clients);
        prop_assert!(figures.attempts >= figures.connected);
        prop_assert_eq!(figures.connects.total(), figures.connected);
        prop_assert_eq!(figures.t100.is_some(), figures.connected == figures.clients);
        prop_assert_eq!(figures.clients_by_attempts.iter().sum::<u64>(), figures.connected + figures.gave_up);
        let percentiles = (100 * figures.connected / figures.clients) as usize;
        prop_assert_eq!(figures.recovered_percentiles.len(), percentiles);
        prop_assert!(figures.recovered_percentiles.is_sorted());
        prop_assert_eq!(figures.recovered_percentiles.get(98).copied(), figures.recovered_p99);
    }
}

/// Uses so many clients that bins are sorted by counting, with many events per microsecond.
#[test]
fn both_engines_give_the_same_figures_with_many_clients() {
    let short = Duration::from_secs(5);
    let scenario = ReconnectScenario::builder(200_000).rate(4_000.0).backlog(2_000).horizon(short).build().unwrap();
    for jitter in [Jitter::Full, Jitter::Decorrelated, Jitter::None] {
        let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30))
            .jitter(jitter)
            .unlimited_attempts()
            .build()
            .unwrap();
        let seed = Seed::new(5);
        assert!(scenario.run(&policy, seed) == scenario.run_with_engine(Engine::Heap, &policy, seed), "{jitter:?}");
    }
}
