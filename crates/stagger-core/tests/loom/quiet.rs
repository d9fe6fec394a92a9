//! The quiet period.

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;
use stagger_core::guard::{Limiter, LimiterPermit, Turn};
use stagger_core::quiet::{QuietPeriod, QuietState};
use stagger_core::{Instant, Outcome, ServerHint};

use super::support::{NOW, model};

const SECOND: Duration = Duration::from_secs(1);

fn later(length: Duration) -> Instant {
    NOW.saturating_add(length)
}

fn hint(length: Duration) -> Outcome {
    Outcome::throttled(Some(ServerHint::AtLeast(length)))
}

fn paused() -> Arc<QuietPeriod> {
    let quiet = Arc::new(QuietPeriod::new());
    quiet.pause(SECOND, &NOW);
    quiet
}

fn beside<T: 'static>(
    quiet: &Arc<QuietPeriod>,
    work: impl FnOnce(&QuietPeriod) -> T + 'static,
) -> thread::JoinHandle<T> {
    let quiet = quiet.clone();
    thread::spawn(move || work(&quiet))
}

fn ask(quiet: &QuietPeriod, at: Instant) -> Turn {
    quiet.admit(LimiterPermit::NONE, None, &at)
}

fn is_now(turn: &Turn) -> bool {
    matches!(turn, Turn::Now(_))
}

#[test]
fn the_longer_of_two_hints_wins() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::new());
        let other = beside(&quiet, |quiet| quiet.record(LimiterPermit::NONE, &hint(SECOND * 10), &NOW));
        quiet.record(LimiterPermit::NONE, &hint(SECOND * 5), &NOW);
        other.join().unwrap();
        let snapshot = quiet.snapshot(&NOW);
        assert_eq!((snapshot.remaining, snapshot.pauses), (SECOND * 10, 1));
    });
}

#[test]
fn one_of_two_callers_is_the_probe() {
    model(|| {
        let quiet = paused();
        let other = beside(&quiet, |quiet| is_now(&ask(quiet, later(SECOND))));
        let mine = is_now(&ask(&quiet, later(SECOND)));
        assert!(mine != other.join().unwrap());
        assert_eq!((quiet.snapshot(&later(SECOND)).state, quiet.snapshot(&NOW).waiting), (QuietState::Probing, 1));
    });
}

#[test]
fn a_cancelled_probe_is_replaced_once() {
    model(|| {
        let quiet = paused();
        let Turn::Now(probe) = ask(&quiet, later(SECOND)) else { panic!("the probe") };
        let other = beside(&quiet, |quiet| is_now(&ask(quiet, later(SECOND))));
        quiet.release(probe);
        let taken = other.join().unwrap();
        assert_eq!(is_now(&ask(&quiet, later(SECOND))), !taken);
        assert_eq!(quiet.snapshot(&NOW).state, QuietState::Probing);
    });
}

#[test]
fn an_answer_of_the_probe_does_not_end_a_pause_that_began_beside_it() {
    model(|| {
        let quiet = paused();
        let Turn::Now(probe) = ask(&quiet, later(SECOND)) else { panic!("the probe") };
        let other = beside(&quiet, |quiet| quiet.pause(SECOND * 5, &later(SECOND)));
        quiet.record(probe, &Outcome::Success, &later(SECOND));
        other.join().unwrap();
        let snapshot = quiet.snapshot(&later(SECOND));
        assert_eq!((snapshot.state, snapshot.remaining), (QuietState::Quiet, SECOND * 5));
    });
}

#[test]
fn a_call_that_is_admitted_without_asking_neither_ends_nor_begins_a_pause() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::new());
        let other = beside(&quiet, |quiet| quiet.pause(SECOND, &NOW));
        if let Some(permit) = quiet.admit_if_open() {
            quiet.record_success(permit, Some(NOW), || NOW);
        }
        other.join().unwrap();
        assert_eq!(quiet.admit_if_open(), None, "what began before the pause changes nothing");
        let snapshot = quiet.snapshot(&NOW);
        assert_eq!((snapshot.state, snapshot.remaining, snapshot.pauses), (QuietState::Quiet, SECOND, 1));
    });
}

#[test]
fn one_release_starts_one_of_two_waiting_calls() {
    model(|| {
        let quiet = paused();
        let [Turn::Wait { permit: first, .. }, Turn::Wait { permit: mine, .. }, Turn::Wait { permit: theirs, .. }] =
            [(); 3].map(|()| ask(&quiet, NOW))
        else {
            panic!("three calls wait")
        };
        let Turn::Now(probe) = quiet.admit(first, None, &later(SECOND)) else { panic!("the probe") };
        quiet.record(probe, &Outcome::Success, &later(SECOND));
        let other = beside(&quiet, move |quiet| is_now(&quiet.admit(theirs, None, &later(SECOND))));
        let mine = is_now(&quiet.admit(mine, None, &later(SECOND)));
        assert!(mine != other.join().unwrap());
        let snapshot = quiet.snapshot(&NOW);
        assert_eq!((snapshot.waiting, snapshot.state), (1, QuietState::Returning));
    });
}

#[test]
fn the_last_place_is_taken_once() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::builder().max_waiting(1).build().unwrap());
        quiet.pause(SECOND, &NOW);
        let other = beside(&quiet, |quiet| matches!(ask(quiet, NOW), Turn::Wait { .. }));
        let mine = matches!(ask(&quiet, NOW), Turn::Wait { .. });
        assert!(mine != other.join().unwrap());
        let snapshot = quiet.snapshot(&NOW);
        assert_eq!((snapshot.waiting, snapshot.waited, snapshot.rejected), (1, 1, 1));
    });
}

#[test]
fn two_refusals_of_one_burst_cut_the_pace_once() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::new());
        // Ten a second were admitted.
        (0..10).for_each(|_| quiet.record(LimiterPermit::NONE, &Outcome::Success, &NOW));
        quiet.pause(SECOND, &NOW);
        let [
            Turn::Wait { permit: first, .. },
            Turn::Wait { permit: mine, .. },
            Turn::Wait { permit: theirs, .. },
            Turn::Wait { .. },
        ] = [(); 4].map(|()| ask(&quiet, NOW))
        else {
            panic!("four calls wait")
        };
        let Turn::Now(probe) = quiet.admit(first, None, &later(SECOND)) else { panic!("the probe") };
        quiet.record(probe, &Outcome::Success, &later(SECOND));
        // A return is not cut in its first second.
        let due = [later(SECOND * 2), later(SECOND * 2 + SECOND / 10)];
        let Turn::Now(mine) = quiet.admit(mine, None, &due[0]) else { panic!("the first release is due") };
        let Turn::Now(theirs) = quiet.admit(theirs, None, &due[1]) else { panic!("the second release is due") };
        let soon = later(SECOND * 2 + SECOND / 5);
        let other = beside(&quiet, move |quiet| quiet.record(theirs, &Outcome::throttled(None), &soon));
        quiet.record(mine, &Outcome::throttled(None), &soon);
        other.join().unwrap();
        // The rate has grown by a fifth before.
        let interval = quiet.snapshot(&soon).interval.as_millis();
        assert!((115..=130).contains(&interval), "{interval} ms");
    });
}
