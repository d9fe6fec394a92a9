//! The quiet period.

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::quiet::{QuietPeriod, QuietState};
use stagger_core::{Guard, Instant, Outcome, ServerHint};

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

fn ask(quiet: &QuietPeriod, at: Instant) -> Answer {
    quiet.ask(Ask::FIRST, Permit::NONE, &at)
}

fn is_now(turn: &Answer) -> bool {
    matches!(turn, Answer::Go(_))
}

#[test]
fn the_longer_of_two_hints_wins() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::new());
        let other = beside(&quiet, |quiet| quiet.settle(Permit::NONE, End::Made(&hint(SECOND * 10)), &NOW));
        quiet.settle(Permit::NONE, End::Made(&hint(SECOND * 5)), &NOW);
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
        let Answer::Go(probe) = ask(&quiet, later(SECOND)) else { panic!("the probe") };
        let other = beside(&quiet, |quiet| is_now(&ask(quiet, later(SECOND))));
        quiet.settle(probe, End::NeverMade, &later(SECOND));
        let taken = other.join().unwrap();
        assert_eq!(is_now(&ask(&quiet, later(SECOND))), !taken);
        assert_eq!(quiet.snapshot(&NOW).state, QuietState::Probing);
    });
}

#[test]
fn an_answer_of_the_probe_does_not_end_a_pause_that_began_beside_it() {
    model(|| {
        let quiet = paused();
        let Answer::Go(probe) = ask(&quiet, later(SECOND)) else { panic!("the probe") };
        let other = beside(&quiet, |quiet| quiet.pause(SECOND * 5, &later(SECOND)));
        quiet.settle(probe, End::Made(&Outcome::Success), &later(SECOND));
        other.join().unwrap();
        let snapshot = quiet.snapshot(&later(SECOND));
        assert_eq!((snapshot.state, snapshot.remaining), (QuietState::Quiet, SECOND * 5));
    });
}

#[test]
fn a_call_that_starts_beside_a_pause_neither_ends_nor_begins_one() {
    model(|| {
        let quiet = Arc::new(QuietPeriod::new());
        let other = beside(&quiet, |quiet| quiet.pause(SECOND, &NOW));
        if let Answer::Go(permit) = ask(&quiet, NOW) {
            quiet.settle(permit, End::Made(&Outcome::Success), &NOW);
        }
        other.join().unwrap();
        assert!(!is_now(&ask(&quiet, NOW)), "what began before the pause changes nothing");
        let snapshot = quiet.snapshot(&NOW);
        assert_eq!((snapshot.state, snapshot.remaining, snapshot.pauses), (QuietState::Quiet, SECOND, 1));
    });
}

#[test]
fn one_release_starts_one_of_two_waiting_calls() {
    model(|| {
        let quiet = paused();
        let [
            Answer::Wait { permit: first, .. },
            Answer::Wait { permit: mine, .. },
            Answer::Wait { permit: theirs, .. },
        ] = [(); 3].map(|()| ask(&quiet, NOW))
        else {
            panic!("three calls wait")
        };
        let Answer::Go(probe) = quiet.ask(Ask::FIRST, first, &later(SECOND)) else { panic!("the probe") };
        quiet.settle(probe, End::Made(&Outcome::Success), &later(SECOND));
        let other = beside(&quiet, move |quiet| is_now(&quiet.ask(Ask::FIRST, theirs, &later(SECOND))));
        let mine = is_now(&quiet.ask(Ask::FIRST, mine, &later(SECOND)));
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
        let other = beside(&quiet, |quiet| matches!(ask(quiet, NOW), Answer::Wait { .. }));
        let mine = matches!(ask(&quiet, NOW), Answer::Wait { .. });
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
        (0..10).for_each(|_| quiet.settle(Permit::NONE, End::Made(&Outcome::Success), &NOW));
        quiet.pause(SECOND, &NOW);
        let [
            Answer::Wait { permit: first, .. },
            Answer::Wait { permit: mine, .. },
            Answer::Wait { permit: theirs, .. },
            Answer::Wait { .. },
        ] = [(); 4].map(|()| ask(&quiet, NOW))
        else {
            panic!("four calls wait")
        };
        let Answer::Go(probe) = quiet.ask(Ask::FIRST, first, &later(SECOND)) else { panic!("the probe") };
        quiet.settle(probe, End::Made(&Outcome::Success), &later(SECOND));
        // A return is not cut in its first second.
        let due = [later(SECOND * 2), later(SECOND * 2 + SECOND / 10)];
        let Answer::Go(mine) = quiet.ask(Ask::FIRST, mine, &due[0]) else { panic!("the first release is due") };
        let Answer::Go(theirs) = quiet.ask(Ask::FIRST, theirs, &due[1]) else { panic!("the second release is due") };
        let soon = later(SECOND * 2 + SECOND / 5);
        let other = beside(&quiet, move |quiet| quiet.settle(theirs, End::Made(&Outcome::throttled(None)), &soon));
        quiet.settle(mine, End::Made(&Outcome::throttled(None)), &soon);
        other.join().unwrap();
        // The rate has grown by a sixth before.
        let interval = quiet.snapshot(&soon).interval.as_millis();
        assert!((115..=130).contains(&interval), "{interval} ms");
    });
}
