//! Tries each law in fixed cases, or in those that the environment asks for.

use super::advise::ADVISE;
use super::calls::{ADVISED, CALLS, CONNECTIONS, OUTAGES};
use super::neighbors::NEIGHBORS;
use super::profiles::PROFILES;
use super::systems::{GAINS, SILENT, STALLED, VERDICTS};
use super::{check, help};

#[test]
fn what_check_does_not_warn_of_causes_no_storm_and_costs_little() {
    let words = [("a fleet, an outage", 8), ("a fleet, no outage", 3), ("calls, a guard", 8), ("calls, no guard", 2)];
    check::LAW.assert_holds_except(0.02, 420, 200, &words);
}

/// Storms of which `check` said nothing when it simulated only the stall of 2 s (120, 329), and when it did not know
/// that calls time out in the queue of a healthy server (641, 2705).
#[test]
fn storms_that_a_single_rule_finds_are_warned_of() {
    for seed in [120, 329, 641, 2705] {
        let trial = check::LAW.trial(seed..seed + 1);
        assert_eq!(trial.counts.get(&(false, "check warns")), Some(&1), "{trial}");
    }
}

#[test]
fn help_of_check_makes_nothing_worse() {
    let words = [("fix", 10), ("fix of calls", 3), ("S004", 6), ("S023", 6), ("calls", 10), ("a budget", 6)];
    help::LAW.assert_holds(210, 120, &words);
}

#[test]
fn advised_figures_of_calls_are_those_of_tasks() {
    ADVISED.assert_holds(8, 6, &[("all served", 3), ("not all served", 1)]);
}

#[test]
fn calls_are_simulated_as_they_are_made_by_tasks() {
    CALLS.assert_holds(40, 36, &[("a storm", 10), ("some gave up", 10), ("few retries", 2)]);
}

#[test]
fn connections_are_simulated_as_they_are_kept_up_by_tasks() {
    CONNECTIONS.assert_holds(40, 36, &[("a storm", 4), ("some gave up", 6), ("the server crashed again", 10)]);
}

#[test]
fn outages_are_simulated_as_they_happen_to_tasks() {
    OUTAGES.assert_holds(40, 36, &[("without guards", 6), ("with a budget", 12), ("with a breaker", 2)]);
}

/// Takes some time: each case is a search, and a simulation of 500 policies in up to five outages.
#[test]
fn advise_is_dominated_by_no_random_policy() {
    let words = [
        ("the advice for calls is not dominated", 3),
        ("the advice for calls that cannot all be served is not dominated", 2),
        ("the advice for connections is not dominated", 3),
        ("the advice for jobs is not dominated", 1),
    ];
    ADVISE.assert_holds(22, 20, &words);
}

/// Takes some time: each case is a search, and simulations of its neighbors in dozens of outages.
#[test]
fn neighbors_of_what_is_advised_are_not_better() {
    let words = [("no neighbor is better for calls", 2), ("no neighbor is better for jobs", 2)];
    NEIGHBORS.assert_holds_except(0.05, 18, 14, &words);
}

/// The questions whose answers random policies dominated, by up to 46 points of the share served, when the search knew
/// only ±20 % and ±50 % jitter and had no last rounds; and then in the last rounds, without policies that are nearly
/// better in everything. In 133, the figures of eight runs were not those of others.
#[test]
fn advice_that_was_dominated_is_not_any_more() {
    for seed in [28, 65, 90, 98, 121, 133, 34, 154, 494] {
        let trial = ADVISE.trial(seed..seed + 1);
        assert!(trial.broken.is_empty() && trial.tried() == 1, "{trial}");
    }
}

#[test]
fn verdicts_on_systems_agree_with_what_is_served_in_the_end() {
    VERDICTS.assert_holds(200, 180, &[("up", 120), ("down", 12)]);
}

#[test]
fn loop_gains_tell_which_systems_survive_a_stall() {
    GAINS.assert_holds(150, 40, &[("survived, all gains are below 1", 30), ("down, the gain is above 1", 3)]);
}

#[test]
fn silent_systems_are_up_with_few_exceptions() {
    SILENT.assert_holds_except(0.02, 760, 300, &[("up", 290)]);
}

#[test]
fn stalled_systems_survive_if_check_is_silent() {
    STALLED.assert_holds(800, 300, &[("survived", 300)]);
}

#[test]
fn profiles_of_ours_are_dominated_by_no_policy() {
    let words = [("a profile of the registry", 10), ("a neighbor", 10), ("a random policy", 10)];
    PROFILES.assert_holds(100, 100, &words);
}
