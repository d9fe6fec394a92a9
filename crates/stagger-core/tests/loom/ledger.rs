//! The tokens of a process in a fleet. The ledger belongs to `stagger-lease`, which is not built for loom, so
//! its file is compiled here.

use ::loom::sync::Arc;
use ::loom::thread;

use super::support::model;

#[expect(dead_code, reason = "the file is that of a library, and has more than the models use")]
#[path = "../../../../fleet/stagger-lease/src/ledger.rs"]
mod ledger;

use ledger::{Counted, Ledger};

fn ledger(held: u64) -> Arc<Ledger> {
    Arc::new(Ledger::with(Counted { held, spent: 0, earned: 0 }))
}

/// Runs `work` in another thread.
fn beside<T: 'static>(ledger: &Arc<Ledger>, work: fn(&Ledger) -> T) -> thread::JoinHandle<T> {
    let ledger = Arc::clone(ledger);
    thread::spawn(move || work(&ledger))
}

#[test]
fn loom_a_token_is_spent_once() {
    model(|| {
        let ledger = ledger(1);
        let other = beside(&ledger, |ledger| ledger.try_spend(1));
        let here = ledger.try_spend(1);
        assert!(here != other.join().unwrap(), "one of them");
        assert_eq!((ledger.held(), ledger.spent()), (0, 1));
    });
}

#[test]
fn loom_a_claim_is_never_less_than_what_was_granted() {
    model(|| {
        let ledger = ledger(2);
        let others = [
            beside(&ledger, |ledger| {
                assert!(ledger.try_spend(1));
                ledger.release(1);
            }),
            beside(&ledger, |ledger| assert!(ledger.try_spend(1))),
        ];
        let Counted { held, spent, .. } = ledger.claim(u64::MAX);
        assert!(held.wrapping_add(spent) >= 2, "a token would be granted twice: {held} held, {spent} spent");
        for other in others {
            other.join().unwrap();
        }
        let Counted { held, spent, .. } = ledger.claim(u64::MAX);
        assert_eq!((held, spent), (1, 1));
    });
}

#[test]
fn loom_what_is_handed_back_is_not_spent() {
    model(|| {
        let ledger = ledger(2);
        let other = beside(&ledger, |ledger| u64::from(ledger.try_spend(1)) + u64::from(ledger.try_spend(1)));
        assert!(ledger.claim(1).held <= 1);
        let spent = other.join().unwrap();
        assert_eq!(spent, ledger.spent());
        assert!(ledger.held() + spent <= 2);
    });
}
