use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use core::time::Duration;
use std::fs::File;

use regex::bytes::Regex;
use reqwest::Certificate;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use stagger_core::text::parse_duration;
use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, Seed};
use stagger_terminal::input;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::policy_args::PolicyArgs;

use super::args::WaitArgs;
use super::target::Target;

/// The longest file of certificates in bytes.
const MAX_CACERT: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// The flags, for the settings that need no validation.
    pub(super) args: &'a WaitArgs,
    pub(super) targets: Vec<Target>,
    pub(super) need: Need,
    pub(super) gone: bool,
    /// Time limit of the whole wait; `None` for no limit.
    pub(super) timeout: Option<Duration>,
    pub(super) attempt_timeout: Duration,
    pub(super) stable: Option<Duration>,
    pub(super) file_content: FileContent,
    pub(super) http: HttpSettings,
    pub(super) policy: Policy,
    pub(super) seed: Seed,
}

/// How many targets must be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    All,
    Any,
}

/// What a file must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileContent {
    Any,
    NonEmpty,
}

#[derive(Clone, Debug)]
pub(super) struct HttpSettings {
    pub(super) status: StatusSet,
    pub(super) body: Option<Regex>,
    pub(super) headers: HeaderMap,
    pub(super) head: bool,
    pub(super) location: bool,
    /// Trusted in place of the system's.
    pub(super) roots: Option<Vec<Certificate>>,
    pub(super) insecure: bool,
}

impl<'a> Settings<'a> {
    pub(super) fn new(args: &'a WaitArgs) -> Result<Self, CliError> {
        let parsed = args.targets.iter().map(|text| Target::parse(text).map_err(CliError::usage));
        let commands = args.commands.iter().map(|command| {
            Target::parse(&format!("cmd:{command}")).map_err(|_| CliError::usage("--command: the command is empty"))
        });
        let targets = parsed.chain(commands).collect::<Result<Vec<_>, _>>()?;
        if args.gone && targets.iter().any(|target| matches!(target, Target::Process(_))) {
            return Err(CliError::usage("--gone: pid:N waits for the end of a process already; leave out --gone"));
        }
        let attempt_timeout = duration("--attempt-timeout", &args.attempt_timeout)?.ok_or_else(|| {
            CliError::usage("--attempt-timeout: each attempt needs a limit; use a long time such as 1h")
        })?;
        Ok(Self {
            args,
            targets,
            need: if args.any { Need::Any } else { Need::All },
            gone: args.gone,
            timeout: duration("--timeout", &args.timeout)?,
            attempt_timeout,
            stable: args.stable.as_deref().map(|text| duration("--stable", text)).transpose()?.flatten(),
            file_content: if args.non_empty { FileContent::NonEmpty } else { FileContent::Any },
            http: http(args)?,
            policy: policy(args)?,
            seed: args.seed.map_or_else(stagger::seed, Seed::new),
        })
    }
}

fn http(args: &WaitArgs) -> Result<HttpSettings, CliError> {
    let mut headers = HeaderMap::new();
    for line in &args.header {
        let (name, value) = header(line)
            .ok_or_else(|| CliError::usage("--header: expected 'NAME: VALUE', as in 'Host: example.com'"))?;
        headers.append(name, value);
    }
    let roots = args.cacert.as_deref().map(|path| {
        let name = path_shown(path);
        let pem = input::bytes("--cacert: ", &name, File::open(path), MAX_CACERT)?;
        let roots = Certificate::from_pem_bundle(&pem).unwrap_or_default();
        if roots.is_empty() {
            return Err(CliError::usage(format_args!("--cacert: {name} has no certificate in PEM form")));
        }
        Ok(roots)
    });
    Ok(HttpSettings {
        status: parse("--status", &args.status)?,
        body: args.body.as_deref().map(|text| parse("--body", text)).transpose()?,
        headers,
        head: args.head,
        location: args.location,
        roots: roots.transpose()?,
        insecure: args.insecure,
    })
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let mut value: HeaderValue = value.trim().parse().ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

/// Returns the policy of the attempts. Its limits are replaced: --timeout and --max-attempts have their own meaning
/// here.
fn policy(args: &WaitArgs) -> Result<Policy, CliError> {
    let given = PolicyArgs {
        policy: args.policy.clone(),
        cap: args.cap.clone(),
        spread: args.spread.clone(),
        ..PolicyArgs::default()
    };
    let limited = given.policy_or(defaults())?.to_builder().unlimited_elapsed().never_stable();
    let limited = limited.set("max-attempts", &args.max_attempts);
    limited.map_err(|error| flag_error("--max-attempts", error))?.build().map_err(CliError::usage)
}

/// Returns the delays used without `--policy`. An interval is about a quarter of the time waited so far, so readiness
/// is noticed late by a sixth of the wait, and at most by a second and a half; `docs/guide/wait.md` has the figures.
fn defaults() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(100), Duration::from_secs(1))
        .multiplier(1.25)
        .jitter(Jitter::Factor(Ratio::percent(50)))
        .max_hint(Duration::from_secs(30))
        .as_defaults()
}

/// Parses a duration above zero; `None` means no limit.
fn duration(flag: &str, text: &str) -> Result<Option<Duration>, CliError> {
    let length = parse_duration(text).map_err(|error| flag_error(flag, error))?;
    if length.is_some_and(|length| length.is_zero()) {
        return Err(flag_error(
            flag,
            "0s is over before the first attempt; use a longer time, or -n 1 for one attempt",
        ));
    }
    Ok(length)
}

fn parse<T: FromStr<Err: fmt::Display>>(flag: &str, text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error| flag_error(flag, error))
}

fn flag_error(flag: &str, error: impl fmt::Display) -> CliError {
    CliError::usage(format_args!("{flag}: {error}"))
}

/// A set of HTTP statuses, as text: `2xx,304,400-403`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusSet(Vec<RangeInclusive<u16>>);

impl StatusSet {
    pub(super) fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

/// An element that is neither a status nor a range.
#[derive(Debug)]
pub(super) struct StatusSetError(String);

impl fmt::Display for StatusSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown status `{}`; use a set such as 2xx,304,400-403", self.0)
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, StatusSetError> {
        let ranges = text.split(',').map(|element| {
            let element = element.trim();
            range(element).ok_or_else(|| StatusSetError(element.to_owned()))
        });
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

fn range(element: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = element.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let (first, last) = element.split_once('-').unwrap_or((element, element));
    let range = status(first)?..=status(last)?;
    if range.is_empty() { None } else { Some(range) }
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (100..=599).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_statuses_and_ranges_are_elements_of_a_set() {
        let set: StatusSet = "2xx,304, 400-403".parse().unwrap();
        for (status, want) in
            [(199, false), (200, true), (299, true), (300, false), (304, true), (403, true), (404, false)]
        {
            assert_eq!(set.contains(status), want, "{status}");
        }
    }

    #[test]
    fn what_is_no_status_is_named() {
        for (text, named) in [
            ("", "``"),
            ("2x", "`2x`"),
            ("6xx", "`6xx`"),
            ("200-", "`200-`"),
            ("200,299-200", "`299-200`"),
            ("99", "`99`"),
        ] {
            let error = text.parse::<StatusSet>().unwrap_err().to_string();
            assert!(error.contains(named), "{text:?}: {error}");
        }
    }
}
