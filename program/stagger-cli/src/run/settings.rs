use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;
use core::time::Duration;
use std::env;

use regex::bytes::Regex;
use rustix::process::{Pid, getpid};
use stagger_core::text::parse_duration;
use stagger_core::{Policy, Seed};
use stagger_terminal::output::error::CliError;

use super::args::{NestedMode, RunArgs, StdinMode};
use super::classifier::{Classifier, NOT_RETRIED_BY_DEFAULT};
use super::http::{AnnouncedWaits, HttpClient};
use super::outcome_set::OutcomeSet;
use super::patterns::Patterns;
use super::process_tree::is_ancestor;
use super::status::parse_signal;

#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// The flags, for the settings that need no validation.
    pub(super) args: &'a RunArgs,
    pub(super) policy: Policy,
    pub(super) seed: Seed,
    pub(super) nesting: Nesting,
    pub(super) classifier: Classifier,
    /// The HTTP client that is run with `--http`.
    pub(super) http: Option<HttpClient>,
    /// Time limit of one attempt; `None` for no limit.
    pub(super) timeout: Option<Duration>,
    /// Time limit of the run; `None` for no limit.
    pub(super) time_limit: Option<Duration>,
    pub(super) termination: TerminationSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TerminationSettings {
    /// Signal sent when the command has timed out.
    pub(super) signal: i32,
    /// Time from that signal to SIGKILL; `None` to never send SIGKILL.
    pub(super) kill_after: Option<Duration>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(args: &'a RunArgs) -> Result<Self, CliError> {
        let timeout = time_limit_flag("--timeout", args.timeout.as_deref())?;
        let time_limit = time_limit_flag("--time-limit", args.time_limit.as_deref())?;
        let until: Option<OutcomeSet> = args.until.as_deref().map(|text| parse_flag("--until", text)).transpose()?;
        let retry_on = match &args.retry_on {
            Some(text) => parse_flag("--retry-on", text)?,
            None if until.is_some() => parse_flag("--retry-on", "any")?,
            None => parse_flag("--retry-on", "fail,timeout,signal")?,
        };
        let http = if args.http { Some(HttpClient::recognize(&args.command, args.idempotent)?) } else { None };
        if args.stdin == StdinMode::Inherit
            && let Some(http) = &http
            && let Some(client) = http.reads_stdin()
        {
            return Err(flag_error(
                "--stdin inherit",
                format_args!(
                    "{client} reads its request from standard input, which only the first attempt gets; use --stdin \
                     replay"
                ),
            ));
        }
        let classifier = Classifier {
            is_default: until.is_none() && args.retry_on.is_none(),
            until: match until {
                Some(until) => until,
                None => parse_flag("--until", "success")?,
            },
            retry_on,
            stop_on: args.stop_on.as_deref().map(|text| parse_flag("--stop-on", text)).transpose()?,
            not_retried_by_default: parse_flag("--stop-on", NOT_RETRIED_BY_DEFAULT)?,
            stdout: Patterns {
                retry_if: regexes("--retry-if-stdout", &args.retry_if_stdout)?,
                stop_if: regexes("--stop-if-stdout", &args.stop_if_stdout)?,
            },
            stderr: Patterns {
                retry_if: regexes("--retry-if-stderr", &args.retry_if_stderr)?,
                stop_if: regexes("--stop-if-stderr", &args.stop_if_stderr)?,
            },
        };
        let signal = parse_signal(&args.signal).ok_or_else(|| {
            CliError::usage(format_args!(
                "--signal: unknown signal `{}`; use a name or number like TERM, INT or 9",
                args.signal
            ))
        })?;
        let kill_after = duration_flag("--kill-after", &args.kill_after)?;
        let mut policy = args.policy.policy()?;
        if let Some(max) = policy.max_attempts()
            && args.consecutive > max
            && policy.stable_after().is_none()
        {
            let consecutive = args.consecutive;
            let message =
                format!("{consecutive} attempts in a row need --max-attempts {consecutive} or more, not {max}");
            return Err(flag_error("--consecutive", message));
        }
        let nesting = Nesting::detect(args, &policy);
        if nesting.stands_down_for.is_some() {
            policy = policy.to_builder().max_attempts(1).build().map_err(CliError::usage)?;
        }
        Ok(Self {
            args,
            policy,
            nesting,
            seed: args.policy.seed(),
            classifier,
            http,
            timeout,
            time_limit,
            termination: TerminationSettings { signal, kill_after },
        })
    }
}

impl Settings<'_> {
    pub(super) const fn announced_waits(&self) -> AnnouncedWaits {
        if self.args.announced_waits { AnnouncedWaits::Follow } else { AnnouncedWaits::Ignore }
    }

    /// Returns where the command's standard input comes from: each attempt must send the same request.
    pub(super) fn stdin(&self) -> StdinMode {
        match self.args.stdin {
            StdinMode::Auto if self.http.as_ref().is_some_and(|client| client.reads_stdin().is_some()) => {
                StdinMode::Replay
            }
            mode => mode,
        }
    }
}

fn parse_flag<T: FromStr<Err: fmt::Display>>(flag: &str, text: &str) -> Result<T, CliError> {
    text.parse().map_err(|error| flag_error(flag, error))
}

/// Parses a duration; `None` means no limit.
fn duration_flag(flag: &str, text: &str) -> Result<Option<Duration>, CliError> {
    parse_duration(text).map_err(|error| flag_error(flag, error))
}

/// Parses a time limit, which must not be zero: for GNU `timeout` that is no limit.
fn time_limit_flag(flag: &str, text: Option<&str>) -> Result<Option<Duration>, CliError> {
    let Some(text) = text else { return Ok(None) };
    match duration_flag(flag, text)? {
        Some(Duration::ZERO) => {
            Err(flag_error(flag, "no command ends within 0s; use a longer time, or inf for no limit"))
        }
        limit => Ok(limit),
    }
}

fn regexes(flag: &str, texts: &[String]) -> Result<Vec<Regex>, CliError> {
    texts.iter().map(|text| parse_flag(flag, text)).collect()
}

fn flag_error(flag: &str, error: impl fmt::Display) -> CliError {
    CliError::usage(format_args!("{flag}: {error}"))
}

/// Names the run that retries the command, by its PID.
pub(super) const RETRIED_BY: &str = "STAGGER_RETRIED_BY";

/// Whether this run is in a command that another `stagger run` retries.
///
/// Layers that each retry multiply: three with three attempts each make 27 calls. A run therefore makes a single
/// attempt if another one retries it, and passes the exit code on to that one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nesting {
    /// The run that retries instead of this one.
    pub(super) stands_down_for: Option<Pid>,
    /// The run that retries the command, as it is told.
    pub(super) retried_by: Option<Pid>,
}

impl Nesting {
    pub(super) fn detect(args: &RunArgs, policy: &Policy) -> Self {
        // The variable may have outlived its run, for example in a terminal multiplexer that an attempt has started.
        let named = env::var(RETRIED_BY).ok().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        let outer = named.filter(|pid| is_ancestor(*pid).unwrap_or(true));
        Self::new(args, policy, outer, getpid())
    }

    fn new(args: &RunArgs, policy: &Policy, outer: Option<Pid>, this: Pid) -> Self {
        // Its attempts are not repetitions of one that failed: it keeps a service up, or waits for an outcome.
        let supervises = policy.max_attempts().is_none() || policy.stable_after().is_some();
        let polls = args.until.is_some() || args.consecutive > NonZeroU32::MIN;
        if supervises || polls {
            return Self::default();
        }
        match outer {
            outer if policy.max_attempts() == Some(NonZeroU32::MIN) => {
                Self { stands_down_for: None, retried_by: outer }
            }
            Some(outer) if args.nested == NestedMode::StandDown => {
                Self { stands_down_for: Some(outer), retried_by: Some(outer) }
            }
            _ => Self { stands_down_for: None, retried_by: Some(this) },
        }
    }
}
