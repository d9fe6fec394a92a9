//! Tests with hostile scenarios: every setting at its limits and beyond, in every combination. They run or are rejected
//! with a fix.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::{Jitter, Policy, Ratio, Seed, profile::Profile};
use stagger_sim::outage::{OutageKind, ProcessGuards};
use stagger_sim::reconnect::{FirstAttempt, RetryAfter};
use stagger_sim::{ScenarioError, fluid, occ, outage, reconnect};

/// 2^38 − 1 µs: the latest time that can be represented.
const LAST: Duration = Duration::from_micros((1 << 38) - 1);

fn lengths() -> impl Strategy<Value = Duration> {
    let hour = Duration::from_secs(3_600);
    let ends =
        [Duration::ZERO, Duration::from_nanos(1), Duration::from_nanos(1_999), hour, hour * 76, LAST, Duration::MAX];
    prop_oneof![
        6 => (0..10_000_000_u64).prop_map(Duration::from_micros),
        1 => (0..200_000_000_000_u64).prop_map(Duration::from_micros),
        1 => prop::sample::select(ends.to_vec()),
    ]
}

fn horizons() -> impl Strategy<Value = Duration> {
    prop_oneof![5 => (60..200_000_u64).prop_map(Duration::from_secs), 2 => Just(LAST), 1 => lengths()]
}

fn rates() -> impl Strategy<Value = f64> {
    let ends = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 5e-324, 1e-9, 0.5, 1e9, 1.1e9, f64::MAX];
    prop_oneof![8 => 0.01..1e5_f64, 1 => prop::sample::select(ends.to_vec())]
}

/// Generates counts that are far too large or small, because a million clients would only make the test slow.
fn counts(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![12 => 1..most, 1 => prop::sample::select(vec![0, 1 << 27, 10_000_000_000, u64::MAX])]
}

/// Generates policies with a limit of attempts, because others could run to a horizon of three days.
fn policies() -> impl Strategy<Value = Policy> {
    let jitters = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::Factor(Ratio::ONE)];
    let jitters = prop::sample::select(jitters.to_vec());
    let made = (lengths(), lengths(), jitters, lengths(), 1.0..100.0_f64).prop_filter_map(
        "the policy is valid",
        |(base, cap, jitter, spread, multiplier)| {
            let builder = Policy::exponential(base, cap).multiplier(multiplier).jitter(jitter).spread(spread);
            builder.max_attempts(12).unlimited_elapsed().unlimited_hint().build().ok()
        },
    );
    let named = (0..Profile::all().count())
        .prop_map(|n| Profile::all().nth(n).unwrap().policy().to_builder().max_attempts(12).build().unwrap());
    prop_oneof![2 => made, 1 => named, 1 => Just(Policy::zero().max_attempts(12).build().unwrap())]
}

fn hints() -> impl Strategy<Value = RetryAfter> {
    prop_oneof![
        Just(RetryAfter::None),
        lengths().prop_map(RetryAfter::Fixed),
        Just(RetryAfter::Staggered),
        Just(RetryAfter::Reservations)
    ]
}

fn disconnects() -> impl Strategy<Value = Result<reconnect::ReconnectScenario, ScenarioError>> {
    let first = prop_oneof![Just(FirstAttempt::AfterDelay), Just(FirstAttempt::Immediate)];
    let backlogs = prop_oneof![1 => Just(0), 2 => Just(1), 2 => Just(u32::MAX), 8 => 1..50_u32];
    let server = (counts(50), rates(), backlogs, hints());
    let times = (lengths(), lengths(), lengths(), lengths(), horizons(), first);
    (server, times).prop_map(|((clients, rate, backlog, hints), (least, more, window, down, horizon, first))| {
        reconnect::ReconnectScenario::builder(clients)
            .rate(rate)
            .backlog(backlog)
            .one_way(least, least.saturating_add(more))
            .disconnect_window(window)
            .down_for(down)
            .horizon(horizon)
            .first_attempt(first)
            .retry_after(hints)
            .sample(3)
            .build()
    })
}

fn outages() -> impl Strategy<Value = Result<outage::OutageScenario, ScenarioError>> {
    let kinds = prop_oneof![Just(OutageKind::Stall), Just(OutageKind::Reject)];
    let sizes = (counts(50), counts(20)).prop_map(|(queue, processes)| (queue as u32, processes as u32));
    let times = (lengths(), lengths(), lengths(), lengths(), horizons());
    // Number of requests up to the horizon: few, or more than the limit.
    let ends = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-5, 1e12, f64::MAX];
    let requests = prop_oneof![12 => 0.1..200.0_f64, 1 => prop::sample::select(ends.to_vec())];
    (requests, rates(), sizes, kinds, times).prop_map(
        |(requests, capacity, (queue, processes), kind, (way, timeout, start, duration, horizon))| {
            let rate = requests / horizon.as_secs_f64().max(1e-6);
            outage::OutageScenario::builder(rate)
                .capacity(capacity)
                .queue(queue)
                .processes(processes)
                .outage(kind, start, duration)
                .one_way(way)
                .timeout(timeout)
                .horizon(horizon)
                .build()
        },
    )
}

fn writers() -> impl Strategy<Value = Result<occ::OccScenario, ScenarioError>> {
    (counts(30), lengths(), lengths())
        .prop_map(|(clients, mean, deviation)| occ::OccScenario::builder(clients).one_way(mean, deviation).build())
}

/// Returns whether the error suggests a fix for each problem, after a semicolon.
fn is_helpful(error: &ScenarioError) -> bool {
    error.problems().count() > 0 && error.problems().all(|problem| problem.to_string().contains("; "))
}

fn is_number(figure: f64) -> bool {
    figure.is_finite() && figure >= 0.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_mass_disconnect_is_rejected_or_accounts_for_all_clients(
        scenario in disconnects(), policy in policies(), seed: u64,
    ) {
        match scenario {
            Err(error) => prop_assert!(is_helpful(&error), "{}", error),
            Ok(scenario) => {
                let figures = scenario.run(&policy, Seed::new(seed));
                prop_assert_eq!(figures.connects.total(), figures.connected);
                prop_assert!(figures.attempts >= figures.connected);
                prop_assert_eq!(figures.t100.is_some(), figures.connected == figures.clients);
                prop_assert_eq!(figures.clients_by_attempts.iter().sum::<u64>(), figures.connected + figures.gave_up);
                let percentiles = (100 * figures.connected / figures.clients) as usize;
                prop_assert_eq!(figures.recovered_percentiles.len(), percentiles);
                prop_assert!(figures.recovered_percentiles.is_sorted());
                prop_assert_eq!(figures.recovered_percentiles.get(98).copied(), figures.recovered_p99);
                prop_assert_eq!(figures.connected + figures.gave_up + figures.unfinished, figures.clients);
                prop_assert!(figures.peak_backlog <= figures.clients, "backlog {}", figures.peak_backlog);
                prop_assert!(figures.peak_in_flight <= figures.clients, "{} in flight", figures.peak_in_flight);
                let efficiency = figures.efficiency();
                for share in [efficiency.attempts, efficiency.time, efficiency.mean_time].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&share), "{:?}", efficiency);
                }
                prop_assert!(figures.t100.is_none_or(|last| last <= LAST));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_outage_is_rejected_or_has_figures_within_their_ranges(
        scenario in outages(),
        policy in policies(),
        seed: u64,
    ) {
        match scenario {
            Err(error) => prop_assert!(is_helpful(&error), "{}", error),
            Ok(scenario) => {
                let figures = scenario.run(&policy, |_| ProcessGuards::none(), Seed::new(seed));
                prop_assert!(figures.successes.total() <= figures.requests.total());
                prop_assert!(figures.attempts.total() <= 12 * figures.requests.total());
                prop_assert!((0.0..=1.0).contains(&figures.success_ratio()), "{}", figures.success_ratio());
                for figure in [figures.amplification(), figures.final_goodput(), figures.final_load()] {
                    prop_assert!(is_number(figure), "{}", figure);
                }
                prop_assert_eq!(figures.state_at_horizon().is_down(), figures.recovery().is_none());
                prop_assert!(!figures.is_metastable() || figures.recovery().is_none());
            }
        }
    }

    #[test]
    fn an_occ_scenario_is_rejected_or_accounts_for_all_clients(
        scenario in writers(), policy in policies(), seed: u64,
    ) {
        match scenario {
            Err(error) => prop_assert!(is_helpful(&error), "{}", error),
            Ok(scenario) => {
                let figures = scenario.run(&policy, Seed::new(seed));
                prop_assert_eq!(figures.written + figures.gave_up, figures.clients);
                prop_assert!(figures.calls >= figures.written && figures.calls <= 12 * figures.clients);
                for figure in [figures.calls_per_client(), figures.time_per_client()] {
                    prop_assert!(is_number(figure), "{:?}", figures);
                }
            }
        }
    }

    #[test]
    fn fluid_shares_are_rejected_or_within_0_and_1(scenario in disconnects(), policy in policies()) {
        let Ok(scenario) = scenario else { return Ok(()) };
        match fluid::run(&scenario, &policy) {
            Err(reason) => prop_assert!(reason.to_string().contains("; "), "{}", reason),
            Ok(figures) => {
                prop_assert!(is_number(figures.attempts_per_client) && figures.attempts_per_client <= 12.001);
                prop_assert!(is_number(figures.peak()) && is_number(figures.peak_backlog));
                let finished = figures.connected + figures.gave_up;
                prop_assert!((-1e-6..=1.000_001).contains(&finished), "{}", finished);
            }
        }
    }
}
