//! The lever.

use ::loom::sync::Arc;
use stagger_core::budget::{Concurrent, Lever, Mode, Setting, Tokens, Unlimited};
use stagger_core::{Budget, BudgetPermit, Kind, Outcome, Ratio};

use super::support::{NOW, model, together};

const MODES: [Mode; 4] = [Mode::Enforced, Mode::Observed, Mode::Off, Mode::NoRetries];

fn ask(budget: &dyn Budget) -> u64 {
    u64::from(budget.lend(Kind::Transient, &NOW).is_some())
}

#[test]
fn loom_every_retry_that_is_asked_for_is_counted_whoever_moves_the_lever() {
    model(|| {
        let lever = Arc::new(Lever::new(Tokens::builder().capacity(1).cost(1).reward(0).build().unwrap()));
        let ask: fn(&Lever<Tokens>) -> u64 = |lever| ask(lever);
        let stop: fn(&Lever<Tokens>) -> u64 = |lever| {
            lever.set(Mode::NoRetries);
            0
        };
        let lent = together(&lever, &[ask, stop, ask]);
        let seen = lever.snapshot();
        assert!(lent <= 1, "there is one token");
        assert_eq!((lent + seen.refused + seen.stopped, seen.would_have_refused), (2, 0));
        assert_eq!(lever.budget().snapshot().tokens, 1 - lent);
    });
}

#[test]
fn loom_a_loan_comes_home_whatever_the_lever_has_become() {
    for mode in MODES {
        model(move || {
            let lever = Arc::new(Lever::new(Concurrent::with(Ratio::ZERO, 1).unwrap()));
            let call: fn(&Lever<Concurrent>) -> u64 = |lever| {
                let first = lever.first(&NOW);
                lever.settle(first, &Outcome::TRANSIENT, &NOW);
                let Some(loan) = lever.lend(Kind::Transient, &NOW) else { return 0 };
                lever.give_back(loan);
                1
            };
            let moving = lever.clone();
            let mover = ::loom::thread::spawn(move || moving.set(mode));
            together(&lever, &[call, call]);
            mover.join().unwrap();
            assert_eq!(lever.mode(), mode);
            let seen = lever.budget().snapshot();
            assert_eq!((seen.firsts, seen.retries), (0, 0));
            assert_ne!(lever.budget().lend(Kind::Transient, &NOW), None::<BudgetPermit>);
        });
    }
}

#[test]
fn loom_a_share_is_let_pass_to_the_last() {
    model(|| {
        let lever = Arc::new(Lever::new(Unlimited));
        lever.set(Ratio::percent(50));
        let twice: fn(&Lever<Unlimited>) -> u64 = |lever| ask(lever) + ask(lever);
        assert_eq!(together(&lever, &[twice, twice, |lever| ask(lever)]), 2);
        assert_eq!(lever.snapshot().limited, 3);
    });
}

#[test]
fn loom_a_lever_is_moved_whole() {
    model(|| {
        let lever = Arc::new(Lever::new(Unlimited));
        let (here, there) = (Setting::new(Mode::Observed, Ratio::ZERO), Setting::from(Mode::NoRetries));
        lever.set(here);
        let theirs = Arc::clone(&lever);
        let mover = ::loom::thread::spawn(move || theirs.set(Mode::NoRetries));
        let (lent, seen) = (ask(&*lever), lever.switch().setting());
        mover.join().expect("it does not panic");
        assert!(lent == 0 && (seen == here || seen == there), "{seen}");
        let counted = lever.snapshot();
        assert_eq!(counted.limited + counted.stopped, 1);
    });
}
