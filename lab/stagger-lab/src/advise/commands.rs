//! The commands that show what the advice says.

use core::time::Duration;

use stagger_core::Policy;
use stagger_core::text::Compact;
use stagger_lint::advise::{GuardTrial, ParetoFront};
use stagger_sim::outage::DefaultGuards;
use stagger_sim::reconnect::FirstAttempt;

/// The horizon of a mass disconnect that `stagger simulate` has by default.
const A_DAY: Duration = Duration::from_secs(86_400);

/// The first seed that `stagger simulate` has by default.
const SEED: u64 = 1;

/// Returns the command that simulates the recommended policy in the outages of the advice.
pub(super) fn disconnect(front: &ParetoFront, seed: u64) -> Option<String> {
    let scenario = &front.scenario;
    let mut words = words(&["stagger", "simulate", "reconnect"]);
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    flag("--clients", scenario.clients().to_string());
    flag("--capacity", format!("{}/s", scenario.rate()));
    flag("--backlog", scenario.backlog().to_string());
    if scenario.first_attempt() == FirstAttempt::Immediate {
        flag("--first-attempt", "immediate".to_owned());
    }
    let outages: Vec<String> = front.best().by_outage.iter().map(|(outage, _)| Compact(*outage).to_string()).collect();
    match &outages[..] {
        [one] => flag("--down", one.clone()),
        several => flag("--sweep", format!("down={}", several.join(","))),
    }
    if scenario.horizon() != A_DAY {
        flag("--horizon", Compact(scenario.horizon()).to_string());
    }
    runs(&mut words, seed, front.runs);
    joined(words, &front.best().policy)
}

/// Returns the command that simulates the policy under load, without guards and with the recommended ones.
pub(super) fn guards(trial: &GuardTrial, policy: &Policy, seed: u64) -> Option<String> {
    let mut words = words(&["stagger", "simulate", "outage"]);
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    flag("--processes", trial.processes.to_string());
    flag("--rate", format!("{}/s", trial.rate));
    flag("--capacity", format!("{}/s", trial.capacity));
    flag("--backlog", trial.backlog.to_string());
    flag("--start", Compact(trial.start).to_string());
    flag("--down", Compact(trial.stall).to_string());
    flag("--horizon", Compact(trial.horizon).to_string());
    if trial.guards != DefaultGuards::None {
        flag("--guards", format!("none,{}", trial.guards.name()));
    }
    runs(&mut words, seed, trial.runs);
    joined(words, policy)
}

fn words(first: &[&str]) -> Vec<String> {
    first.iter().map(|&word| word.to_owned()).collect()
}

fn runs(words: &mut Vec<String>, seed: u64, runs: u32) {
    if seed != SEED {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    words.extend(["--seeds".to_owned(), runs.to_string()]);
}

fn joined(mut words: Vec<String>, policy: &Policy) -> Option<String> {
    words.extend(["-p".to_owned(), policy.to_string()]);
    shlex::try_join(words.iter().map(String::as_str)).ok()
}
