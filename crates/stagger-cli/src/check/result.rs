use std::fs;
use std::io::{self, Read};
use std::path::Path;

use stagger_core::Policy;
use stagger_sim::lint::{DeploymentContext, Estimate, FileFinding, Finding, Rule, check, estimate, fix, log};

use super::args::CheckArgs;
use super::files::{FileResult, is_file};
use crate::output::error::CliError;
use crate::policy_args::PolicyArgs;

/// Everything that was checked, with the findings.
pub(super) struct CheckResult {
    pub(super) policies: Vec<PolicyResult>,
    pub(super) files: Vec<FileResult>,
    pub(super) log: Option<LogResult>,
    /// Whether no deployment context was given.
    pub(super) without_context: bool,
}

/// A checked policy and its findings.
pub(super) struct PolicyResult {
    /// Value of `--policy` or the positional argument; `None` if the policy was given by flags alone.
    pub(super) name: Option<String>,
    pub(super) policy: Policy,
    pub(super) findings: Vec<Finding>,
    /// The policy with all suggestions applied, if they change it.
    pub(super) fixed: Option<Policy>,
    pub(super) estimate: Option<Estimate>,
}

/// A checked log and its findings.
pub(super) struct LogResult {
    pub(super) name: String,
    pub(super) log: log::Log,
    /// Policy that the delays were compared with.
    pub(super) policy: Option<Policy>,
    pub(super) findings: Vec<Finding>,
}

impl CheckResult {
    /// Checks the policies or the log of this command line.
    pub(super) fn new(args: &CheckArgs) -> Result<Self, CliError> {
        let context = DeploymentContext::from(&args.context);
        let without_context = context == DeploymentContext::default();
        let is_reported = |finding: &Finding| !args.allow.contains(&finding.rule());
        if let Some(path) = &args.log {
            let given = args.policy.is_given().then(|| args.policy.policy()).transpose()?;
            let mut checked = LogResult::new(path, given)?;
            checked.findings.retain(is_reported);
            return Ok(Self { policies: Vec::new(), files: Vec::new(), log: Some(checked), without_context: false });
        }
        let (named_files, named): (Vec<_>, Vec<_>) = args.subjects.iter().partition(|text| is_file(text));
        let named = named.into_iter().map(|policy| PolicyArgs { policy: Some(policy.clone()), ..args.policy.clone() });
        let found = FileResult::all(named_files.iter().map(|text| text.as_str()), args.format, &args.allow)?;
        let first = args.subjects.is_empty() || args.policy.policy.is_some();
        let all = first.then(|| args.policy.clone()).into_iter().chain(named);
        let mut policies = Vec::new();
        for flags in all {
            let mut checked = PolicyResult::new(&flags, &context, &args.allow)?;
            checked.findings.retain(is_reported);
            policies.push(checked);
        }
        let without_context = without_context && !policies.is_empty();
        Ok(Self { policies, files: found, log: None, without_context })
    }

    /// Returns the findings of all policies, of the files and of the log.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_log = self.log.iter().flat_map(|log| &log.findings);
        let of_files = self.files.iter().flat_map(|checked| &checked.findings).map(FileFinding::finding);
        self.policies.iter().flat_map(|checked| &checked.findings).chain(of_files).chain(of_log)
    }
}

impl PolicyResult {
    fn new(args: &PolicyArgs, context: &DeploymentContext, allowed: &[&Rule]) -> Result<Self, CliError> {
        let policy = args.policy()?;
        Ok(Self {
            name: args.policy.clone(),
            policy,
            findings: check(&policy, context),
            fixed: Some(fix(&policy, context, allowed)).filter(|fixed| *fixed != policy),
            estimate: estimate(&policy, context),
        })
    }
}

impl LogResult {
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
            CliError::usage(format_args!("--log: {name}, line {line}: not valid UTF-8; pass a text log"))
        })?;
        let log = log::read(&text).map_err(|error| CliError::usage(format_args!("--log: {name}: {error}")))?;
        let is_run = !log.policies.is_empty() || log.skipped_hints > 0;
        if log.entries.is_empty() && !is_run {
            return Err(CliError::usage(format_args!(
                "--log: {name} contains no delays, so there is nothing to check; pass the output of `stagger run --log \
                 json`, or lines such as `1.5` or `Retrying in 1.5s`"
            )));
        }
        // If runs with different policies share a log, its delays cannot be attributed to one of them.
        let named = || match log.policies.as_slice() {
            [policy] => Some(*policy),
            _ => None,
        };
        let policy = given.or_else(named);
        Ok(Self { findings: log::check(&log, policy.as_ref()), name, policy, log })
    }
}
