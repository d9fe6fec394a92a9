//! The plan of a simulation: policies times guards times swept values.

use std::collections::BTreeMap;

use stagger_core::Policy;
use stagger_report::parse::{named_policies, number_duplicates};
use stagger_sim::storm::{ScenarioSpec, SweptPart, SweptSetting};
use stagger_terminal::output::error::CliError;
use stagger_terminal::policy_args::PolicyArgs;

use super::guards::Guards;
use super::scenario::AnyScenario;
use super::settings::{MAX_RUNS, Request};
use super::sweep::Sweep;

/// Everything to run: the scenarios and the strategies that are compared.
#[derive(Debug)]
pub(super) struct Plan {
    /// The description of the first scenario. A sweep changes settings of a scenario, not its kind.
    pub(super) spec: ScenarioSpec,
    /// One, or several in a sweep over their settings.
    pub(super) scenarios: Vec<AnyScenario>,
    pub(super) strategies: Vec<Strategy>,
}

/// Named policy, with its guards and its scenario, that is compared with others.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) guards: Option<Guards>,
    /// The number of its scenario.
    pub(super) scenario: usize,
    /// The values that sweeps gave to settings.
    pub(super) swept: Vec<SweptSetting>,
}

impl Plan {
    /// Returns the plan of a request: each policy with each of the guards, and each combination of swept values.
    pub(super) fn new(request: &Request, args: &PolicyArgs) -> Result<Self, CliError> {
        Self::of_policies(request, &named_policies(&request.compare, args)?)
    }

    /// Returns the plan of a request with these named policies, in place of those it names.
    pub(super) fn of_policies(request: &Request, policies: &[(String, Policy)]) -> Result<Self, CliError> {
        let sweep = Sweep::parse(&request.sweep)?;
        // Before a large number of combinations is built.
        check_runs(request, policies.len(), &sweep)?;
        let combinations = sweep.combinations();
        let first = scenario(request, combinations.first().map_or(&[], Vec::as_slice))?;
        let guards = first.guards();
        check_runs(request, policies.len() * guards.len().max(1), &sweep)?;
        let (scenarios, numbers) = scenarios(request, &combinations)?;
        let mut strategies = Vec::new();
        for (name, policy) in policies {
            let own = request.own_guards.get(name).map(|text| text.parse::<Guards>()).transpose();
            let own = own.map_err(|error| CliError::usage(format_args!("{name}: {error}")))?;
            let with_guards: Vec<(String, Option<&Guards>)> = match guards {
                [] => match &own {
                    None => vec![(name.clone(), None)],
                    Some(own) => vec![(format!("{name}, {}", own.text), Some(own))],
                },
                [one] => vec![(name.clone(), Some(one))],
                several => several.iter().map(|one| (format!("{name}, {}", one.text), Some(one))).collect(),
            };
            for (name, guards) in with_guards {
                for (swept, &scenario) in combinations.iter().zip(&numbers) {
                    let labels = swept.iter().map(|SweptSetting { setting, value, .. }| format!(", {setting}={value}"));
                    let full_name = name.clone() + &labels.collect::<String>();
                    let policy = swept_policy(&name, policy, swept)?;
                    let (guards, swept) = (guards.cloned(), swept.clone());
                    strategies.push(Strategy { name: full_name, policy, guards, scenario, swept });
                }
            }
        }
        number_duplicates(&mut strategies, |strategy| &mut strategy.name);
        Ok(Self { spec: first.spec(), scenarios, strategies })
    }
}

/// Builds a scenario for each combination of values of its settings. Returns them, and for each combination of the
/// sweep the number of its scenario.
fn scenarios(
    request: &Request,
    combinations: &[Vec<SweptSetting>],
) -> Result<(Vec<AnyScenario>, Vec<usize>), CliError> {
    let (mut scenarios, mut numbers) = (Vec::new(), Vec::new());
    let mut known: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for swept in combinations {
        let key = scenario_settings(swept).map(|swept| &*swept.value).collect();
        let number = match known.get(&key) {
            Some(number) => *number,
            None => {
                scenarios.push(scenario(request, swept)?);
                known.insert(key, scenarios.len() - 1);
                scenarios.len() - 1
            }
        };
        numbers.push(number);
    }
    Ok((scenarios, numbers))
}

/// Builds the scenario with these swept values.
fn scenario(request: &Request, swept: &[SweptSetting]) -> Result<AnyScenario, CliError> {
    let mut settings = request.settings.clone();
    scenario_settings(swept).for_each(|swept| settings.set(&swept.setting, &swept.value, "--sweep"));
    AnyScenario::new(request.kind, settings)
}

fn scenario_settings(swept: &[SweptSetting]) -> impl Iterator<Item = &SweptSetting> {
    swept.iter().filter(|swept| swept.of == SweptPart::Scenario)
}

/// Returns an error if there are more runs than the results of which are kept in memory.
fn check_runs(request: &Request, strategies: usize, sweep: &Sweep) -> Result<(), CliError> {
    let seeds = request.seed_count() as usize;
    let runs = strategies.saturating_mul(sweep.len()).saturating_mul(seeds);
    if runs <= MAX_RUNS {
        return Ok(());
    }
    let count = |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let factors = [
        (strategies, "strategy", "strategies"),
        (sweep.len(), "combination of swept values", "combinations of swept values"),
        (seeds, "seed", "seeds"),
    ];
    let factors = factors.into_iter().filter(|(number, ..)| *number > 1);
    let factors: Vec<String> = factors.map(|(number, one, many)| count(number, one, many)).collect();
    Err(CliError::usage(format_args!(
        "{} are {runs} runs, and at most {MAX_RUNS} are possible; lower --seeds, sweep fewer values or compare fewer \
         policies",
        factors.join(" times "),
    )))
}

/// Returns the policy with the swept values of its settings.
fn swept_policy(name: &str, policy: &Policy, swept: &[SweptSetting]) -> Result<Policy, CliError> {
    let wrong = |error: String| CliError::usage(format_args!("--sweep: {error}"));
    let own = || swept.iter().filter(|swept| swept.of == SweptPart::Policy);
    let mut builder = policy.to_builder();
    for SweptSetting { setting, value, .. } in own() {
        builder = builder.set(setting, value).map_err(|error| wrong(error.to_string()))?;
    }
    builder.build().map_err(|error| {
        let labels: Vec<String> = own().map(|swept| format!("{}={}", swept.setting, swept.value)).collect();
        wrong(format!("{name} with {}: {error}", labels.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::args::ScenarioKind;
    use crate::simulate::settings::Settings;

    fn request(compare: &[&str], guards: &str, sweep: &[&str]) -> Request {
        let mut settings = Settings::default();
        if !guards.is_empty() {
            settings.set("guards", guards, "--guards");
        }
        Request {
            kind: ScenarioKind::Outage,
            settings,
            compare: compare.iter().map(|list| (*list).to_owned()).collect(),
            own_guards: BTreeMap::new(),
            sweep: sweep.iter().map(|sweep| (*sweep).to_owned()).collect(),
            seed: 1,
            seeds: 1,
            assert: Vec::new(),
        }
    }

    fn plan(request: &Request) -> Result<Plan, String> {
        Plan::new(request, &PolicyArgs::default()).map_err(|error| error.to_string())
    }

    fn names(compare: &[&str], guards: &str, sweep: &[&str]) -> Vec<String> {
        let plan = plan(&request(compare, guards, sweep)).unwrap();
        plan.strategies.into_iter().map(|strategy| strategy.name).collect()
    }

    #[test]
    fn several_guards_are_compared() {
        assert_eq!(names(&["curl"], "none,tokens", &[]), ["curl, none", "curl, tokens"]);
        assert_eq!(names(&["curl"], "tokens", &[]), ["curl"]);
    }

    #[test]
    fn duplicate_names_of_a_sweep_are_numbered() {
        assert_eq!(names(&["curl"], "", &["spread=5s,5s"]), ["curl, spread=5s", "curl, spread=5s 2"]);
    }

    #[test]
    fn policies_guards_and_swept_values_are_combined_in_this_order() {
        assert_eq!(
            names(&["curl,socket.io"], "none,tokens", &["rate=5,6", "base=1s,2s"])[..9],
            [
                "curl, none, rate=5, base=1s",
                "curl, none, rate=5, base=2s",
                "curl, none, rate=6, base=1s",
                "curl, none, rate=6, base=2s",
                "curl, tokens, rate=5, base=1s",
                "curl, tokens, rate=5, base=2s",
                "curl, tokens, rate=6, base=1s",
                "curl, tokens, rate=6, base=2s",
                "socket.io, none, rate=5, base=1s",
            ]
        );
    }

    #[test]
    fn strategies_share_the_scenarios_of_a_sweep() {
        let plan = plan(&request(&["curl,socket.io"], "", &["rate=5,6", "base=1s,2s"])).unwrap();
        let rates: Vec<String> = plan.scenarios.iter().map(|scenario| format!("{:?}", scenario.spec())).collect();
        assert_eq!(rates.len(), 2);
        assert!(rates[0].contains("rate: 5.0") && rates[1].contains("rate: 6.0"), "{rates:?}");
        let numbers: Vec<usize> = plan.strategies.iter().map(|strategy| strategy.scenario).collect();
        assert_eq!(numbers, [0, 0, 1, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn a_wrong_sweep_is_an_error_before_any_run() {
        for (sweep, want) in [
            (&["max-attempts=0"][..], "--sweep: curl with max-attempts=0: "),
            (&["bse=1s"], "--sweep: `bse` is not a setting; did you mean `base`?"),
            (&["raet=5"], "--sweep: `raet` is not a setting; did you mean `rate`?"),
            (&["clients=5"], "--sweep: the outage scenario has no setting `clients`; remove it or use one of rate,"),
            (&["rate=many"], "--sweep: invalid value `many`"),
            (&["rate=5,1e3"], "--sweep: invalid value `1e3`"),
            (&["capacity=0.0000000001"], "outage: the rate is not between"),
            (
                &["rate=1..200 step 1", "down=1..200 step 1"],
                "40000 combinations of swept values are 40000 runs, and at most 10000 are possible; lower --seeds,",
            ),
        ] {
            let error = plan(&request(&["curl"], "", sweep)).unwrap_err();
            assert!(error.starts_with(want), "{sweep:?}: {error}");
        }
        let mut many = request(&["curl,socket.io"], "none,tokens", &["rate=1..200 step 1"]);
        many.seeds = 100;
        assert!(
            plan(&many)
                .unwrap_err()
                .starts_with("2 strategies times 200 combinations of swept values times 100 seeds are")
        );
    }
}
