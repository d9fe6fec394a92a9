//! What was checked, with its findings: the one result that all formats write.

use std::fs::File;
use std::io;
use std::path::Path;

use stagger_core::Policy;
use stagger_core::profile::Profile;
use stagger_lint::{
    DeploymentContext, Estimate, FileFinding, Finding, Place, Purpose, Rule, check, estimate, fix, log,
};
use stagger_terminal::input;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::policy_args::{PolicyArgs, is_file};

use super::args::CheckArgs;
use super::baseline::{Baseline, Key};
use super::files::FileResult;

/// Everything that was checked, with the findings.
pub(super) struct CheckResult {
    pub(super) policies: Vec<PolicyResult>,
    pub(super) files: Vec<FileResult>,
    pub(super) log: Option<LogResult>,
    /// Whether no deployment context was given.
    pub(super) without_context: bool,
    /// Number of findings that the baseline has.
    pub(super) known: usize,
}

/// A policy, a file or a log, with its findings.
pub(super) struct Subject<'a> {
    pub(super) name: String,
    /// The path of a file that is checked, with slashes.
    pub(super) file: Option<String>,
    pub(super) findings: Vec<Reported<'a>>,
    /// Why nothing could be found, if so.
    pub(super) unjudged: Option<String>,
}

/// A finding, with its place if it is in a file.
#[derive(Clone, Copy)]
pub(super) struct Reported<'a> {
    pub(super) finding: &'a Finding,
    pub(super) placed: Option<&'a FileFinding>,
}

impl Reported<'_> {
    /// Returns the facts, and how to fix it.
    pub(super) fn text(&self) -> String {
        let lines = self.finding.facts().iter().map(String::clone);
        let help = [format!("help: {}", self.finding.suggestion())];
        let fix = self.placed.and_then(FileFinding::fix).map(|fix| fix.text().to_owned());
        lines.chain(help).chain(fix).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Returns its place in a file, if it has one.
    pub(super) fn place(&self) -> Option<Place> {
        self.placed?.place()
    }

    /// Returns what it is known by in a baseline.
    pub(super) fn key(&self, file: &str) -> Key {
        key(file, self.finding, self.placed.map_or("", FileFinding::path))
    }
}

fn key(file: &str, finding: &Finding, path: &str) -> Key {
    Key { file: file.to_owned(), rule: finding.rule().code().to_owned(), path: path.to_owned() }
}

/// Returns a path with slashes, as it is on other systems.
fn portable(name: &str) -> String {
    let name = name.replace('\\', "/");
    name.strip_prefix("./").unwrap_or(&name).to_owned()
}

/// A checked policy and its findings.
pub(super) struct PolicyResult {
    /// Value of `--policy` or the positional argument; `None` if the policy was given by flags alone.
    pub(super) name: Option<String>,
    pub(super) policy: Policy,
    /// The profile by which it was taken for the policy of a connection, if no purpose was given.
    pub(super) connection: Option<&'static Profile>,
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
    /// What there are too few delays for, if nothing was found.
    too_few: Option<log::TooFew>,
}

impl LogResult {
    /// Returns what there are too few delays for, unless something was found all the same.
    pub(super) fn too_few(&self) -> Option<log::TooFew> {
        if self.findings.is_empty() { self.too_few } else { None }
    }
}

impl CheckResult {
    /// Checks the policies or the log of this command line.
    pub(super) fn new(args: &CheckArgs) -> Result<Self, CliError> {
        let context = DeploymentContext::from(&args.context);
        let without_context = context == DeploymentContext::default();
        let is_reported = |finding: &Finding| !args.allow.contains(&finding.rule());
        if let Some(path) = &args.log {
            let given = if args.policy.is_given() { Some(args.policy.policy()?) } else { None };
            let mut checked = LogResult::new(path, given)?;
            checked.findings.retain(is_reported);
            let mut result =
                Self { policies: Vec::new(), files: Vec::new(), log: Some(checked), without_context: false, known: 0 };
            result.compare(args)?;
            return Ok(result);
        }
        let (named_files, named): (Vec<_>, Vec<_>) = args.subjects.iter().partition(|text| is_file(text));
        let named = named.into_iter().map(|policy| PolicyArgs { policy: Some(policy.clone()), ..args.policy.clone() });
        let first = args.subjects.is_empty() || args.policy.policy.is_some();
        if let (true, Some(flag)) = (!first && named.len() == 0, args.policy.first_given()) {
            return Err(CliError::usage(format_args!(
                "{flag} describes a policy, and only files are given, which have their own; leave it out, or add a \
                 policy with --policy"
            )));
        }
        let names = named_files.iter().map(|text| text.as_str());
        let found = FileResult::all(names, args.format, &context, &args.allow)?;
        let of_flags = if first { vec![args.policy.clone()] } else { Vec::new() };
        let mut policies = Vec::new();
        for flags in of_flags.into_iter().chain(named) {
            let mut checked = PolicyResult::new(&flags, &context, &args.allow)?;
            checked.findings.retain(is_reported);
            policies.push(checked);
        }
        let without_context = without_context && !policies.is_empty();
        let mut result = Self { policies, files: found, log: None, without_context, known: 0 };
        result.compare(args)?;
        Ok(result)
    }

    /// Removes the findings that the baseline has.
    fn compare(&mut self, args: &CheckArgs) -> Result<(), CliError> {
        let Some(path) = &args.baseline else { return Ok(()) };
        let mut known = Baseline::read(path)?.known();
        let before = self.findings().count();
        let mut is_new = |key: Key| match known.get_mut(&key) {
            Some(times) if *times > 0 => {
                *times -= 1;
                false
            }
            _ => true,
        };
        for checked in &mut self.policies {
            let name = checked.label();
            checked.findings.retain(|finding| is_new(key(&name, finding, "")));
        }
        for checked in &mut self.files {
            let name = portable(&checked.name);
            checked.findings.retain(|found| is_new(key(&name, found.finding(), found.path())));
        }
        if let Some(log) = &mut self.log {
            log.findings.retain(|finding| is_new(key(&log.name, finding, "")));
        }
        self.known = before - self.findings().count();
        Ok(())
    }

    /// Returns everything that was checked, with the findings.
    pub(super) fn subjects(&self) -> Vec<Subject<'_>> {
        let plain = |finding| Reported { finding, placed: None };
        let policies = self.policies.iter().map(|checked| Subject {
            name: checked.label(),
            file: None,
            findings: checked.findings.iter().map(plain).collect(),
            unjudged: None,
        });
        let placed = |found| Reported { finding: FileFinding::finding(found), placed: Some(found) };
        let files = self.files.iter().map(|checked| {
            let file = if checked.is_stdin() { None } else { Some(portable(&checked.name)) };
            let findings = checked.findings.iter().map(placed).collect();
            Subject { name: checked.name.clone(), file, findings, unjudged: None }
        });
        let log = self.log.iter().map(|log| Subject {
            name: log.name.clone(),
            file: None,
            findings: log.findings.iter().map(plain).collect(),
            unjudged: log.too_few().map(|few| few.to_string()),
        });
        policies.chain(files).chain(log).collect()
    }

    /// Returns what the findings are known by in a baseline.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        let subjects = self.subjects().into_iter();
        let keys = subjects.flat_map(|subject| {
            let name = subject.file.clone().unwrap_or_else(|| portable(&subject.name));
            subject.findings.iter().map(|found| found.key(&name)).collect::<Vec<_>>()
        });
        keys.collect::<Vec<_>>().into_iter()
    }

    /// Returns the findings of all policies, of the files and of the log.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_log = self.log.iter().flat_map(|log| &log.findings);
        let of_files = self.files.iter().flat_map(|checked| &checked.findings).map(FileFinding::finding);
        self.policies.iter().flat_map(|checked| &checked.findings).chain(of_files).chain(of_log)
    }
}

impl PolicyResult {
    /// Returns its name, or the policy itself.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.policy.to_string())
    }

    /// Checks a policy without a name.
    pub(super) fn of(policy: Policy, context: &DeploymentContext, allowed: &[&Rule]) -> Self {
        Self {
            name: None,
            policy,
            connection: None,
            findings: check(&policy, context),
            fixed: Some(fix(&policy, context, allowed)).filter(|fixed| *fixed != policy),
            estimate: estimate(&policy, context),
        }
    }

    fn new(args: &PolicyArgs, context: &DeploymentContext, allowed: &[&Rule]) -> Result<Self, CliError> {
        let (policy, profile) = args.policy_and_profile()?;
        let for_connections = context.purpose_or(Purpose::Reconnecting);
        // A given purpose remains.
        let connection = profile.filter(|profile| profile.is_connection() && *context != for_connections);
        let context = if connection.is_some() { &for_connections } else { context };
        Ok(Self { name: args.policy.clone(), connection, ..Self::of(policy, context, allowed) })
    }
}

/// The longest log that is read, in bytes.
const MAX_LOG: u64 = 256 << 20;

impl LogResult {
    fn new(path: &Path, given: Option<Policy>) -> Result<Self, CliError> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path_shown(path) };
        let text = if path == Path::new("-") {
            input::text("--log: ", &name, Ok(io::stdin().lock()), MAX_LOG)?
        } else {
            input::text("--log: ", &name, File::open(path), MAX_LOG)?
        };
        let log = log::read(&text).map_err(|error| CliError::usage(format_args!("--log: {name}: {error}")))?;
        let is_run = !log.policies.is_empty() || log.skipped_hints > 0;
        if log.entries.is_empty() && !is_run {
            return Err(CliError::usage(format_args!(
                "--log: {name} contains no delays, so there is nothing to check; pass the output of `stagger run --log \
                 json`, or lines such as `1.5` or `Retrying in 1.5s`"
            )));
        }
        // If runs with different policies share a log, its delays cannot be attributed to one of them.
        let policy = match (given, log.policies.as_slice()) {
            (Some(given), _) => Some(given),
            (None, [policy]) => Some(*policy),
            (None, _) => None,
        };
        let findings = log::check(&log, policy.as_ref());
        // A finding that is allowed or known was found.
        let too_few = if findings.is_empty() { log::too_few(&log) } else { None };
        Ok(Self { findings, name, policy, too_few, log })
    }
}
