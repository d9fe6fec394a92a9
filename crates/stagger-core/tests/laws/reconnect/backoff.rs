//! A loss waits for the spread; failures after it back off.

use core::time::Duration;

use stagger_core::machine::{ReconnectPhase, ReconnectStep};
use stagger_core::{DelaySource, HintMode, Jitter, Outcome, Policy, PolicyBuilder, Seed, ServerHint, StopReason};

use super::link::{Link, connects, waits};
use crate::laws::support::{at, ms, secs};

const PLAIN: PolicyBuilder = Policy::exponential(ms(500), secs(30)).jitter(Jitter::None).max_attempts(6);
const LONG: Duration = secs(60);

fn after_a_loss(policy: PolicyBuilder) -> (Duration, DelaySource) {
    let mut link = Link::new(policy.build().unwrap()).up();
    link.advance(LONG);
    waits(link.ended(Outcome::TRANSIENT))
}

#[test]
fn the_first_connect_is_immediate_and_its_failures_back_off() {
    let mut link = Link::new(PLAIN.build().unwrap());
    assert_eq!(
        (link.machine.phase(), link.machine.generation().get(), link.machine.attempt()),
        (ReconnectPhase::Idle, 0, 0)
    );
    assert_eq!(connects(link.reconnect_now()).get(), 1);
    assert_eq!((link.machine.phase(), link.machine.attempt()), (ReconnectPhase::Connecting, 1));
    assert_eq!(link.fail_on(), ([500, 1000, 2000, 4000, 8000].map(ms).to_vec(), StopReason::Attempts));
}

/// Without a spread, the loss counts as the first failure of the schedule, and as the first attempt.
#[test]
fn without_a_spread_a_loss_takes_the_first_delay() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    assert_eq!(link.lose_after(LONG), ms(500));
    link.retry();
    assert_eq!(link.machine.attempt(), 1);
    assert_eq!(link.fail_on(), ([1000, 2000, 4000, 8000].map(ms).to_vec(), StopReason::Attempts));
}

#[test]
fn a_loss_takes_the_first_delay_of_a_list() {
    let policy = Policy::list(&[1, 2, 3].map(secs)).jitter(Jitter::None).max_attempts(4).build().unwrap();
    let mut link = Link::new(policy).up();
    assert_eq!(link.lose_after(LONG), secs(1));
    link.retry();
    assert_eq!(link.fail_on(), ([2, 3].map(secs).to_vec(), StopReason::Attempts));
}

/// A loss without a spread has the delays of a call's retries, all of them and no more, for every limit.
#[test]
fn without_a_spread_a_loss_has_the_retries_of_a_call() {
    for attempts in 1..20 {
        let policy = PLAIN.jitter(Jitter::Full).max_attempts(attempts).build().unwrap();
        for seed in 0..50 {
            let mut call = Link::new(policy).seed(seed);
            connects(call.reconnect_now());
            let (retries, stop) = call.fail_on();
            assert_eq!((retries.len(), stop), (attempts as usize - 1, StopReason::Attempts));
            let mut lost = Link::new(policy).seed(seed).up();
            lost.advance(LONG);
            let mut after_loss = Vec::new();
            while let ReconnectStep::Wait { after, .. } = lost.ended(Outcome::TRANSIENT) {
                after_loss.push(after);
                lost.retry();
            }
            assert_eq!(after_loss.len(), retries.len(), "{policy}");
            for (n, after) in (1..).zip(after_loss) {
                assert!(policy.bounds(n).is_some_and(|(least, most)| (least..=most).contains(&after)), "{policy}");
            }
            assert_eq!(lost.machine.phase(), ReconnectPhase::GivenUp(StopReason::Attempts));
        }
    }
}

/// With a spread, the backoff begins with the first failure after the spread.
#[test]
fn with_a_spread_the_backoff_begins_after_it() {
    let mut link = Link::new(PLAIN.spread(secs(10)).build().unwrap()).up();
    link.advance(LONG);
    let (after, source) = waits(link.ended(Outcome::TRANSIENT));
    assert!(after <= secs(10));
    assert_eq!(source, DelaySource::Spread);
    link.retry();
    assert_eq!(link.fail_on(), ([500, 1000, 2000, 4000, 8000].map(ms).to_vec(), StopReason::Attempts));
}

#[test]
fn a_fleet_reconnects_uniformly_over_the_spread() {
    let policy = PLAIN.spread(secs(10)).build().unwrap();
    let mut seconds = [0_u32; 10];
    for seed in 0..2_000 {
        let mut link = Link::new(policy).seed(seed).up();
        seconds[link.lose_after(LONG).as_secs() as usize] += 1;
    }
    // 200 expected, standard deviation 13.4.
    assert!(seconds.iter().all(|count| (130..=270).contains(count)), "{seconds:?}");
}

#[test]
fn every_loss_draws_its_own_spread() {
    let mut link = Link::new(PLAIN.spread(secs(10)).build().unwrap()).up();
    let mut seen: Vec<_> = (0..50)
        .map(|_| {
            let wait = link.lose_after(LONG);
            link.reopen();
            wait
        })
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

/// Retries have their own draw numbers, so no draw is reused.
#[test]
fn every_wait_of_an_outage_is_a_new_draw() {
    let policy = Policy::exponential(secs(1), secs(1)).unlimited_attempts().build().unwrap();
    let mut link = Link::new(policy).up();
    let mut seen = Vec::new();
    for _ in 0..10 {
        seen.push(link.lose_after(LONG));
        for _ in 0..5 {
            link.retry();
            seen.push(waits(link.ended(Outcome::TRANSIENT)).0);
        }
        link.reopen();
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
}

#[test]
fn waits_of_the_first_outage_stay_within_the_schedule() {
    let policy = Policy::exponential(ms(500), secs(30)).unlimited_attempts().build().unwrap();
    let mut link = Link::new(policy).seed(9);
    let _ = link.reconnect_now();
    let drawn: Vec<_> = (0..8)
        .map(|_| {
            let wait = waits(link.ended(Outcome::TRANSIENT)).0;
            link.retry();
            wait
        })
        .collect();
    // The first connect is episode 1, while a plain call is episode 0, so the draws differ.
    assert!(!drawn.iter().copied().eq(policy.schedule(Seed::new(9)).take(8)));
    for (n, wait) in (1..).zip(drawn) {
        assert!(wait <= policy.bounds(n).unwrap().1);
    }
}

#[test]
fn a_close_with_a_hint_waits_for_the_hint() {
    let failed_with = |hint| Outcome::Failed { kind: stagger_core::FailureKind::Transient, hint: Some(hint) };
    let mut link = Link::new(PLAIN.spread(secs(3)).build().unwrap()).up();
    link.advance(LONG);
    let (after, source) = waits(link.ended(failed_with(ServerHint::AtLeast(secs(20)))));
    assert!(secs(20) <= after && after <= secs(30), "{after:?}");
    assert_eq!(source, DelaySource::Hint);

    let mut link = Link::new(PLAIN.hint_mode(HintMode::AtLeast).build().unwrap()).up();
    link.advance(LONG);
    assert_eq!(waits(link.ended(failed_with(ServerHint::Reserved(ms(1_234))))), (ms(1_234), DelaySource::Hint));
}

#[test]
fn a_distrusted_connection_is_never_healthy() {
    let losses_until_the_end = |distrusted: usize| {
        let mut link = Link::new(PLAIN.max_attempts(3).build().unwrap()).up();
        (1..10).find(|loss| {
            link.advance(LONG);
            if *loss <= distrusted {
                link.machine.distrust(link.machine.generation());
            }
            let gave_up = link.ended(Outcome::TRANSIENT) == ReconnectStep::GiveUp(StopReason::Attempts);
            if !gave_up {
                link.reopen();
            }
            gave_up
        })
    };
    assert_eq!([0, 2, 3].map(losses_until_the_end), [None, None, Some(3)]);
}

#[test]
fn distrusting_an_earlier_connection_has_no_effect() {
    let mut link = Link::new(PLAIN.max_attempts(2).build().unwrap()).up();
    let earlier = link.machine.generation();
    link.advance(LONG);
    assert_eq!(waits(link.ended(Outcome::TRANSIENT)).0, ms(500));
    link.reopen();
    link.machine.distrust(earlier);
    link.advance(LONG);
    assert_eq!(waits(link.ended(Outcome::TRANSIENT)).0, ms(500));
}

#[test]
fn a_wait_step_includes_its_end() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    link.advance(LONG);
    let until = at(link.now + ms(500));
    assert_eq!(
        link.ended(Outcome::TRANSIENT),
        ReconnectStep::Wait { after: ms(500), until, source: DelaySource::Schedule }
    );
    assert_eq!(link.machine.phase(), ReconnectPhase::Waiting { until });
}

/// A driver whose timer fires early gets the remaining wait, with the same source.
#[test]
fn an_early_timer_continues_the_same_wait() {
    for (spread, outcome, source) in [
        (Duration::ZERO, Outcome::TRANSIENT, DelaySource::Schedule),
        (secs(10), Outcome::TRANSIENT, DelaySource::Spread),
        (Duration::ZERO, Outcome::throttled(Some(ServerHint::Reserved(secs(7)))), DelaySource::Hint),
    ] {
        let mut link = Link::new(PLAIN.spread(spread).build().unwrap()).up();
        link.advance(LONG);
        let ReconnectStep::Wait { after, until, .. } = link.ended(outcome) else { panic!("{:?}", link.machine) };
        link.advance(after - ms(100));
        assert_eq!(link.due(), ReconnectStep::Wait { after: ms(100), until, source });
        link.advance(ms(100) - Duration::from_nanos(1));
        assert_eq!(link.due(), ReconnectStep::Wait { after: Duration::from_nanos(1), until, source });
        link.advance(Duration::from_nanos(1));
        assert_eq!(connects(link.due()).get(), 2);
    }
}

#[test]
fn a_connect_that_was_not_processed_is_repeated_at_once() {
    let mut link = Link::new(PLAIN.build().unwrap());
    let _ = link.reconnect_now();
    assert_eq!(waits(link.ended(Outcome::NotProcessed)), (Duration::ZERO, DelaySource::Transparent));
    link.retry();
    assert_eq!(link.machine.attempt(), 1);
    assert_eq!(waits(link.ended(Outcome::NotProcessed)), (ms(500), DelaySource::Schedule));
    // The loss of an open connection is not repeated at once: it had been processed.
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    link.advance(LONG);
    assert_eq!(waits(link.ended(Outcome::NotProcessed)), (ms(500), DelaySource::Schedule));
}

#[test]
fn a_throttled_loss_uses_the_throttled_base() {
    let policy = PLAIN.throttled_base(secs(8));
    let mut link = Link::new(policy.build().unwrap()).up();
    link.advance(LONG);
    assert_eq!(waits(link.ended(Outcome::throttled(None))), (secs(8), DelaySource::Schedule));
    assert_eq!(after_a_loss(policy), (ms(500), DelaySource::Schedule));
}

#[test]
fn a_clean_close_backs_off_like_a_loss() {
    let mut link = Link::new(PLAIN.build().unwrap()).up();
    link.advance(LONG);
    assert_eq!(waits(link.ended(Outcome::Success)), (ms(500), DelaySource::Schedule));
    // `Success` before the connection was open is a failed attempt.
    link.retry();
    assert_eq!(waits(link.ended(Outcome::Success)), (secs(1), DelaySource::Schedule));
}
