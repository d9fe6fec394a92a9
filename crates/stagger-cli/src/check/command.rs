use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use stagger_core::Policy;
use stagger_sim::lint::{Circumstances, Estimate, Finding, Rule, estimate, findings, log, mended};

use super::args::CheckArgs;
use super::{json, report, rules};
use crate::error::CliError;
use crate::output::print;
use crate::plot::RenderOptions;
use crate::policy_args::PolicyArgs;
use crate::term::Term;

/// `stagger check`.
pub(crate) fn run(args: &CheckArgs, term: &Term) -> Result<ExitCode, CliError> {
    let look = RenderOptions::for_screen(&term.stdout, term);
    if args.rules {
        let text = if args.json { rules::json()? } else { rules::text(look) };
        return print(text.as_bytes()).map(|()| ExitCode::SUCCESS);
    }
    if let Some(rule) = args.explain {
        return print(rules::explained(rule, look).as_bytes()).map(|()| ExitCode::SUCCESS);
    }
    let checked = Checked::new(args)?;
    let text = if args.json { json::document(&checked)? } else { report::report(&checked, look) };
    print(text.as_bytes())?;
    Ok(if checked.findings().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What was looked at, and what was found in it.
pub(super) struct Checked {
    pub(super) policies: Vec<CheckedPolicy>,
    pub(super) log: Option<CheckedLog>,
    /// Nothing was said about where it is used.
    pub(super) unplaced: bool,
}

/// A policy and what was found in it.
pub(super) struct CheckedPolicy {
    /// What it was called on the command line, where that is not the policy itself.
    pub(super) name: Option<String>,
    pub(super) policy: Policy,
    pub(super) findings: Vec<Finding>,
    /// The policy after all help, where that changes it.
    pub(super) mended: Option<Policy>,
    pub(super) estimate: Option<Estimate>,
}

/// A log and what was found in it.
pub(super) struct CheckedLog {
    pub(super) name: String,
    pub(super) log: log::Log,
    /// What it was held against.
    pub(super) policy: Option<Policy>,
    pub(super) findings: Vec<Finding>,
}

impl Checked {
    fn new(args: &CheckArgs) -> Result<Self, CliError> {
        let known = Circumstances::from(&args.circumstances);
        let unplaced = known == Circumstances::default();
        let meant = |finding: &Finding| !args.allow.contains(&finding.rule());
        if let Some(path) = &args.log {
            let given = args.policy.is_given().then(|| args.policy.policy()).transpose()?;
            let mut checked = CheckedLog::new(path, given)?;
            checked.findings.retain(meant);
            return Ok(Self { policies: Vec::new(), log: Some(checked), unplaced: false });
        }
        let named =
            args.policies.iter().map(|policy| PolicyArgs { policy: Some(policy.clone()), ..args.policy.clone() });
        let first = args.policies.is_empty() || args.policy.policy.is_some();
        let all = first.then(|| args.policy.clone()).into_iter().chain(named);
        let mut policies = Vec::new();
        for flags in all {
            let mut checked = CheckedPolicy::new(&flags, &known, &args.allow)?;
            checked.findings.retain(meant);
            policies.push(checked);
        }
        Ok(Self { policies, log: None, unplaced })
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_log = self.log.iter().flat_map(|log| &log.findings);
        self.policies.iter().flat_map(|checked| &checked.findings).chain(of_log)
    }
}

impl CheckedPolicy {
    fn new(args: &PolicyArgs, known: &Circumstances, allowed: &[&Rule]) -> Result<Self, CliError> {
        let policy = args.policy()?;
        Ok(Self {
            name: args.policy.clone(),
            policy,
            findings: findings(&policy, known),
            mended: Some(mended(&policy, known, allowed)).filter(|mended| *mended != policy),
            estimate: estimate(&policy, known),
        })
    }
}

impl CheckedLog {
    fn new(path: &Path, given: Option<Policy>) -> Result<Self, CliError> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(path)
        };
        let bytes = bytes.map_err(|error| CliError::io(format_args!("--log: cannot read {name}"), error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line =
                error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            CliError::usage(format_args!("--log: {name}, line {line}: not UTF-8; is this a log?"))
        })?;
        let log = log::read(&text).map_err(|error| CliError::usage(format_args!("--log: {name}: {error}")))?;
        // A log of runs with different policies says nothing about any of them.
        let named = || match log.policies.as_slice() {
            [policy] => Some(*policy),
            _ => None,
        };
        let policy = given.or_else(named);
        Ok(Self { findings: log::findings(&log, policy.as_ref()), name, policy, log })
    }
}
