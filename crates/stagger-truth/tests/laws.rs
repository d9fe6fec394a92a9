//! Tries each law in fixed cases.

use stagger_truth::law::{Law, Trial};
use stagger_truth::laws;

#[track_caller]
fn trial(name: &str, cases: u64) -> Trial {
    let law: &Law = laws::ALL.iter().find(|law| law.name == name).unwrap();
    let trial = law.trial(0..cases, None);
    assert!(trial.broken.is_empty(), "{}:\n{trial}", law.statement);
    trial
}

/// Asserts that the law held this often for each of these words.
#[track_caller]
fn held(trial: &Trial, words: &[(&'static str, usize)]) {
    for (word, least) in words {
        let count = trial.counts.get(&(true, *word)).copied().unwrap_or_default();
        assert!(count >= *least, "{word}: {count} times\n{trial}");
    }
}

#[test]
fn what_check_does_not_warn_of_causes_no_storm() {
    let trial = trial("check", 200);
    assert!(trial.tried() >= 90, "{trial}");
    held(
        &trial,
        &[("a fleet, an outage", 20), ("a fleet, no outage", 5), ("calls, a guard", 20), ("calls, no guard", 5)],
    );
}

#[test]
fn what_check_suggests_makes_nothing_worse_that_it_does_not_say() {
    let trial = trial("help", 200);
    assert!(trial.tried() >= 190, "{trial}");
    held(&trial, &[("fix", 40), ("S004", 30), ("S023", 20), ("S006", 5), ("S008", 3), ("S001", 2), ("S022", 2)]);
}
