use core::fmt;

use stagger_core::Policy;

use super::guards::Guards;
use super::settings::Request;
use crate::error::CliError;
use crate::policy_args::PolicyArgs;

/// A policy that is compared with others, under its name.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) guards: Option<Guards>,
}

/// Names longer than this are cut to their first word: they head lines of tables.
const NAME: usize = 24;

/// The policies of a request, each with each of the guards.
///
/// # Errors
/// A policy that cannot be understood.
pub(super) fn contenders(request: &Request, args: &PolicyArgs, guards: &[Guards]) -> Result<Vec<Contender>, CliError> {
    let mut policies = Vec::new();
    if request.compare.is_empty() || args.policy.is_some() {
        let policy = args.policy()?;
        let name = args.policy.clone().unwrap_or_else(|| policy.to_string());
        policies.push((short(&name), policy));
    }
    for entry in request.compare.iter().flat_map(|list| apart(list)) {
        let (name, spec) = match entry.split_once(": ") {
            Some((name, spec)) => (name.trim().to_owned(), spec.trim().to_owned()),
            None => (short(&entry), entry),
        };
        let policy = PolicyArgs { policy: Some(spec), ..args.clone() }.policy();
        policies.push((name, policy.map_err(of_compare)?));
    }
    if let Some(sweep) = &request.sweep {
        policies = swept(&policies, sweep)?;
    }
    let mut contenders: Vec<Contender> = Vec::new();
    for (name, policy) in policies {
        if guards.len() < 2 {
            contenders.push(Contender { name, policy, guards: guards.first().cloned() });
            continue;
        }
        contenders.extend(guards.iter().map(|guards| Contender {
            name: format!("{name}, {}", guards.text()),
            policy,
            guards: Some(guards.clone()),
        }));
    }
    for at in 1..contenders.len() {
        let (before, rest) = contenders.split_at_mut(at);
        let (is_taken, name) = (|name: &str| before.iter().any(|other| other.name == name), &mut rest[0].name);
        if is_taken(name) {
            let free = (2..).map(|number| format!("{name} {number}")).find(|name| !is_taken(name));
            *name = free.unwrap_or_default();
        }
    }
    Ok(contenders)
}

/// An error of a policy that was not given by `--policy`.
fn of_compare(error: CliError) -> CliError {
    match error {
        CliError::Usage(text) => CliError::Usage(text.replacen("--policy: ", "--compare: ", 1)),
        error @ CliError::Io { .. } => error,
    }
}

/// Each policy with each value of a setting.
fn swept(policies: &[(String, Policy)], sweep: &str) -> Result<Vec<(String, Policy)>, CliError> {
    let wrong = |error: &dyn fmt::Display| CliError::usage(format_args!("--sweep: {error}"));
    let Some((key, values)) = sweep.split_once('=') else {
        return Err(wrong(&format_args!("`{sweep}` has no values; write it like spread=0s,5s,10s")));
    };
    let mut swept = Vec::new();
    for (name, policy) in policies {
        for value in values.split(',').map(str::trim) {
            let builder = policy.to_builder().set(key.trim(), value).map_err(|error| wrong(&error))?;
            let policy = builder.build().map_err(|error| wrong(&format_args!("{name} with {key}={value}: {error}")))?;
            swept.push((format!("{name}, {key}={value}"), policy));
        }
    }
    Ok(swept)
}

/// A list cut at its commas, except where a digit follows: those belong to a policy's own list of delays.
fn apart(list: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for piece in list.split(',') {
        match entries.last_mut() {
            Some(last) if piece.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push(',');
                last.push_str(piece);
            }
            _ => entries.push(piece.trim().to_owned()),
        }
    }
    entries
}

fn short(name: &str) -> String {
    let is_short = name.chars().count() <= NAME;
    let word = name.split_whitespace().next().unwrap_or(name);
    if is_short { name.to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::args::Kind;

    fn names(compare: &[&str], guards: &[&str], sweep: Option<&str>) -> Vec<String> {
        let request = Request {
            kind: Kind::Outage,
            settings: Default::default(),
            compare: compare.iter().map(|list| (*list).to_owned()).collect(),
            sweep: sweep.map(str::to_owned),
            seed: 1,
            seeds: 1,
            assert: Vec::new(),
        };
        let guards: Vec<Guards> = guards.iter().map(|text| text.parse().unwrap()).collect();
        let contenders = contenders(&request, &PolicyArgs::default(), &guards).unwrap();
        contenders.into_iter().map(|contender| contender.name).collect()
    }

    #[test]
    fn names_are_short_and_each_is_there_once() {
        let lines =
            ["exponential base=1s cap=30s jitter=none, exponential base=2s cap=30s jitter=none", "curl,ours: curl"];
        assert_eq!(names(&lines, &[], None), ["exponential", "exponential 2", "curl", "ours"]);
    }

    #[test]
    fn a_list_of_delays_is_not_cut() {
        assert_eq!(apart("list 1s,2s,5s,curl"), ["list 1s,2s,5s", "curl"]);
    }

    #[test]
    fn several_guards_are_compared_too() {
        assert_eq!(names(&["curl"], &["none", "tokens"], None), ["curl, none", "curl, tokens"]);
        assert_eq!(names(&["curl"], &["tokens"], None), ["curl"]);
    }

    #[test]
    fn a_sweep_has_each_policy_with_each_value() {
        assert_eq!(names(&["curl"], &[], Some("spread=0s,5s")), ["curl, spread=0s", "curl, spread=5s"]);
        let policies = [("curl".to_owned(), Policy::DEFAULT)];
        assert!(swept(&policies, "spread").is_err_and(|error| error.to_string().contains("write it like spread=0s")));
        assert!(
            swept(&policies, "max-attempts=0")
                .is_err_and(|error| error.to_string().contains("curl with max-attempts=0"))
        );
    }
}
