use core::time::Duration;

use stagger_core::guard::{Answer, Ask, End, Now, Permit};
use stagger_core::pacer::{Pacer, PacerState};
use stagger_core::{FailureKind, Guard, Instant, Outcome, ServerHint};

use crate::laws::support::{Start, go, ms, secs};

/// A pacer under test, the current time, and a server that admits so many calls per second.
pub(super) struct Harness {
    pub(super) pacer: Pacer,
    pub(super) now: Instant,
}

impl Harness {
    pub(super) fn new(pacer: Pacer) -> Self {
        Self { pacer, now: Instant::from_nanos(5_000_000_000_000) }
    }

    pub(super) fn after(&mut self, length: Duration) -> &mut Self {
        self.now = self.now.saturating_add(length);
        self
    }

    pub(super) fn ask(&self) -> Answer {
        self.pacer.first(&self.now)
    }

    pub(super) fn started(&self) -> Permit {
        go(self.ask())
    }

    pub(super) fn call(&self, outcome: Outcome) {
        let permit = self.started();
        self.pacer.settle(permit, End::Made(&outcome), &self.now);
    }

    /// Makes 200 calls for a second, of which every second one is refused. The next call ends the measuring.
    pub(super) fn learn(&mut self) {
        for n in 0..199 {
            self.call(if n % 2 == 0 { Outcome::throttled(None) } else { Outcome::Success });
            self.after(ms(5));
        }
        self.after(ms(10));
    }

    pub(super) fn state(&self) -> PacerState {
        self.pacer.snapshot().state
    }

    /// Returns the rate in calls per second.
    pub(super) fn rate(&self) -> u64 {
        1_000_000_000 / self.pacer.snapshot().interval.as_nanos() as u64
    }

    /// Has a call ask again until it starts, and returns how long that took.
    pub(super) fn wait(&mut self) -> Duration {
        let (began, mut permit) = (self.now, Permit::NONE);
        loop {
            match self.pacer.ask(Ask::FIRST, permit, &self.now) {
                Answer::Go(permit) => {
                    self.pacer.settle(permit, End::Made(&Outcome::Success), &self.now);
                    return self.now.saturating_since(began);
                }
                Answer::Wait { after, permit: place } => {
                    permit = place;
                    self.after(after);
                }
                turn @ Answer::No { .. } => panic!("{turn:?}"),
            }
        }
    }
}

/// A clock that must not be read.
struct Unreadable;

impl Now for Unreadable {
    fn now(&self) -> Instant {
        panic!("the clock was read")
    }
}

#[test]
fn a_passive_pacer_reads_no_clock_and_grants_no_permit() {
    let pacer = Pacer::new();
    for outcome in [Outcome::Success, Outcome::TRANSIENT, Outcome::Permanent, Outcome::Cancelled] {
        assert_eq!(pacer.ask(Ask::FIRST, Permit::NONE, &Unreadable), Answer::Go(Permit::NONE));
        pacer.settle(Permit::NONE, End::Made(&outcome), &Unreadable);
        assert!(!pacer.would_refuse(secs(1), None, &Unreadable));
        assert_eq!(pacer.retry_in(&Unreadable), Duration::ZERO);
    }
    assert!(pacer.is_at_rest(&Unreadable));
}

#[test]
fn only_throttled_outcomes_are_refusals() {
    for (outcome, want) in [
        (Outcome::throttled(None), PacerState::Measuring),
        (Outcome::throttled(Some(ServerHint::DoNotRetry)), PacerState::Measuring),
        (Outcome::throttled(Some(ServerHint::AtLeast(secs(1)))), PacerState::Measuring),
        (Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: None }, PacerState::Measuring),
        (Outcome::TRANSIENT, PacerState::Passive),
        (Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None }, PacerState::Passive),
        (Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }, PacerState::Passive),
        (Outcome::Permanent, PacerState::Passive),
        (Outcome::NotProcessed, PacerState::Passive),
        (Outcome::Cancelled, PacerState::Passive),
    ] {
        let harness = Harness::new(Pacer::new());
        harness.call(outcome);
        assert_eq!(harness.state(), want, "{outcome:?}");
    }
}

#[test]
fn the_rate_is_that_of_the_second_after_the_first_refusal() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    harness.call(Outcome::Success);
    // 99 successes in 1.005 s, and 3 % less.
    assert_eq!((harness.state(), harness.rate()), (PacerState::Paced, 95));
    let waits: Vec<_> = (0..10).map(|_| harness.wait()).collect();
    assert!(waits.iter().all(|wait| (ms(10)..ms(12)).contains(wait)), "{waits:?}");
}

#[test]
fn a_second_without_a_call_measures_nothing() {
    let mut harness = Harness::new(Pacer::new());
    harness.call(Outcome::throttled(None));
    harness.after(secs(60));
    assert_eq!((harness.started(), harness.state()), (Permit::NONE, PacerState::Passive));
}

#[test]
fn a_second_without_a_success_is_no_rate() {
    let mut harness = Harness::new(Pacer::new());
    for _ in 0..100 {
        harness.call(Outcome::throttled(None));
        harness.after(ms(10));
    }
    let permit = harness.after(ms(5)).started();
    assert_eq!((harness.state(), harness.rate()), (PacerState::Exhausted, 1));
    harness.pacer.settle(permit, End::Made(&Outcome::Success), &harness.now);
    assert_eq!(harness.state(), PacerState::Measuring);
}

#[test]
fn a_refusal_cuts_once_for_all_attempts_that_began_before_it() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    let mut begun = vec![harness.started()];
    for _ in 0..100 {
        harness.after(ms(12));
        begun.push(harness.started());
        harness.pacer.settle(Permit::NONE, End::Made(&Outcome::Success), &harness.now);
    }
    let rate = harness.rate();
    for permit in begun {
        harness.after(ms(20));
        harness.pacer.settle(permit, End::Made(&Outcome::throttled(None)), &harness.now);
    }
    assert_eq!(harness.pacer.snapshot().cuts, 1);
    assert!(harness.rate() < rate && harness.rate() >= rate * 48 / 100, "{} after {rate}", harness.rate());
}

#[test]
fn a_cut_waits_half_a_second_after_the_last() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    harness.call(Outcome::Success);
    let mut cuts = Vec::new();
    for _ in 0..20 {
        harness.after(ms(100));
        let permit = harness.started();
        harness.pacer.settle(permit, End::Made(&Outcome::throttled(None)), &harness.now);
        harness.pacer.settle(Permit::NONE, End::Made(&Outcome::Success), &harness.now);
        cuts.push(harness.pacer.snapshot().cuts);
    }
    assert_eq!(cuts, [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4]);
}

/// A second with ten seconds of rest before it says nothing about what the server admits.
#[test]
fn one_refusal_of_many_cuts_little_after_an_idle_time() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    for _ in 0..200 {
        harness.wait();
    }
    harness.after(secs(10));
    for _ in 0..12 {
        harness.wait();
    }
    let permit = harness.after(ms(20)).started();
    let rate = harness.rate();
    harness.pacer.settle(permit, End::Made(&Outcome::throttled(None)), &harness.now);
    assert_eq!(harness.pacer.snapshot().cuts, 1);
    assert!(harness.rate() < rate && harness.rate() >= rate * 85 / 100, "{} after {rate}", harness.rate());
}

#[test]
fn an_exhausted_server_is_asked_once_a_second_and_the_mean_returns() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    // Nothing is admitted any more.
    let (mut asked, start) = (0, harness.now);
    while harness.now.saturating_since(start) < secs(20) {
        match harness.ask() {
            Answer::Go(permit) => {
                harness.pacer.settle(permit, End::Made(&Outcome::throttled(None)), &harness.now);
                asked += u32::from(harness.now.saturating_since(start) > secs(5));
            }
            Answer::Wait { permit, .. } => harness.pacer.settle(permit, End::NeverMade, &harness.now),
            turn @ Answer::No { .. } => panic!("{turn:?}"),
        }
        harness.after(ms(5));
    }
    assert_eq!((harness.state(), harness.rate()), (PacerState::Exhausted, 1));
    assert!((14..=16).contains(&asked), "{asked} in 15 s");
    // The first success finds no mean, so another second is measured.
    harness.after(secs(1)).call(Outcome::Success);
    assert_eq!(harness.state(), PacerState::Measuring);
    for _ in 0..100 {
        harness.call(Outcome::Success);
        harness.after(ms(10));
    }
    harness.after(ms(100)).call(Outcome::Success);
    assert_eq!(harness.state(), PacerState::Paced);
    assert!((85..=97).contains(&harness.rate()), "{}", harness.rate());
    // When it is exhausted again, the mean since then is known.
    for _ in 0..400 {
        match harness.after(ms(5)).ask() {
            Answer::Go(permit) => harness.pacer.settle(permit, End::Made(&Outcome::throttled(None)), &harness.now),
            Answer::Wait { permit, .. } => harness.pacer.settle(permit, End::NeverMade, &harness.now),
            turn @ Answer::No { .. } => panic!("{turn:?}"),
        }
    }
    assert_eq!(harness.state(), PacerState::Exhausted);
    let admitted = harness.wait();
    assert!(admitted <= secs(1), "{admitted:?}");
    assert_eq!(harness.state(), PacerState::Paced);
    assert!((20..=40).contains(&harness.rate()), "100 successes in 3 to 5 s, not {}", harness.rate());
}

#[test]
fn it_becomes_passive_when_nobody_has_waited_for_thirty_seconds() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    harness.wait();
    harness.wait();
    for _ in 0..290 {
        harness.after(ms(100)).call(Outcome::Success);
        assert_eq!(harness.state(), PacerState::Paced);
    }
    (0..20).for_each(|_| harness.after(ms(100)).call(Outcome::Success));
    assert_eq!((harness.state(), harness.pacer.is_at_rest(&harness.now)), (PacerState::Passive, true));
    assert_eq!(harness.pacer.snapshot().activations, 1);
}

#[test]
fn a_place_does_not_outlast_the_rate_at_which_it_was_taken() {
    let mut harness = Harness::new(Pacer::new());
    // One success in a second: a rate of one per second.
    harness.call(Outcome::throttled(None));
    harness.after(ms(500)).call(Outcome::Success);
    harness.after(ms(550)).call(Outcome::Success);
    let mut waiting: Vec<_> = (0..100)
        .map(|_| match harness.ask() {
            Answer::Wait { after, permit } => {
                assert!(after <= ms(500), "{after:?}");
                permit
            }
            turn => panic!("{turn:?}"),
        })
        .collect();
    let start = harness.now;
    while !waiting.is_empty() {
        harness.after(ms(100));
        let mut still = Vec::new();
        for permit in waiting {
            match harness.pacer.ask(Ask::FIRST, permit, &harness.now) {
                Answer::Go(permit) => harness.pacer.settle(permit, End::Made(&Outcome::Success), &harness.now),
                Answer::Wait { permit, .. } => still.push(permit),
                turn @ Answer::No { .. } => panic!("{turn:?}"),
            }
        }
        waiting = still;
    }
    let passed = harness.now.saturating_since(start);
    assert!(passed < secs(30), "{passed:?}, and not a hundred seconds");
}

#[test]
fn the_bound_of_waiting_calls_holds_and_a_turn_too_late_is_rejected_at_once() {
    let mut harness = Harness::new(Pacer::new().max_waiting(20).max_wait(ms(150)));
    harness.learn();
    harness.started();
    let turns: Vec<_> = (0..30).map(|_| harness.ask()).collect();
    let waiting = turns.iter().filter(|turn| matches!(turn, Answer::Wait { .. })).count();
    let rejected = turns.iter().filter(|turn| matches!(turn, Answer::No { .. })).count();
    // 13 turns of 11 ms are within 150 ms.
    assert!((12..=18).contains(&waiting) && waiting + rejected >= 25, "{waiting} wait, {rejected} are rejected");
    let snapshot = harness.pacer.snapshot();
    assert_eq!((snapshot.waiting as usize, snapshot.rejected as usize), (waiting, rejected));
}

#[test]
fn without_waiting_it_rejects_and_holds_nobody() {
    let mut harness = Harness::new(Pacer::new().max_waiting(0));
    harness.learn();
    let rejected = (0..50).filter(|_| matches!(harness.ask(), Answer::No { .. })).count();
    let snapshot = harness.pacer.snapshot();
    assert!(rejected > 40 && snapshot.rejected as usize == rejected, "{rejected}: {snapshot:?}");
    assert!(!harness.pacer.retry_in(&harness.now).is_zero());
    assert_eq!(snapshot.waiting, 0);
}

#[test]
fn a_new_one_has_the_same_settings_and_is_passive() {
    let mut harness = Harness::new(Pacer::new().max_waiting(0));
    harness.learn();
    assert!(!harness.pacer.is_at_rest(&harness.now));
    harness.pacer = harness.pacer.fresh().unwrap();
    assert!(harness.pacer.is_at_rest(&harness.now));
    harness.learn();
    assert!((0..50).any(|_| matches!(harness.ask(), Answer::No { .. })));
}

#[test]
fn the_rate_stays_as_it_is_while_no_call_waits() {
    let mut harness = Harness::new(Pacer::new());
    harness.learn();
    let mut call_for = |seconds: u64| {
        for _ in 0..10 * seconds {
            harness.call(Outcome::Success);
            harness.after(ms(100));
        }
        (harness.state(), harness.rate())
    };
    let learned = call_for(1);
    assert_eq!(learned.0, PacerState::Paced);
    assert_eq!(call_for(25), learned);
}

/// The intervals at the end of each second: 40 calls per second ask, and a server admits one every 50 ms, and from the
/// 25th second on one every 25 ms. A change of the algorithm changes this trace.
#[test]
fn the_trace_of_a_run_is_frozen() {
    let mut harness = Harness::new(Pacer::new());
    let start = harness.now;
    let (mut waiting, mut free_at, mut trace) = (Vec::new(), Instant::ZERO, Vec::new());
    for step in 0..1_600_u64 {
        harness.now = start.saturating_add(ms(step * 25));
        waiting.push(Permit::NONE);
        let mut still = Vec::new();
        for permit in waiting {
            match harness.pacer.ask(Ask::FIRST, permit, &harness.now) {
                Answer::Go(permit) => {
                    let is_free = harness.now >= free_at;
                    if is_free {
                        free_at = harness.now.saturating_add(ms(if step < 1_000 { 50 } else { 25 }));
                    }
                    let outcome = if is_free { Outcome::Success } else { Outcome::throttled(None) };
                    harness.pacer.settle(permit, End::Made(&outcome), &harness.now);
                }
                Answer::Wait { permit, .. } => still.push(permit),
                turn @ Answer::No { .. } => panic!("{turn:?}"),
            }
        }
        waiting = still;
        if step % 80 == 79 {
            trace.push(harness.pacer.snapshot().interval.as_micros());
        }
    }
    assert_eq!(trace, GOLDEN);
}

/// Microseconds, every two seconds.
const GOLDEN: [u128; 20] = [
    47_546, 49_341, 52_664, 46_742, 57_273, 53_960, 50_836, 55_450, 49_341, 54_259, 57_273, 50_360, 44_698, 32_594,
    28_143, 25_801, 23_651, 25_943, 26_434, 24_308,
];
