//! What the lab adds to `stagger plan`: the policies of configurations of other systems, and policies as such
//! configurations.

use core::time::Duration;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use stagger_config::RetryBudget;
use stagger_config::export::{Circumstances, System, export};
use stagger_core::Policy;
use stagger_core::text::{nearest, parse_duration, parse_number};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::print;
use stagger_terminal::plot::{RenderOptions, paragraph};
use stagger_terminal::policy_args::PolicyArgs;

use crate::check::{ConfigPolicy, policies_of};

/// The flags of `plan` that name files and systems.
#[derive(Args, Clone, Debug)]
pub struct FileArgs {
    /// The policy of a configuration to plan, by its path in the file, or a part of it that no other has [default: all]
    #[arg(long, value_name = "NAME", requires = "subject", help_heading = "Plan")]
    entry: Option<String>,

    /// Print the policy as the configuration of another system; settings without an equivalent are listed on standard
    /// error
    #[arg(
        long,
        value_enum,
        value_name = "SYSTEM",
        conflicts_with_all = ["retries", "profiles", "sample", "json", "svg"],
        help_heading = "Plan"
    )]
    export: Option<Export>,

    /// Timeout of one attempt, for --export [default: that of the file, if a file is exported]
    #[arg(long, value_name = "DUR", value_parser = length, requires = "export", help_heading = "Plan")]
    attempt_timeout: Option<Duration>,

    /// Time within which a call must succeed, with all its attempts, for --export [default: that of the file]
    #[arg(long, value_name = "DUR", value_parser = length, requires = "export", help_heading = "Plan")]
    within: Option<Duration>,

    /// Budget that limits the retries of all calls together, for --export: none, concurrent, throttle, window or
    /// tokens, with settings as `stagger simulate` has them: 'throttle max-tokens=100 token-ratio=10%' [default: that
    /// of the file]
    #[arg(long, value_name = "BUDGET", value_parser = budget, requires = "export", help_heading = "Plan")]
    guards: Option<RetryBudget>,
}

impl FileArgs {
    /// Returns whether a policy is printed as a configuration.
    pub fn exports(&self) -> bool {
        self.export.is_some()
    }

    /// Returns the policies of a file. With `only_one`, an error lists them if there are several.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has no such policy.
    pub fn policies_of(&self, file: &Path, only_one: bool) -> Result<Vec<ConfigPolicy>, CliError> {
        let found = policies_of(file, self.entry.as_deref())?;
        if only_one && found.len() > 1 {
            let paths: Vec<_> = found.iter().map(|found| &*found.path).collect();
            return Err(CliError::usage(format_args!(
                "{} has several policies, and this output is of one; choose it with --entry: {}",
                path_shown(file),
                paths.join(", ")
            )));
        }
        Ok(found)
    }

    /// Prints a policy as a configuration to standard output and what is lost to standard error. What no flag says is
    /// that of the file it was read from.
    ///
    /// # Errors
    ///
    /// If the other system cannot represent the policy.
    pub fn export(&self, policy: &PolicyArgs, of: Option<&ConfigPolicy>, term: &Term) -> Result<ExitCode, CliError> {
        let Some(system) = self.export else { return Ok(ExitCode::SUCCESS) };
        let mut circumstances = Circumstances::default();
        let (attempt, overall, budget) = match of {
            Some(of) => (of.attempt, of.overall, of.budget),
            None => (None, None, None),
        };
        if let Some(timeout) = self.attempt_timeout.or(attempt) {
            circumstances = circumstances.attempt_timeout(timeout);
        }
        if let Some(timeout) = self.within.or(overall) {
            circumstances = circumstances.timeout(timeout);
        }
        if let Some(budget) = self.guards.or(budget) {
            circumstances = circumstances.budget(budget);
        }
        let exported = system.policy(&policy.policy()?, &circumstances)?;
        print(exported.text.as_bytes())?;
        let options = RenderOptions::for_screen(&term.stderr, term);
        for note in exported.notes {
            let note = paragraph(&format!("note: {note}"), "      ", options);
            // Ignored: if standard error is closed, there is no other place to report it.
            let _ = write!(io::stderr(), "{}", options.glyphs.transliterate(&note));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The budgets that a configuration of another system may have, with their settings, as `simulate --guards` has them.
const BUDGETS: [(&str, &[&str]); 5] = [
    ("none", &[]),
    ("concurrent", &["ratio", "floor"]),
    ("throttle", &["max-tokens", "token-ratio"]),
    ("window", &["ttl", "ratio", "min-per-second"]),
    ("tokens", &["capacity"]),
];

/// Parses a budget such as `throttle max-tokens=100 token-ratio=10%`. Settings that are left out have the defaults of
/// `simulate --guards`.
pub(super) fn budget(text: &str) -> Result<RetryBudget, String> {
    let mut words = text.split_whitespace();
    let keyword = words.next().unwrap_or_default();
    let Some((_, known)) = BUDGETS.iter().find(|(name, _)| *name == keyword) else {
        return Err(unknown(keyword, BUDGETS.iter().map(|(name, _)| *name), "a budget that a configuration can have"));
    };
    let mut settings = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` has no value; write {word}=VALUE"))?;
        if !known.contains(&name) {
            return Err(unknown(name, known.iter().copied(), &format!("a setting of {keyword}")));
        }
        if settings.iter().any(|(given, _)| *given == name) {
            return Err(format!("`{name}` is set twice; keep one of them"));
        }
        settings.push((name, value));
    }
    let value = |name: &str| settings.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
    let count = |name, default| value(name).map_or(Ok(default), count);
    let share = |name, default| value(name).map_or(Ok(default), share);
    Ok(match keyword {
        "concurrent" => match (share("ratio", 0.2)?, count("floor", 3)?) {
            (0.0, retries) => RetryBudget::Concurrent(retries),
            (ratio, least) => RetryBudget::ShareOfActive { ratio, least },
        },
        "throttle" => {
            RetryBudget::Throttle { tokens: f64::from(count("max-tokens", 10)?), ratio: share("token-ratio", 0.1)? }
        }
        "window" => RetryBudget::Ratio {
            ratio: share("ratio", 0.2)?,
            least_per_second: f64::from(count("min-per-second", 10)?),
            period: value("ttl").map_or(Ok(Duration::from_secs(10)), length)?,
        },
        "tokens" => RetryBudget::Tokens { capacity: count("capacity", 500)? },
        _ => RetryBudget::Unlimited,
    })
}

fn unknown(word: &str, known: impl Iterator<Item = &'static str> + Clone, what: &str) -> String {
    let known_words: Vec<_> = known.clone().collect();
    let remedy = match nearest(word, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known_words.is_empty() => "it has none".to_owned(),
        None => format!("expected one of {}", known_words.join(", ")),
    };
    format!("`{word}` is not {what}; {remedy}")
}

fn count(text: &str) -> Result<u32, String> {
    match parse_number(text) {
        Ok(number) if number.fract() == 0.0 && number <= f64::from(u32::MAX) => Ok(number as u32),
        _ => Err(format!("`{text}` is not a whole number, such as 100")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match parse_number(number) {
        Ok(number) => Ok(number / whole),
        Err(_) => Err(format!("`{text}` is not a share, such as 10% or 0.1")),
    }
}

pub(super) fn length(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Some(length)) if !length.is_zero() => Ok(length),
        Ok(_) => Err("a length above zero is required; leave the flag out for no limit".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The system to export a policy to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Export {
    /// gRPC service config with a retryPolicy, for all gRPC libraries
    Grpc,
    /// Route of Envoy with a retry_policy
    Envoy,
    /// VirtualService of Istio
    Istio,
}

/// A policy as the configuration of another system.
pub(crate) struct Exported {
    pub(crate) text: String,
    /// Settings without an equivalent, and next steps.
    pub(crate) notes: Vec<String>,
}

impl Export {
    const fn system(self) -> System {
        match self {
            Self::Grpc => System::Grpc,
            Self::Envoy => System::Envoy,
            Self::Istio => System::Istio,
        }
    }

    /// Exports a policy with its circumstances, unless the system cannot represent it.
    pub(crate) fn policy(self, policy: &Policy, circumstances: &Circumstances) -> Result<Exported, CliError> {
        let name = self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let exported = export(self.system(), policy, circumstances)
            .map_err(|error| CliError::usage(format_args!("--export {name}: {error}")))?;
        let lost = exported.losses.iter().map(|lost| format!("not exported: {lost}"));
        let notes = lost.chain(exported.next_steps.into_iter().map(str::to_owned)).collect();
        Ok(Exported { text: exported.text, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_written_as_guards_are() {
        for (text, want) in [
            ("none", RetryBudget::Unlimited),
            ("concurrent ratio=0 floor=8", RetryBudget::Concurrent(8)),
            ("concurrent", RetryBudget::ShareOfActive { ratio: 0.2, least: 3 }),
            ("throttle max-tokens=100 token-ratio=5%", RetryBudget::Throttle { tokens: 100.0, ratio: 0.05 }),
            (
                "window ttl=1s",
                RetryBudget::Ratio { ratio: 0.2, least_per_second: 10.0, period: Duration::from_secs(1) },
            ),
            ("tokens capacity=1k", RetryBudget::Tokens { capacity: 1_000 }),
        ] {
            assert_eq!(budget(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn an_error_says_what_is_expected() {
        for (text, want) in [
            ("throtle", "did you mean `throttle`?"),
            ("breaker", "`breaker` is not a budget that a configuration can have; expected one of none, concurrent"),
            ("", "expected one of none"),
            ("none a=1", "`a` is not a setting of none; it has none"),
            ("throttle tokens=3", "`tokens` is not a setting of throttle; expected one of max-tokens, token-ratio"),
            ("concurrent floor", "`floor` has no value; write floor=VALUE"),
            ("concurrent floor=1 floor=2", "`floor` is set twice"),
            ("concurrent floor=1.5", "`1.5` is not a whole number"),
            ("concurrent ratio=x", "`x` is not a share"),
            ("window ttl=0s", "a length above zero"),
        ] {
            let error = budget(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    fn notes(policy: &str) -> Vec<String> {
        Export::Grpc.policy(&policy.parse().unwrap(), &Circumstances::default()).unwrap().notes
    }

    #[test]
    fn settings_without_a_grpc_equivalent_are_noted() {
        let steps = notes("grpc-a6");
        assert_eq!(steps.len(), 2, "{steps:?}");
        let lost = notes("grpc-a6 jitter=full max-elapsed=1m");
        assert_eq!(lost[2..], steps, "{lost:?}");
        assert_eq!(lost[0], "not exported: jitter=full: gRPC draws within ±20% of the ceiling");
        assert!(lost[1].starts_with("not exported: max-elapsed=1m: "), "{lost:?}");
    }

    #[test]
    fn an_exported_policy_is_read_again() {
        for (system, policy) in [
            (Export::Grpc, "exponential base=250ms cap=3s jitter=±20% max-attempts=4"),
            (Export::Envoy, "exponential base=250ms cap=3s jitter=envoy max-attempts=3"),
            (Export::Istio, "exponential base=50ms cap=500ms jitter=envoy max-attempts=7"),
        ] {
            let policy: Policy = policy.parse().unwrap();
            let exported = system.policy(&policy, &Circumstances::default()).unwrap();
            let entries = stagger_config::read(&exported.text, None).unwrap();
            assert_eq!(entries[0].policy(), Some(policy), "{}", exported.text);
        }
    }
}
