//! The pacer.

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::pacer::{Pacer, PacerState};
use stagger_core::{Guard, Instant, Outcome};

use super::support::{NOW, model};

const SECOND: Duration = Duration::from_secs(1);
const REFUSED: Outcome = Outcome::throttled(None);

fn later(length: Duration) -> Instant {
    NOW.saturating_add(length)
}

fn beside<T: 'static>(pacer: &Arc<Pacer>, work: impl FnOnce(&Pacer) -> T + 'static) -> thread::JoinHandle<T> {
    let pacer = pacer.clone();
    thread::spawn(move || work(&pacer))
}

fn ask(pacer: &Pacer, at: Instant) -> Answer {
    pacer.ask(Ask::FIRST, Permit::NONE, &at)
}

fn is_now(turn: &Answer) -> bool {
    matches!(turn, Answer::Go(_))
}

/// A pacer that has just begun to pace, at one call per second.
fn paced() -> Arc<Pacer> {
    let pacer = Arc::new(Pacer::new());
    pacer.settle(Permit::NONE, End::Made(&REFUSED), &NOW);
    pacer.settle(Permit::NONE, End::Made(&Outcome::Success), &later(SECOND / 2));
    pacer
}

#[test]
fn two_first_refusals_begin_to_measure_once() {
    model(|| {
        let pacer = Arc::new(Pacer::new());
        let other = beside(&pacer, |pacer| pacer.settle(Permit::NONE, End::Made(&REFUSED), &NOW));
        pacer.settle(Permit::NONE, End::Made(&REFUSED), &NOW);
        other.join().unwrap();
        let snapshot = pacer.snapshot();
        assert_eq!((snapshot.state, snapshot.activations), (PacerState::Measuring, 1));
    });
}

#[test]
fn one_turn_starts_one_of_two_calls() {
    model(|| {
        let pacer = paced();
        let due = later(SECOND + SECOND / 10);
        let Answer::Go(_) = ask(&pacer, due) else { panic!("the first turn is due") };
        let at = due.saturating_add(SECOND);
        let other = beside(&pacer, move |pacer| is_now(&ask(pacer, at)));
        let mine = is_now(&ask(&pacer, at));
        assert!(mine != other.join().unwrap());
        assert_eq!((pacer.snapshot().waiting, pacer.snapshot().state), (1, PacerState::Paced));
    });
}

#[test]
fn one_of_two_callers_ends_the_measuring() {
    model(|| {
        let pacer = paced();
        let due = later(SECOND + SECOND / 10);
        let other = beside(&pacer, move |pacer| is_now(&ask(pacer, due)));
        let mine = is_now(&ask(&pacer, due));
        let theirs = other.join().unwrap();
        // One that comes while the other ends the measuring may still pass.
        assert!(mine || theirs);
        let snapshot = pacer.snapshot();
        assert_eq!((snapshot.state, snapshot.interval), (PacerState::Paced, SECOND));
    });
}

#[test]
fn two_refusals_of_one_burst_cut_the_rate_once() {
    model(|| {
        let pacer = Arc::new(Pacer::new());
        pacer.settle(Permit::NONE, End::Made(&REFUSED), &NOW);
        (0..40).for_each(|_| pacer.settle(Permit::NONE, End::Made(&Outcome::Success), &later(SECOND / 2)));
        let due = later(SECOND + SECOND / 10);
        let Answer::Go(mine) = ask(&pacer, due) else { panic!("the first turn is due") };
        let at = due.saturating_add(SECOND * 3 / 5);
        let Answer::Go(theirs) = ask(&pacer, at) else { panic!("the second turn is due") };
        let before = pacer.snapshot().interval;
        let other = beside(&pacer, move |pacer| pacer.settle(theirs, End::Made(&REFUSED), &at));
        pacer.settle(mine, End::Made(&REFUSED), &at);
        other.join().unwrap();
        let snapshot = pacer.snapshot();
        assert_eq!(snapshot.cuts, 1);
        assert!(snapshot.interval > before && snapshot.interval <= before * 21 / 10, "{:?}", snapshot.interval);
    });
}

#[test]
fn a_cancelled_call_and_one_that_starts_free_a_place_each() {
    model(|| {
        let pacer = paced();
        let due = later(SECOND + SECOND / 10);
        let Answer::Go(_) = ask(&pacer, due) else { panic!("the first turn is due") };
        let [Answer::Wait { permit: mine, .. }, Answer::Wait { permit: theirs, .. }] =
            [(); 2].map(|()| ask(&pacer, due))
        else {
            panic!("two calls wait")
        };
        let at = due.saturating_add(SECOND * 2);
        let other = beside(&pacer, move |pacer| pacer.settle(theirs, End::NeverMade, &at));
        let started = is_now(&pacer.ask(Ask::FIRST, mine, &at));
        other.join().unwrap();
        assert!(started);
        assert_eq!(pacer.snapshot().waiting, 0);
    });
}

#[test]
fn a_success_beside_a_refusal_reopens_an_exhausted_pacer_once() {
    model(|| {
        let pacer = Arc::new(Pacer::new());
        pacer.settle(Permit::NONE, End::Made(&REFUSED), &NOW);
        pacer.settle(Permit::NONE, End::Made(&REFUSED), &later(SECOND / 2));
        let due = later(SECOND + SECOND / 10);
        let Answer::Go(mine) = ask(&pacer, due) else { panic!("the first turn is due") };
        assert_eq!(pacer.snapshot().state, PacerState::Exhausted);
        let other = beside(&pacer, move |pacer| pacer.settle(Permit::NONE, End::Made(&Outcome::Success), &due));
        pacer.settle(mine, End::Made(&REFUSED), &due);
        other.join().unwrap();
        assert_eq!(pacer.snapshot().state, PacerState::Measuring);
    });
}
