use stagger_core::Policy;

use super::guards::Guards;
use super::settings::Request;
use crate::output::error::CliError;
use crate::policy_args::PolicyArgs;
use crate::storm::{apply_sweep, named_policies, number_duplicates};

/// Named policy, with its guards, that is compared with others.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) guards: Option<Guards>,
}

/// Returns the strategies of a request: each policy combined with each of the guards.
pub(super) fn strategies(request: &Request, args: &PolicyArgs, guards: &[Guards]) -> Result<Vec<Strategy>, CliError> {
    let mut policies = named_policies(&request.compare, args)?;
    if let Some(sweep) = &request.sweep {
        policies = apply_sweep(&policies, sweep)?;
    }
    let mut strategies: Vec<Strategy> = Vec::new();
    for (name, policy) in policies {
        if guards.len() < 2 {
            strategies.push(Strategy { name, policy, guards: guards.first().cloned() });
            continue;
        }
        strategies.extend(guards.iter().map(|guards| Strategy {
            name: format!("{name}, {}", guards.text),
            policy,
            guards: Some(guards.clone()),
        }));
    }
    number_duplicates(&mut strategies, |strategy| &mut strategy.name);
    Ok(strategies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::args::ScenarioKind;

    fn names(compare: &[&str], guards: &[&str], sweep: Option<&str>) -> Vec<String> {
        let request = Request {
            kind: ScenarioKind::Outage,
            settings: Default::default(),
            compare: compare.iter().map(|list| (*list).to_owned()).collect(),
            sweep: sweep.map(str::to_owned),
            seed: 1,
            seeds: 1,
            assert: Vec::new(),
        };
        let guards: Vec<Guards> = guards.iter().map(|text| text.parse().unwrap()).collect();
        let strategies = strategies(&request, &PolicyArgs::default(), &guards).unwrap();
        strategies.into_iter().map(|strategy| strategy.name).collect()
    }

    #[test]
    fn several_guards_are_compared() {
        assert_eq!(names(&["curl"], &["none", "tokens"], None), ["curl, none", "curl, tokens"]);
        assert_eq!(names(&["curl"], &["tokens"], None), ["curl"]);
    }

    #[test]
    fn duplicate_names_of_a_sweep_are_numbered() {
        assert_eq!(names(&["curl"], &[], Some("spread=5s,5s")), ["curl, spread=5s", "curl, spread=5s 2"]);
    }
}
