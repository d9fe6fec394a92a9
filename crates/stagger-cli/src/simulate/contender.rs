use stagger_core::Policy;

use super::guards::Guards;
use super::settings::Request;
use crate::error::CliError;
use crate::policy_args::PolicyArgs;
use crate::storm::{policies, swept, tell_apart};

/// A policy that is compared with others, under its name.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) guards: Option<Guards>,
}

/// The policies of a request, each with each of the guards.
///
/// # Errors
/// A policy that cannot be understood.
pub(super) fn contenders(request: &Request, args: &PolicyArgs, guards: &[Guards]) -> Result<Vec<Contender>, CliError> {
    let mut policies = policies(&request.compare, args)?;
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
    tell_apart(&mut contenders, |contender| &mut contender.name);
    Ok(contenders)
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
    fn several_guards_are_compared_too() {
        assert_eq!(names(&["curl"], &["none", "tokens"], None), ["curl, none", "curl, tokens"]);
        assert_eq!(names(&["curl"], &["tokens"], None), ["curl"]);
    }

    #[test]
    fn what_is_swept_is_told_apart() {
        assert_eq!(names(&["curl"], &[], Some("spread=5s,5s")), ["curl, spread=5s", "curl, spread=5s 2"]);
    }
}
