//! Runs of a mass disconnect: which engine, which server, and with or without guards.

use stagger_core::admission::{Admission, Secret};
use stagger_core::{Policy, Seed, ServerHint};

use super::guarded::GuardedSimulation;
use super::server::{FixedHint, Server, Staggered};
use super::simulation::ReconnectSimulation;
use super::{ReconnectFigures, ReconnectScenario, RetryAfter};
use crate::engine::{Engine, Progress};
use crate::outage::ProcessGuards;
use crate::scenario::{ScenarioError, ScenarioProblem};

/// Creates the guards of a process, if clients have any.
type MakeGuards<'a> = Option<&'a dyn Fn(Seed) -> ProcessGuards>;

impl ReconnectScenario {
    /// Runs the scenario with this policy. Each client derives its own seed from `seed`.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> ReconnectFigures {
        // This progress is not shared, so it is never cancelled.
        self.run_with_progress(policy, seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the scenario like [`run`](Self::run) and reports its progress; returns `None` if it was cancelled.
    #[must_use]
    pub fn run_with_progress(&self, policy: &Policy, seed: Seed, progress: &Progress) -> Option<ReconnectFigures> {
        let min_event_interval = self.network.min_round_trip().max(1);
        self.run_with_engine(Engine::Calendar { min_event_interval }, policy, None, seed, progress)
    }

    /// Runs the scenario like [`run_with_progress`](Self::run_with_progress) with clients that have guards. `guards` is
    /// called once per process, with a seed for guards that use randomness.
    ///
    /// # Errors
    /// [`ScenarioProblem::GuardedCrashLoop`] if the server of the scenario is in a crash loop.
    pub fn run_with_guards(
        &self,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
        progress: &Progress,
    ) -> Result<Option<ReconnectFigures>, ScenarioError> {
        ScenarioError::check([(ScenarioProblem::GuardedCrashLoop, self.crash_loop.is_some())])?;
        // Calls that wait for their turn ask again at any time.
        Ok(self.run_with_engine(Engine::Heap, policy, Some(&guards), seed, progress))
    }

    fn run_with_engine(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: MakeGuards<'_>,
        seed: Seed,
        progress: &Progress,
    ) -> Option<ReconnectFigures> {
        // Fixed, so that runs can be repeated: nobody makes up reservations here.
        const SECRET: Secret = Secret::new([1; 16]);
        // `build` has ruled out rates that are too low for reservations.
        let admission = Admission::per_second(self.rate() as u32).burst(self.backlog).build(SECRET);
        match (self.retry_after, admission) {
            (RetryAfter::Reservations, Ok(admission)) => {
                self.simulate(engine, policy, guards, seed, admission, progress)
            }
            (RetryAfter::Staggered, _) => self.simulate(engine, policy, guards, seed, Staggered::default(), progress),
            (RetryAfter::Fixed(after), _) => {
                self.simulate(engine, policy, guards, seed, FixedHint(Some(ServerHint::AtLeast(after))), progress)
            }
            _ => self.simulate(engine, policy, guards, seed, FixedHint(None), progress),
        }
    }

    fn simulate(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: MakeGuards<'_>,
        seed: Seed,
        server: impl Server,
        progress: &Progress,
    ) -> Option<ReconnectFigures> {
        if let Some(guards) = guards {
            let mut simulation = GuardedSimulation::new(self, policy, guards, seed, server);
            engine.run(&mut simulation, progress).ok()?;
            return Some(simulation.figures());
        }
        let mut simulation = ReconnectSimulation::new(self, policy, seed, server);
        engine.run(&mut simulation, progress).ok()?;
        // After a crash of the server, the run continues with the events that are left.
        while simulation.restart() {
            engine.run(&mut simulation, progress).ok()?;
        }
        Some(simulation.figures())
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;
    use stagger_core::profile::Profile;
    use stagger_core::{Jitter, Ratio};

    use crate::reconnect::FirstAttempt;
    use crate::reconnect::scenario::MAX_HORIZON;

    use super::*;

    /// Asserts that the reference engine gives the figures of the scenario's own.
    fn assert_engines_agree(scenario: &ReconnectScenario, policy: &Policy, seed: Seed) {
        let heap = scenario.run_with_engine(Engine::Heap, policy, None, seed, &Progress::new());
        assert!(Some(scenario.run(policy, seed)) == heap, "the engines differ: {scenario:?}, {policy}");
    }

    fn policies() -> impl Strategy<Value = Policy> {
        let jitters = prop_oneof![
            Just(Jitter::None),
            Just(Jitter::Full),
            Just(Jitter::Equal),
            Just(Jitter::Decorrelated),
            Just(Jitter::Factor(Ratio::percent(30))),
        ];
        let made =
            (1_u64..2_000, 1_u64..50, jitters, 0_u64..3_000, prop_oneof![Just(None), (1_u32..12).prop_map(Some)])
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
        let crashes = prop_oneof![Just(0_u32), 0_u32..5];
        let size = prop_oneof![1_u64..50, 1_u64..3_000];
        (size, 1.0..5_000.0_f64, 1_u32..300, ways, micros(2_000_000), micros(3_000_000), first, hints(), crashes)
            .prop_map(|(clients, rate, backlog, (least, more), window, down, first, hints, crashes)| {
                ReconnectScenario::builder(clients)
                    .rate(rate)
                    .backlog(backlog)
                    .one_way(Duration::from_micros(least), Duration::from_micros(least + more))
                    .disconnect_window(window)
                    .down_for(down)
                    .horizon(Duration::from_secs(100))
                    .first_attempt(first)
                    .retry_after(hints)
                    .crash_loop(crashes, rate * 0.8)
                    .sample(3)
                    .build()
                    .unwrap()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn both_engines_give_the_same_figures(scenario in scenarios(), policy in policies(), seed: u64) {
            assert_engines_agree(&scenario, &policy, Seed::new(seed));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn clients_that_have_no_guards_do_the_same_in_a_run_with_guards(
            scenario in scenarios(), policy in policies(), seed: u64,
        ) {
            // Of what happens in the same microsecond, the order may differ.
            let apart = scenario.network.min_round_trip() > 200 && scenario.disconnect_window > 200_000;
            if let (true, Ok(guarded)) =
                (apart, scenario.run_with_guards(&policy, |_| ProcessGuards::none(), Seed::new(seed), &Progress::new()))
            {
                prop_assert_eq!(guarded, Some(scenario.run(&policy, Seed::new(seed))), "{:?}, {}", scenario, policy);
            }
        }
    }

    /// Uses so many clients that bins are sorted by counting, with many events per microsecond, and delays of hours.
    #[test]
    fn both_engines_give_the_same_figures_at_the_limits() {
        let many = ReconnectScenario::builder(200_000).rate(4_000.0).backlog(2_000).horizon(Duration::from_secs(5));
        let long = ReconnectScenario::builder(500).rate(0.002).backlog(3).horizon(MAX_HORIZON);
        for (builder, policy) in [
            (many, "exponential base=500ms cap=30s max-attempts=inf"),
            (many, "decorrelated base=500ms cap=30s max-attempts=inf"),
            (many, "exponential base=500ms cap=30s max-attempts=inf jitter=none"),
            (long, "list delays=1h,20h,50h jitter=full"),
            (long, "exponential base=10m cap=30h max-attempts=9 jitter=none"),
        ] {
            assert_engines_agree(&builder.build().unwrap(), &policy.parse().unwrap(), Seed::new(5));
        }
    }
}
