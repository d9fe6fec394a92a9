use core::time::Duration;

use stagger_core::guard::{Answer, Ask, End, Now, Permit};
use stagger_core::quiet::{QuietPeriod, QuietPeriodBuilder, QuietState, QuietTrigger};
use stagger_core::{FailureKind, Guard, Instant, Outcome, ServerHint};

use crate::laws::support::{Start, go, ms, secs};

/// A quiet period under test and the current time.
struct Harness {
    quiet: QuietPeriod,
    now: Instant,
}

fn hint(length: Duration) -> Outcome {
    Outcome::throttled(Some(ServerHint::AtLeast(length)))
}

const REFUSED: Outcome = Outcome::throttled(None);

impl Harness {
    fn new(builder: QuietPeriodBuilder) -> Self {
        // Far from zero, as tokio's clock is.
        Self { quiet: builder.build().unwrap(), now: Instant::from_nanos(9_223_372_036_000_000_000) }
    }

    fn paused_for(length: Duration) -> Self {
        let harness = Self::new(QuietPeriod::builder());
        harness.quiet.pause(length, &harness.now);
        harness
    }

    fn after(&mut self, length: Duration) -> &mut Self {
        self.now = self.now.saturating_add(length);
        self
    }

    fn admit(&self) -> Answer {
        self.quiet.first(&self.now)
    }

    /// Returns the permit of a call that starts now.
    fn started(&self) -> Permit {
        go(self.admit())
    }

    /// Returns how long a call waits, and its place.
    fn held(&self) -> (Duration, Permit) {
        match self.admit() {
            Answer::Wait { after, permit } => (after, permit),
            turn => panic!("{turn:?}"),
        }
    }

    fn record(&self, permit: Permit, outcome: Outcome) {
        self.quiet.settle(permit, End::Made(&outcome), &self.now);
    }

    fn call(&self, outcome: Outcome) {
        self.record(self.started(), outcome);
    }

    fn state(&self) -> QuietState {
        self.quiet.snapshot(&self.now).state
    }

    fn remaining(&self) -> Duration {
        self.quiet.snapshot(&self.now).remaining
    }
}

/// The call itself ends, but the server has spoken to all.
#[test]
fn a_hint_to_an_attempt_that_must_not_be_retried_pauses_too() {
    let harness = Harness::new(QuietPeriod::builder());
    harness.call(Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: Some(ServerHint::AtLeast(secs(5))) });
    assert_eq!((harness.state(), harness.remaining()), (QuietState::Quiet, secs(5)));
}

/// Hints of 5 s, 10 s and 3 s within 100 ms, and none longer than 8 s: the end is 8 s after the second.
#[test]
fn the_longest_of_several_hints_wins_within_the_limit() {
    let mut harness = Harness::new(QuietPeriod::builder().max(secs(8)));
    let permits = [(); 3].map(|()| harness.started());
    for (permit, (length, left)) in
        permits.into_iter().zip([(secs(5), secs(5)), (secs(10), secs(8)), (secs(3), ms(7_950))])
    {
        harness.record(permit, hint(length));
        assert_eq!(harness.remaining(), left, "after a hint of {length:?}");
        harness.after(ms(50));
    }
    assert_eq!(harness.quiet.snapshot(&harness.now).pauses, 1);
    let (wait, place) = harness.held();
    assert_eq!(wait, ms(7_900));
    harness.after(ms(7_900));
    let probe = harness.quiet.ask(Ask::FIRST, place, &harness.now);
    assert!(matches!(probe, Answer::Go(_)), "{probe:?}");
}

#[test]
fn only_a_hint_for_everybody_pauses() {
    for outcome in [
        Outcome::Success,
        Outcome::Permanent,
        Outcome::TRANSIENT,
        REFUSED,
        Outcome::throttled(Some(ServerHint::Reserved(secs(9)))),
        Outcome::throttled(Some(ServerHint::DoNotRetry)),
        hint(Duration::ZERO),
        Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(secs(9))) },
        Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: None },
        Outcome::NotProcessed,
        Outcome::Cancelled,
    ] {
        let harness = Harness::new(QuietPeriod::builder());
        harness.call(outcome);
        assert_eq!(harness.state(), QuietState::Open, "{outcome:?}");
    }
}

#[test]
fn a_success_that_began_before_the_pause_does_not_end_it() {
    let mut harness = Harness::new(QuietPeriod::builder());
    let (early, late) = (harness.started(), harness.started());
    harness.call(hint(secs(1)));
    harness.record(early, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Quiet);
    let _probe = harness.after(secs(1)).started();
    harness.record(late, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Probing);
}

#[test]
fn a_refusal_lengthens_the_pause_and_never_shortens_it() {
    let mut harness = Harness::new(QuietPeriod::builder());
    let permits = [(); 3].map(|()| harness.started());
    harness.call(hint(secs(10)));
    harness.after(secs(1));
    for (permit, (outcome, left)) in
        permits.into_iter().zip([(hint(secs(2)), secs(9)), (REFUSED, secs(9)), (hint(secs(12)), secs(12))])
    {
        harness.record(permit, outcome);
        assert_eq!(harness.remaining(), left, "{outcome:?}");
    }
}

#[test]
fn one_probe_goes_first_and_its_answer_begins_the_return() {
    for answer in [Outcome::Success, Outcome::Permanent, Outcome::TRANSIENT] {
        let mut harness = Harness::paused_for(secs(1));
        let probe = harness.after(secs(1)).started();
        assert!(matches!(harness.admit(), Answer::Wait { .. }), "beside the probe");
        harness.after(ms(20)).record(probe, answer);
        assert_eq!(harness.state(), QuietState::Returning, "{answer:?}");
    }
}

#[test]
fn a_refused_probe_doubles_the_pause_up_to_32_s() {
    let mut harness = Harness::paused_for(secs(1));
    for next in [2, 4, 8, 16, 32, 32] {
        let left = harness.remaining();
        let probe = harness.after(left).started();
        harness.record(probe, REFUSED);
        assert_eq!(harness.remaining(), secs(next));
    }
    let left = harness.remaining();
    let probe = harness.after(left).started();
    harness.record(probe, hint(secs(3)));
    assert_eq!(harness.remaining(), secs(3), "its hint");
}

#[test]
fn a_probe_that_shows_nothing_is_replaced_by_the_next_call() {
    for outcome in [Some(Outcome::Cancelled), Some(Outcome::NotProcessed), None] {
        let mut harness = Harness::paused_for(secs(1));
        let probe = harness.after(secs(1)).started();
        match outcome {
            Some(outcome) => harness.record(probe, outcome),
            None => harness.quiet.settle(probe, End::NeverMade, &harness.now),
        }
        let next = harness.started();
        assert!(matches!(harness.admit(), Answer::Wait { .. }), "{outcome:?}");
        harness.record(next, Outcome::Success);
        assert_eq!(harness.state(), QuietState::Returning, "{outcome:?}");
    }
}

#[test]
fn another_probe_follows_one_without_an_answer() {
    let mut harness = Harness::new(QuietPeriod::builder().probe_wait(secs(30)));
    harness.quiet.pause(secs(1), &harness.now);
    let lost = harness.after(secs(1)).started();
    harness.after(ms(29_999)).held();
    let other = harness.after(ms(1)).started();
    harness.record(lost, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Probing, "the answer of the first no longer counts");
    harness.record(other, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Returning);
}

#[test]
fn more_than_a_fifth_of_refusals_pauses_for_a_second_and_then_for_two() {
    let mut harness = Harness::new(QuietPeriod::builder().trigger(QuietTrigger::HintsAndRefusals));
    for (refusals, length) in [(11, secs(1)), (10, secs(2))] {
        let permits: Vec<_> = (0..refusals).map(|_| harness.started()).collect();
        for permit in permits {
            assert_eq!(harness.state(), QuietState::Open);
            harness.record(permit, REFUSED);
        }
        assert_eq!(harness.remaining(), length);
        let probe = harness.after(length).started();
        harness.record(probe, Outcome::Success);
        harness.call(Outcome::Success);
        assert_eq!(harness.state(), QuietState::Open, "nobody waits");
    }
    (0..60).for_each(|_| harness.call(Outcome::Success));
    let permits: Vec<_> = (0..11).map(|_| harness.started()).collect();
    permits.into_iter().for_each(|permit| harness.record(permit, REFUSED));
    assert_eq!(harness.remaining(), secs(1), "after a clean window");
}

#[test]
fn calls_of_a_burst_that_is_refused_cut_the_pace_once() {
    let mut harness = Harness::new(QuietPeriod::builder());
    for _ in 0..400 {
        harness.after(ms(10)).call(Outcome::Success);
    }
    harness.call(hint(secs(1)));
    let places: Vec<_> = (0..100).map(|_| harness.held().1).collect();
    harness.after(secs(1));
    let mut places = places.into_iter();
    let mut next = |harness: &Harness| harness.quiet.ask(Ask::FIRST, places.next().unwrap(), &harness.now);
    let Answer::Go(probe) = next(&harness) else { panic!("the probe") };
    harness.record(probe, Outcome::Success);
    // The rate has grown by a fifth in the first second.
    harness.after(secs(1));
    let burst: Vec<_> = (0..8).map(|_| next(harness.after(ms(9)))).collect();
    assert!(burst.iter().all(|turn| matches!(turn, Answer::Go(_))), "{burst:?}");
    let interval = |harness: &Harness| harness.quiet.snapshot(&harness.now).interval.as_millis();
    assert!((9..=10).contains(&interval(&harness)), "{} ms", interval(&harness));
    for turn in burst {
        let Answer::Go(permit) = turn else { unreachable!() };
        harness.record(permit, REFUSED);
    }
    assert!((11..=12).contains(&interval(&harness)), "{} ms", interval(&harness));
}

#[test]
fn a_hint_during_the_return_cuts_the_pace_once_a_second_and_pauses_if_nothing_is_answered() {
    let mut harness = Harness::new(QuietPeriod::builder());
    for _ in 0..400 {
        harness.after(ms(10)).call(Outcome::Success);
    }
    harness.call(hint(secs(1)));
    let mut places = [(); 6].map(|()| harness.held().1).into_iter();
    harness.after(secs(1));
    let mut next = |harness: &Harness| go(harness.quiet.ask(Ask::FIRST, places.next().unwrap(), &harness.now));
    let probe = next(&harness);
    harness.record(probe, Outcome::Success);
    let shown = |harness: &Harness| {
        let seen = harness.quiet.snapshot(&harness.now);
        (seen.state, seen.remaining, seen.interval.as_millis())
    };
    // Within a second of the probe's answer it says what the pause said before.
    let early = next(&harness);
    harness.record(early, hint(secs(2)));
    assert_eq!(shown(&harness), (QuietState::Returning, Duration::ZERO, 9));
    let answered = next(harness.after(ms(999)));
    harness.record(answered, Outcome::Success);
    let late = next(harness.after(ms(10)));
    harness.record(late, hint(secs(2)));
    assert_eq!(shown(&harness), (QuietState::Returning, Duration::ZERO, 11));
    let unanswered = next(harness.after(ms(1_000)));
    harness.record(unanswered, hint(secs(2)));
    assert_eq!(shown(&harness).0, QuietState::Quiet);
    assert_eq!(shown(&harness).1, secs(2));
}

#[test]
fn waiting_calls_start_at_the_learned_rate_in_the_order_of_their_places() {
    let mut harness = Harness::new(QuietPeriod::builder());
    for _ in 0..400 {
        harness.after(ms(10)).call(Outcome::Success);
    }
    harness.call(hint(secs(1)));
    let waits: Vec<_> = (0..40).map(|_| harness.held().0).collect();
    assert_eq!(waits[0], secs(1));
    for pair in waits.windows(2) {
        let apart = pair[1] - pair[0];
        assert!((ms(8)..=ms(11)).contains(&apart), "{apart:?}");
    }
}

#[test]
fn a_call_that_has_not_waited_does_not_overtake_those_that_do() {
    let mut harness = Harness::paused_for(secs(1));
    let (_, place) = harness.held();
    let (_, second) = harness.held();
    harness.after(secs(1));
    let Answer::Go(probe) = harness.quiet.ask(Ask::FIRST, place, &harness.now) else { panic!("the probe") };
    harness.record(probe, Outcome::Success);
    let (wait, newcomer) = harness.held();
    assert!(wait > Duration::ZERO);
    harness.quiet.settle(newcomer, End::NeverMade, &harness.now);
    assert!(matches!(harness.quiet.ask(Ask::FIRST, second, &harness.now), Answer::Go(_)));
    assert_eq!(harness.state(), QuietState::Open);
}

#[test]
fn a_call_whose_turn_is_too_late_is_rejected_at_once() {
    let harness = Harness::paused_for(secs(10));
    let by = |length| Some(harness.now.saturating_add(length));
    assert_eq!(
        harness.quiet.ask(Ask::FIRST.by(by(ms(9_999))), Permit::NONE, &harness.now),
        Answer::No { retry_in: secs(10) }
    );
    assert!(matches!(harness.quiet.ask(Ask::FIRST.by(by(secs(10))), Permit::NONE, &harness.now), Answer::Wait { .. }));
    assert!(harness.quiet.would_refuse(secs(1), by(ms(9_999)), &harness.now));
    assert!(!harness.quiet.would_refuse(secs(1), by(secs(10)), &harness.now));
    assert!(!harness.quiet.would_refuse(secs(1), None, &harness.now));
}

#[test]
fn the_longest_wait_counts_what_a_call_has_waited() {
    let mut harness = Harness::new(QuietPeriod::builder().max_wait(secs(12)));
    harness.quiet.pause(secs(10), &harness.now);
    let (_, place) = harness.held();
    harness.after(secs(9));
    harness.quiet.pause(secs(4), &harness.now);
    let late = harness.quiet.ask(Ask::FIRST, place, &harness.now);
    assert_eq!(late, Answer::No { retry_in: secs(4) });
    assert_eq!(harness.quiet.snapshot(&harness.now).waiting, 0, "its place is free");
    assert_eq!(harness.held().0, secs(4));
}

#[test]
fn as_many_calls_wait_as_may_and_a_cancelled_one_makes_room() {
    let harness = Harness::paused_for(secs(1));
    let mut places: Vec<_> = (0..1_024).map(|_| harness.held().1).collect();
    assert!(matches!(harness.admit(), Answer::No { .. }));
    harness.quiet.settle(places.pop().unwrap(), End::NeverMade, &harness.now);
    harness.held();
    let snapshot = harness.quiet.snapshot(&harness.now);
    assert_eq!((snapshot.waiting, snapshot.waited, snapshot.rejected), (1_024, 1_025, 1));
}

#[test]
fn without_waiting_it_rejects_with_the_remaining_time_and_still_returns_paced() {
    let mut harness = Harness::new(QuietPeriod::builder().max_waiting(0));
    harness.call(hint(secs(10)));
    harness.after(secs(4));
    assert_eq!(harness.admit(), Answer::No { retry_in: secs(6) });
    assert!(harness.quiet.would_refuse(secs(5), None, &harness.now));
    assert!(!harness.quiet.would_refuse(secs(6), None, &harness.now));
    let probe = harness.after(secs(6)).started();
    harness.record(probe, Outcome::Success);
    let started = (0..100).filter(|_| matches!(harness.after(ms(10)).admit(), Answer::Go(_))).count();
    assert!(started <= 3, "{started} in a second, at 1/s");
    assert_eq!(harness.state(), QuietState::Returning);
    harness.after(secs(3)).started();
    assert_eq!(harness.state(), QuietState::Open, "nobody was rejected for a second");
}

/// A retry was refused itself, and may be again for reasons that are its own.
#[test]
fn a_retry_is_the_probe_only_if_no_first_attempt_comes_for_100_ms() {
    let retry = |latest| {
        let mut ask = Ask::FIRST.by(latest);
        ask.is_first = false;
        ask
    };
    let mut harness = Harness::new(QuietPeriod::builder().probe_wait(secs(30)));
    harness.quiet.pause(secs(1), &harness.now);
    // It is told so at once, and again at the end of the pause: it does not ask in between.
    let mut place = Permit::NONE;
    for (passed, left) in [(Duration::ZERO, ms(1_100)), (secs(1), ms(100)), (ms(99), ms(1))] {
        harness.after(passed);
        let asked = harness.quiet.ask(retry(None), place, &harness.now);
        let Answer::Wait { after, permit } = asked else { panic!("{asked:?}") };
        assert_eq!(after, left, "after another {passed:?}");
        place = permit;
    }
    let too_late = harness.quiet.ask(retry(Some(harness.now)), place, &harness.now);
    assert_eq!(too_late, Answer::No { retry_in: ms(1) });
    let Answer::Wait { permit: place, .. } = harness.quiet.ask(retry(None), Permit::NONE, &harness.now) else {
        panic!("it may not start yet")
    };

    // A first attempt is the probe, and while it has no answer, the same holds for the next.
    let lost = harness.started();
    harness.after(secs(30) + ms(50));
    let Answer::Wait { after, permit: place } = harness.quiet.ask(retry(None), place, &harness.now) else {
        panic!("the retry comes later")
    };
    assert_eq!(after, ms(50));
    harness.after(after);
    let probe = go(harness.quiet.ask(retry(None), place, &harness.now));
    harness.record(lost, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Probing, "the retry is the probe");
    harness.record(probe, Outcome::Success);
    assert_eq!(harness.state(), QuietState::Returning);
}

#[test]
fn a_probe_wait_without_end_is_no_overflow_for_a_retry() {
    let mut harness = Harness::new(QuietPeriod::builder().probe_wait(Duration::MAX));
    harness.quiet.pause(secs(1), &harness.now);
    let _probe = harness.after(secs(1)).started();
    let mut retry = Ask::FIRST;
    retry.is_first = false;
    assert!(matches!(harness.quiet.ask(retry, Permit::NONE, &harness.now), Answer::Wait { .. }));
}

/// A clock that must not be read.
struct Unreadable;

impl Now for Unreadable {
    fn now(&self) -> Instant {
        panic!("the clock was read")
    }
}

#[test]
fn an_open_quiet_period_reads_no_clock_to_admit() {
    let quiet = QuietPeriod::new();
    for _ in 0..1_000 {
        assert!(matches!(quiet.ask(Ask::FIRST, Permit::NONE, &Unreadable), Answer::Go(_)));
        assert!(!quiet.would_refuse(secs(1), None, &Unreadable));
    }
}

#[test]
fn a_new_one_and_one_after_a_clean_window_are_at_rest() {
    let mut harness = Harness::new(QuietPeriod::builder());
    assert!(harness.quiet.is_at_rest(&harness.now));
    harness.call(hint(secs(1)));
    assert!(!harness.quiet.is_at_rest(&harness.now));
    let probe = harness.after(secs(1)).started();
    harness.record(probe, Outcome::Success);
    harness.call(Outcome::Success);
    assert_eq!((harness.state(), harness.quiet.is_at_rest(&harness.now)), (QuietState::Open, false));
    (0..50).for_each(|_| harness.call(Outcome::Success));
    assert!(harness.quiet.is_at_rest(&harness.now));
    harness.call(hint(secs(1)));
    assert_eq!(harness.quiet.fresh().unwrap().snapshot(&harness.now).state, QuietState::Open);
}

#[test]
fn problems_are_reported_together_with_values_and_ways_out() {
    let all = QuietPeriod::builder().max(secs(90_000)).probe_wait(Duration::ZERO).build().unwrap_err();
    assert_eq!(
        all.to_string(),
        "max 1d1h is outside the range: use more than 0s and at most 24h; \
         probe_wait is 0s, so no probe could return in time: raise it"
    );
    assert_eq!(all.problems().count(), 2);
    assert!(QuietPeriod::builder().build().is_ok());
}
