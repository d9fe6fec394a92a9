//! Meanings 6 to 9, 11, 12, 14 and 15: the behavior of a call.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::budget::RetryControl;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{
    DelaySource, FailureKind, Guard, Guards, HintMode, NestedRetries, Outcome, Policy, Ratio, Seed, ServerHint,
    StopReason,
};

use crate::laws::support::{Call, CountingClock, RecordingGuard, any_delays, at, cases, length, secs};

fn outcome() -> impl Strategy<Value = Outcome> {
    let kind = prop::sample::select(vec![FailureKind::Transient, FailureKind::Throttled, FailureKind::LocalExhaustion]);
    let hint = prop::option::of(length().prop_map(ServerHint::AtLeast));
    prop_oneof![
        4 => (kind, hint).prop_map(|(kind, hint)| Outcome::Failed { kind, hint }),
        1 => Just(Outcome::NotProcessed),
        1 => Just(Outcome::Permanent),
        1 => prop::sample::select(vec![FailureKind::Transient, FailureKind::Throttled, FailureKind::LocalExhaustion])
            .prop_map(|kind| Outcome::UnsafeToRetry { kind, hint: None }),
        1 => Just(Outcome::Cancelled),
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn meaning_06_max_elapsed_includes_attempts_and_next_delay(
        policy in any_delays(), seed in any::<u64>(), took in 1..1_u64 << 50, times in 0.0..8.0_f64,
    ) {
        let took = Duration::from_nanos(took);
        let limit = (policy.base() + took).mul_f64(times).min(secs(1 << 32)).max(policy.base()).max(policy.floor());
        let policy = policy.to_builder().unlimited_attempts().max_elapsed(limit).build();
        prop_assume!(policy.is_ok() && limit < secs(1 << 33) && limit < 1_000 * took);
        let policy = policy.unwrap();
        let trace = Call::new(&policy).seed(seed).took(took).failing();
        // By definition, a retry starts unless `elapsed + delay > max_elapsed`.
        let mut elapsed = took;
        let mut waits = Vec::new();
        for delay in policy.schedule(Seed::new(seed)) {
            if elapsed + delay > limit {
                break;
            }
            waits.push(delay);
            elapsed += delay + took;
        }
        prop_assert_eq!(trace.waits, waits);
        prop_assert_eq!(trace.stop, Some(StopReason::Elapsed));
    }

    #[test]
    fn meaning_06_zero_is_a_limit_and_none_is_unlimited(took in 1..1_000_000_u64) {
        let took = Duration::from_nanos(took);
        let policy = Policy::zero().unlimited_attempts().max_elapsed(Duration::ZERO);
        let trace = Call::new(&policy.build().unwrap()).took(took).failing();
        prop_assert_eq!((trace.runs, trace.stop), (1, Some(StopReason::Elapsed)));
        let policy = policy.unlimited_elapsed().build().unwrap();
        prop_assert_eq!(policy.max_elapsed(), None);
        prop_assert_eq!(Call::new(&policy).took(secs(86_400)).run([Outcome::TRANSIENT; 50]).runs, 51);
    }

    #[test]
    fn meaning_06_the_clock_is_read_only_if_needed(
        outcomes in prop::collection::vec(outcome(), 1..9), seed in any::<u64>(),
    ) {
        let (clock, mut state) = (CountingClock::at(at(secs(1))), RetryState::new());
        let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(seed));
        for outcome in outcomes {
            let permit = retry.begin(Permits::NONE, clock.reader(), &Guards::none()).unwrap();
            let _ = retry.decide(outcome, permit, clock.reader(), &Guards::none());
        }
        prop_assert_eq!(clock.take_reads(), 0);
    }

    #[test]
    fn meaning_07_the_operation_runs_once_unless_breaker_open_or_deadline_passed(
        policy in any_delays(), expired in any::<bool>(), nested in any::<bool>(), open in any::<bool>(),
    ) {
        let (budget, breaker) = (RecordingGuard::budget().rejecting(), RecordingGuard::breaker());
        breaker.set_open(open);
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let guards = Guards::of(&list);
        let guards = if nested { guards.nested(NestedRetries::Disable) } else { guards };
        let mut call = Call::new(&policy);
        call.guards = guards;
        call.deadline = expired.then_some(at(Duration::ZERO));
        let trace = call.run([]);
        let want = match (expired, open) {
            (true, _) => (0, Some(StopReason::Deadline)),
            (_, true) => (0, Some(StopReason::BREAKER)),
            _ => (1, None),
        };
        prop_assert_eq!((trace.runs, trace.stop), want);
    }

    #[test]
    fn meaning_07_a_late_success_is_still_a_success(took in length()) {
        let policy = Policy::zero().max_elapsed(Duration::ZERO).build().unwrap();
        let deadline = Call::START.saturating_add(Duration::from_nanos(1));
        prop_assert_eq!(Call::new(&policy).took(took).deadline(deadline).run([]).stop, None);
    }

    #[test]
    fn meaning_08_a_hint_is_a_minimum_and_is_spread(
        policy in any_delays(), seed in any::<u64>(), asked in length(), share in 0..=1_000_000_u32,
    ) {
        let share = Ratio::millionths(share);
        let policy = policy.to_builder().max_attempts(2).unlimited_hint().hint_spread(share).build().unwrap();
        let failed = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(asked)) };
        let trace = Call::new(&policy).seed(seed).run([failed]);
        let above = policy.bounds(1).unwrap().1.max(Duration::from_nanos(share.of(asked.as_nanos() as u64)));
        prop_assert!(asked <= trace.waits[0] && trace.waits[0] <= asked + above, "{:?}", trace.waits);
        prop_assert_eq!(trace.sources, [DelaySource::Hint]);
    }

    #[test]
    fn meaning_08_a_reserved_hint_is_exact_in_every_mode(
        policy in any_delays(), seed in any::<u64>(), asked in length(), mode in 0..3_usize,
    ) {
        let mode = [HintMode::AtLeast, HintMode::Exact, HintMode::Clamp(secs(5))][mode];
        let policy = policy.to_builder().max_attempts(2).unlimited_hint().hint_mode(mode).build().unwrap();
        let failed = Outcome::throttled(Some(ServerHint::Reserved(asked)));
        prop_assert_eq!(Call::new(&policy).seed(seed).run([failed]).waits, [asked]);
    }

    #[test]
    fn meaning_08_hinted_retries_count_against_every_limit(asked in 1..100_u64, most in 1..9_u32) {
        let asked = secs(asked);
        let budget = RecordingGuard::budget();
        let policy = Policy::DEFAULT.to_builder().max_attempts(most).unlimited_hint().build().unwrap();
        let mut call = Call::new(&policy);
        let list: [&dyn Guard; 1] = [&budget];
        call.guards = Guards::of(&list);
        let trace = call.run(vec![Outcome::throttled(Some(ServerHint::Reserved(asked))); 20]);
        prop_assert_eq!(trace.attempts, most);
        prop_assert_eq!(trace.last_start, asked * (most - 1));
        let charged = budget.events().iter().filter(|event| event.starts_with("reserve")).count();
        prop_assert_eq!(charged as u32, most - 1);
    }

    #[test]
    fn meaning_09_the_budget_is_charged_before_the_sleep(outcomes in prop::collection::vec(outcome(), 1..6)) {
        let budget = RecordingGuard::budget();
        let list: [&dyn Guard; 1] = [&budget];
        let guards = Guards::of(&list);
        let policy = Policy::DEFAULT.to_builder().unlimited_attempts().unlimited_hint().build().unwrap();
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        let mut permit = Permits::NONE;
        for outcome in outcomes {
            let begun = retry.begin(permit, || at(secs(1)), &guards).unwrap();
            prop_assert_eq!(budget.outstanding(), 1);
            let decision = retry.decide(outcome, begun, || at(secs(1)), &guards);
            let Decision::Retry { permit: granted, .. } = decision else {
                prop_assert_eq!(budget.outstanding(), 0);
                return Ok(());
            };
            // The permit for the retry is held during the sleep.
            prop_assert_eq!(budget.outstanding(), 1);
            permit = granted;
        }
        guards.release(permit, || at(secs(1)));
        budget.assert_balanced();
    }

    #[test]
    fn meaning_09_ratios_are_exact_in_millionths(millionths in 0..=1_000_000_u32, whole in any::<u64>()) {
        let share = Ratio::millionths(millionths);
        prop_assert_eq!(u128::from(share.of(whole)), u128::from(whole) * u128::from(millionths) / 1_000_000);
        let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
        prop_assert_eq!(text.parse(), Ok(share));
        let finer = format!("0.{:06}1", millionths % 1_000_000);
        prop_assert!(finer.parse::<Ratio>().is_err());
    }

    #[test]
    fn meaning_11_a_dropped_call_returns_its_permits(asleep in any::<bool>(), failures in 0..4_usize) {
        let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
        let list: [&dyn Guard; 2] = [&breaker, &budget];
        let guards = Guards::of(&list);
        let policy = Policy::DEFAULT.to_builder().max_attempts(9).build().unwrap();
        let (mut state, now) = (RetryState::new(), || at(secs(1)));
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        let mut permit = Permits::NONE;
        for _ in 0..failures {
            let begun = retry.begin(permit, now, &guards).unwrap();
            let Decision::Retry { permit: granted, .. } = retry.decide(Outcome::TRANSIENT, begun, now, &guards) else {
                panic!("the retry is allowed")
            };
            permit = granted;
        }
        if asleep {
            guards.release(permit, || at(secs(1)));
        } else {
            let begun = retry.begin(permit, now, &guards).unwrap();
            guards.abandon(begun, now);
        }
        budget.assert_balanced();
        breaker.assert_balanced();
    }

    #[test]
    fn meaning_12_only_health_resets_the_attempts(
        uptimes in prop::collection::vec(0..30_u64, 1..40), stable_after_secs in 1..30_u64,
    ) {
        let policy = Policy::constant(secs(1)).stable_after(secs(stable_after_secs)).unlimited_attempts();
        let policy = policy.build().unwrap();
        let (mut state, now, guards) = (RetryState::new(), || at(secs(1)), Guards::none());
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        let mut count = 0;
        for uptime in uptimes {
            let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
            count += 1;
            prop_assert_eq!(retry.attempt(), count);
            prop_assert_eq!(retry.reset_if_healthy(secs(uptime)), uptime >= stable_after_secs);
            if uptime >= stable_after_secs {
                count = 0;
            }
            let _ = retry.decide(Outcome::TRANSIENT, permit, now, &guards);
        }
    }

    #[test]
    fn meaning_14_delays_round_to_a_nearest_tick_and_hints_do_not(
        seed in any::<u64>(), after in 1..10_000_000_u64, tick in 2..3_000_000_u64,
    ) {
        let mut state = RetryState::new();
        let retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(seed));
        let (after, resolution) = (Duration::from_nanos(after), Duration::from_nanos(tick));
        prop_assert_eq!(retry.on_ticks(after, DelaySource::Hint, resolution), after);
        let asked = retry.on_ticks(after, DelaySource::Schedule, resolution).as_nanos() as u64;
        let ticks = asked.div_ceil(tick);
        prop_assert!(ticks == after.as_nanos() as u64 / tick || ticks == (after.as_nanos() as u64).div_ceil(tick));
        // Just after the start of the last tick, so that rounding in the timer does not add another one.
        prop_assert!(asked == 0 || asked % tick == 1 % tick, "{asked} on {tick}");
    }

    #[test]
    fn meaning_15_a_nested_call_makes_one_attempt_uncharged(
        policy in any_delays(), seed in any::<u64>(), outcome in outcome(),
    ) {
        let budget = RecordingGuard::budget();
        let mut call = Call::new(&policy).seed(seed);
        let list: [&dyn Guard; 1] = [&budget];
        call.guards = Guards::of(&list).nested(NestedRetries::Disable);
        let trace = call.run([outcome]);
        prop_assert_eq!(trace.attempts, 1);
        prop_assert!(budget.events().iter().all(|event| !event.starts_with("reserve")));
        if let Outcome::Failed { .. } = outcome {
            prop_assert_eq!((trace.runs, trace.stop), (1, Some(StopReason::Nested)));
        }
    }

    /// The budget is charged for retries only, and each of them is recorded once.
    #[test]
    fn meaning_15_a_nested_call_charges_a_shared_budget_retries(
        policy in any_delays(), seed in any::<u64>(), outcomes in prop::collection::vec(outcome(), 1..8),
    ) {
        let (budget, alone) = (RecordingGuard::budget(), RecordingGuard::budget());
        let mut call = Call::new(&policy).seed(seed);
        let list: [&dyn Guard; 1] = [&budget];
        call.guards = Guards::of(&list).nested(NestedRetries::ShareBudget);
        let trace = call.run(outcomes.clone());
        let list: [&dyn Guard; 1] = [&alone];
        let same = Call::new(&policy).seed(seed).guards(&list).run(outcomes);
        prop_assert_eq!((trace.attempts, trace.stop), (same.attempts, same.stop));
        budget.assert_balanced();
        let alone: Vec<_> = alone.events().into_iter().filter(|event| event.starts_with("reserve")).collect();
        let events = budget.events().into_iter();
        let (charged, recorded): (Vec<_>, Vec<_>) = events.partition(|event| event.starts_with("reserve"));
        prop_assert_eq!(&charged, &alone);
        let recorded: Vec<_> = recorded.into_iter().filter(|event| event != "ask retry").collect();
        prop_assert_eq!(recorded.len(), charged.len());
        prop_assert!(recorded.iter().all(|event| event.starts_with("made")), "{recorded:?}");
    }

    #[test]
    fn meaning_15_a_nested_call_without_a_budget_does_not_retry(
        policy in any_delays(), seed in any::<u64>(), outcome in outcome(),
    ) {
        let mut call = Call::new(&policy).seed(seed);
        call.guards = Guards::none().nested(NestedRetries::ShareBudget);
        let shared = call.run([outcome]);
        let mut call = Call::new(&policy).seed(seed);
        call.guards = Guards::none().nested(NestedRetries::Disable);
        let disabled = call.run([outcome]);
        prop_assert_eq!((shared.attempts, shared.runs, shared.stop), (disabled.attempts, disabled.runs, disabled.stop));
    }
}

/// Layers that share a guard without a bound are not bounded together.
#[test]
fn meaning_15_a_nested_call_with_a_guard_that_does_not_bound_retries_does_not_retry() {
    let control = RetryControl::new();
    let mut call = Call::new(&Policy::DEFAULT);
    let list: [&dyn Guard; 1] = [&control];
    call.guards = Guards::of(&list).nested(NestedRetries::ShareBudget);
    let trace = call.run([Outcome::TRANSIENT]);
    assert_eq!((trace.runs, trace.stop), (1, Some(StopReason::Nested)));
}
