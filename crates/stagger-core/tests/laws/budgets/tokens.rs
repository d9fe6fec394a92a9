//! The [`Tokens`] budget.

use stagger_core::budget::{BudgetProblem, Refund, Tokens, TokensBuilder, TokensState};
use stagger_core::guard::{End, Permit};
use stagger_core::profile::{AWS_SDK, AWS_SDK_2026};
use stagger_core::{FailureKind, Guard, Instant, Jitter, Outcome, Policy, Ratio, Seed, StopReason};

use super::{NOW, attempt, drain};
use crate::laws::support::{Call, at, ms, secs};

/// The AWS SDKs' costs for a server error that is neither a timeout nor throttling: 5 in the long-standing mode.
const SERVER_ERROR: TokensBuilder = Tokens::AWS.transient_cost(5);

fn held(tokens: &Tokens) -> u64 {
    tokens.snapshot().tokens
}

/// Acquires `retries` permits and returns the tokens left after each.
fn quota(tokens: &Tokens, kind: FailureKind, retries: usize) -> Vec<u64> {
    let acquire = |_| {
        tokens.reserve(kind, &NOW).expect("enough tokens are left");
        held(tokens)
    };
    (0..retries).map(acquire).collect()
}

#[test]
fn aw_05_three_attempts_cost_five_tokens_twice() {
    let tokens = SERVER_ERROR.build().unwrap();
    let policy = AWS_SDK.policy().to_builder().jitter(Jitter::None).build().unwrap();
    let trace = Call::new(&policy).guards(&[&tokens]).failing();
    assert_eq!((trace.waits, trace.stop, held(&tokens)), (vec![secs(1), secs(2)], Some(StopReason::Attempts), 490));
}

#[test]
fn aw_07_a_successful_retry_refunds_the_last_five_tokens() {
    let tokens = SERVER_ERROR.capacity(5).transient_cost(5).throttled_cost(5).local_cost(5).build().unwrap();
    let permit = tokens.reserve(FailureKind::Transient, &NOW).unwrap();
    assert_eq!(held(&tokens), 0);
    tokens.settle(permit, End::Made(&Outcome::Success), &NOW);
    assert_eq!(held(&tokens), 5);
}

#[test]
fn aw_09_the_quota_after_each_of_four_retries() {
    assert_eq!(quota(&SERVER_ERROR.build().unwrap(), FailureKind::Transient, 4), [495, 490, 485, 480]);
}

#[test]
fn aw_11_twenty_successes_restore_twenty_tokens() {
    let tokens = Tokens::AWS.capacity(20).build().unwrap();
    assert_eq!(quota(&tokens, FailureKind::Transient, 2), [10, 0]);
    for n in 1..=20 {
        attempt(&tokens, Outcome::Success, NOW);
        assert_eq!(held(&tokens), n);
    }
    attempt(&tokens, Outcome::Success, NOW);
    assert_eq!(held(&tokens), 20, "it is full");
}

#[test]
fn aw_13_fractions_of_a_token_add_up() {
    let tokens = SERVER_ERROR.initial(0).fractional_reward(Ratio::percent(40)).build().unwrap();
    let after = [(); 3].map(|()| {
        attempt(&tokens, Outcome::Success, NOW);
        held(&tokens)
    });
    assert_eq!((after, tokens.snapshot().fraction), ([0, 0, 1], Ratio::percent(20)));
}

#[test]
fn aw_15_the_2026_quota_after_each_of_four_retries() {
    let tokens = Tokens::AWS_2026.build().unwrap();
    let policy = Policy::exponential(ms(50), ms(200)).jitter(Jitter::None).max_attempts(5).build().unwrap();
    let trace = Call::new(&policy).guards(&[&tokens]).failing();
    assert_eq!((trace.waits, trace.stop), ([50, 100, 200, 200].map(ms).to_vec(), Some(StopReason::Attempts)));
    assert_eq!(held(&tokens), 444);
    assert_eq!(quota(&Tokens::AWS_2026.build().unwrap(), FailureKind::Transient, 4), [486, 472, 458, 444]);
}

#[test]
fn aw_17_a_throttled_request_costs_five_and_is_refunded() {
    let tokens = Tokens::AWS_2026.build().unwrap();
    let permit = tokens.reserve(FailureKind::Throttled, &NOW).unwrap();
    assert_eq!(held(&tokens), 495);
    tokens.settle(permit, End::Made(&Outcome::Success), &NOW);
    assert_eq!(held(&tokens), 500);
}

/// The SDKs do not retry either, but a long poll waits for the retry's delay, 50 ms or a second, before it returns the
/// error. Here a finished call does not wait, whatever finished it: a polling loop waits by its own schedule between
/// calls, so an empty quota cannot turn it into a busy loop.
#[test]
fn aw_21_with_an_empty_quota_a_call_ends_without_a_wait() {
    let tokens = Tokens::AWS_2026.initial(0).build().unwrap();
    let policy = AWS_SDK_2026.policy().to_builder().jitter(Jitter::None).build().unwrap();
    for (outcome, stop) in [
        (Outcome::TRANSIENT, Some(StopReason::BUDGET)),
        (Outcome::throttled(None), Some(StopReason::BUDGET)),
        (Outcome::Permanent, Some(StopReason::Permanent)),
        (Outcome::Success, None),
    ] {
        let trace = Call::new(&policy).guards(&[&tokens]).run([outcome]);
        assert_eq!((trace.stop, trace.waits, trace.attempts), (stop, vec![], 1), "{outcome:?}");
    }
    assert_eq!(policy.delays(Seed::new(1)).next(), Some(ms(50)), "the delay that a surrounding loop can use");
}

#[test]
fn aw_31_refill_and_rewards_add_up_exactly() {
    let builder = Tokens::builder().initial(0).cost(3).fractional_reward(Ratio::percent(50)).refill(1, secs(1));
    let tokens = builder.build().unwrap();
    assert_eq!(tokens.reserve(FailureKind::Transient, &NOW), None);
    attempt(&tokens, Outcome::Success, NOW);
    attempt(&tokens, Outcome::Success, NOW);
    let later = NOW.saturating_add(secs(2));
    assert!(tokens.reserve(FailureKind::Transient, &later).is_some(), "two from the refill, one from the rewards");
    assert_eq!((held(&tokens), tokens.snapshot().fraction), (0, Ratio::ZERO));
}

/// A negative rate is not representable here. The SDK coerces it to zero.
#[test]
fn aw_33_a_refill_of_zero_adds_no_tokens() {
    let tokens = Tokens::builder().capacity(5).refill(0, secs(1)).build().unwrap();
    assert_eq!(drain(&tokens, NOW).len(), 1);
    assert_eq!(tokens.reserve(FailureKind::Transient, &NOW.saturating_add(secs(1_000_000))), None);
}

#[test]
fn the_101st_consecutive_retry_is_rejected() {
    for tokens in [Tokens::new(), Tokens::default(), SERVER_ERROR.build().unwrap()] {
        assert_eq!(tokens.available(), Some(100));
        assert_eq!(drain(&tokens, NOW).len(), 100);
        assert_eq!(tokens.available(), Some(0));
    }
}

#[test]
fn by_default_a_success_earns_one_retry_up_to_capacity() {
    let tokens = Tokens::new();
    attempt(&tokens, Outcome::Success, NOW);
    assert_eq!(tokens.snapshot().tokens, 500);
    drop(drain(&tokens, NOW));
    for outcome in [Outcome::Success, Outcome::Permanent] {
        attempt(&tokens, outcome, NOW);
        let permit = tokens.reserve(FailureKind::Transient, &NOW).expect("the server answered");
        tokens.settle(permit, End::Made(&outcome), &NOW);
        assert_eq!(drain(&tokens, NOW).len(), 1);
    }
    for outcome in [Outcome::TRANSIENT, Outcome::NotProcessed, Outcome::Cancelled] {
        attempt(&tokens, outcome, NOW);
        assert_eq!(tokens.available(), Some(0), "{outcome:?}");
    }
}

#[test]
fn aws_refunds_only_the_cost_of_the_last_retry() {
    let tokens = Tokens::AWS.build().unwrap();
    let _first = tokens.reserve(FailureKind::Transient, &NOW).unwrap();
    let last = tokens.reserve(FailureKind::Throttled, &NOW).unwrap();
    assert_eq!(held(&tokens), 485);
    tokens.settle(last, End::Made(&Outcome::Success), &NOW);
    assert_eq!(held(&tokens), 490);
}

#[test]
fn released_retries_are_refunded_and_cancelled_ones_are_not() {
    let tokens = Tokens::AWS_2026.build().unwrap();
    for kind in [FailureKind::Transient, FailureKind::Throttled, FailureKind::LocalExhaustion] {
        let permit = tokens.reserve(kind, &NOW).unwrap();
        assert!(held(&tokens) < 500);
        tokens.settle(permit, End::NeverMade, &NOW);
        assert_eq!(held(&tokens), 500, "{kind:?}");
    }
    let permit = tokens.reserve(FailureKind::Throttled, &NOW).unwrap();
    tokens.settle(permit, End::Made(&Outcome::Cancelled), &NOW);
    assert_eq!(held(&tokens), 495);
}

#[test]
fn a_released_permit_returns_its_exact_cost() {
    let tokens = Tokens::builder().initial(100).build().unwrap();
    let before = tokens.snapshot();
    let permit = tokens.reserve(FailureKind::Transient, &NOW).unwrap();
    tokens.settle(permit, End::NeverMade, &NOW);
    assert_eq!(tokens.snapshot(), before);
}

#[test]
fn a_free_retry_refunds_nothing() {
    let tokens = Tokens::builder().local_cost(0).refund(Refund::LastCost).reward(1).initial(0).build().unwrap();
    let permit = tokens.reserve(FailureKind::LocalExhaustion, &NOW).expect("it is free");
    assert_ne!(permit, Permit::NONE);
    tokens.settle(permit, End::Made(&Outcome::Success), &NOW);
    assert_eq!(held(&tokens), 0);
}

#[test]
fn a_refill_starts_at_the_first_request_and_stops_at_capacity() {
    let tokens = Tokens::builder().capacity(10).initial(0).cost(1).refill(1, secs(1)).build().unwrap();
    assert_eq!(drain(&tokens, at(secs(1_000))).len(), 0, "the refill starts with this request");
    assert_eq!(drain(&tokens, at(ms(1_000_999))).len(), 0);
    assert_eq!(drain(&tokens, at(ms(1_001_000))).len(), 1);
    assert_eq!(drain(&tokens, at(ms(1_002_500))).len(), 1);
    assert_eq!(drain(&tokens, at(ms(1_003_000))).len(), 1, "the half token was kept");
    assert_eq!(drain(&tokens, at(secs(999))).len(), 0, "a clock that steps back adds no tokens");
    assert_eq!(drain(&tokens, at(secs(1_000_000))).len(), 10);
    assert_eq!(drain(&tokens, Instant::from_nanos(u64::MAX)).len(), 10);
}

/// Frequent requests at uneven intervals refill as much as a single one.
#[test]
fn frequent_requests_do_not_reduce_the_refill() {
    let tokens = Tokens::builder().capacity(1_000).initial(0).cost(1).refill(3, secs(7)).build().unwrap();
    let mut granted = 0;
    for step in 0..=70_000_u64 {
        granted += drain(&tokens, at(ms(5_000 + step))).len();
    }
    // 70 s are 30 tokens; rounding may lose a nanosecond with each request.
    assert!((29..=30).contains(&granted), "{granted}");
}

/// A bucket that is stored after every step grants, refills and refunds as one that is not.
#[test]
fn a_bucket_that_is_restored_after_each_step_is_the_same_bucket() {
    let settings = Tokens::builder().capacity(12).reward(1).refill(3, ms(700));
    let kept = settings.build().unwrap();
    let mut state = settings.build().unwrap().state();
    assert_eq!(state, TokensState::new(12_000_000, None));
    for step in 0..500_u32 {
        let restored = settings.restore(state).unwrap();
        let now = at(ms(u64::from(step) * 137));
        if step % 3 == 0 {
            attempt(&kept, Outcome::Success, now);
            attempt(&restored, Outcome::Success, now);
        } else {
            let kind = if step % 2 == 0 { FailureKind::Transient } else { FailureKind::Throttled };
            assert_eq!(kept.reserve(kind, &now), restored.reserve(kind, &now), "step {step}");
        }
        state = restored.state();
        assert_eq!(state, kept.state(), "step {step}");
    }
    assert!(state.refilled.is_some());
}

#[test]
fn a_restored_bucket_obeys_the_settings_of_its_reader() {
    let full = Tokens::new().state();
    let small = Tokens::builder().capacity(10).restore(full).unwrap();
    assert_eq!((held(&small), small.state().refilled), (10, None));
    assert_eq!(held(&Tokens::builder().capacity(700).restore(full).unwrap()), 500, "it is not filled up");
    let last = TokensState::new(u64::MAX, Some(Instant::from_nanos(u64::MAX)));
    assert_eq!(Tokens::new().state().millionths, Tokens::builder().restore(last).unwrap().state().millionths);
    let error = Tokens::builder().capacity(0).restore(full).unwrap_err();
    assert!(error.problems().any(|problem| matches!(problem, BudgetProblem::NoCapacity)), "{error}");
}
