use core::time::Duration;
use std::fs;

use clap::Args;
use stagger_core::{Policy, PolicyBuilder, Seed};

use crate::error::CliError;

/// The flags that say how long to wait and when to stop, the same for every command.
///
/// Their values are read by the policy language alone, so that a flag and a word of `--policy` cannot differ.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// A whole policy, e.g. 'exponential base=500ms cap=30s jitter=full max-attempts=8'; or the NAME of a known one, like
    /// aws-sdk or socket.io (`stagger plan --profiles` lists them); or @FILE that holds one of these, or TOML, or JSON.
    /// The flags below override it
    #[arg(short, long, value_name = "SPEC|NAME|@FILE")]
    pub(crate) policy: Option<String>,

    /// Ceiling of the first delay [default: 1s]
    #[arg(short = 'd', long, alias = "delay", value_name = "DUR")]
    pub(crate) base: Option<String>,

    /// No ceiling grows beyond this; 'none' for no limit [default: 30s]
    #[arg(long, aliases = ["max", "max-delay"], value_name = "DUR")]
    pub(crate) cap: Option<String>,

    /// How the ceiling grows from retry to retry [default: 2]
    #[arg(long, alias = "factor", value_name = "X")]
    pub(crate) multiplier: Option<String>,

    /// How a delay is drawn below its ceiling: none, full, equal, decorrelated, ±20% [default: full]
    #[arg(short, long, value_name = "KIND")]
    pub(crate) jitter: Option<String>,

    /// A random wait of up to this long before the first attempt, so that many clients started by one event do not
    /// arrive together [default: 0s]
    #[arg(long, value_name = "DUR")]
    pub(crate) spread: Option<String>,

    /// How often to try in all, first attempt included; 'inf' for no limit [default: 5]
    #[arg(short = 'n', long, alias = "attempts", value_name = "N|inf")]
    pub(crate) max_attempts: Option<String>,

    /// No retry starts later than this after the start; a retry that would ends the run at once. A running attempt is
    /// never interrupted by it [default: none]
    #[arg(short = 'T', long, alias = "deadline", value_name = "DUR")]
    pub(crate) max_elapsed: Option<String>,

    /// An attempt that lived this long was healthy: count attempts and delays from the start again [default: none]
    #[arg(long, alias = "reset-after", value_name = "DUR")]
    pub(crate) stable_after: Option<String>,

    /// Repeat the delays of an earlier run
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl PolicyArgs {
    /// The policy that these flags describe.
    ///
    /// # Errors
    /// A value that cannot be understood, or everything that is wrong with the whole.
    pub(crate) fn policy(&self) -> Result<Policy, CliError> {
        let given = self.settings().into_iter().filter_map(|(flag, key, value)| Some((flag, key, value.as_deref()?)));
        let mut builder = match &self.policy {
            None => defaults(),
            Some(spec) => read(spec)?.to_builder(),
        };
        for (flag, key, value) in given {
            builder = builder.set(key, value).map_err(|error| CliError::usage(format_args!("{flag}: {error}")))?;
        }
        builder.build().map_err(CliError::usage)
    }

    /// Whether anything was said about the policy.
    pub(crate) fn is_given(&self) -> bool {
        self.policy.is_some() || self.settings().iter().any(|(_, _, value)| value.is_some())
    }

    /// The flags that are settings: each with its name in the policy language, and its value.
    fn settings(&self) -> [(&'static str, &'static str, &Option<String>); 8] {
        [
            ("--base", "base", &self.base),
            ("--cap", "cap", &self.cap),
            ("--multiplier", "multiplier", &self.multiplier),
            ("--jitter", "jitter", &self.jitter),
            ("--spread", "spread", &self.spread),
            ("--max-attempts", "max-attempts", &self.max_attempts),
            ("--max-elapsed", "max-elapsed", &self.max_elapsed),
            ("--stable-after", "stable-after", &self.stable_after),
        ]
    }

    /// The seed that was given, or a new one.
    pub(crate) fn seed(&self) -> Seed {
        self.seed.map_or_else(stagger::seed, Seed::new)
    }
}

/// What holds for a command line that says nothing: patient enough for a service that restarts.
fn defaults() -> PolicyBuilder {
    Policy::exponential(Duration::from_secs(1), Duration::from_secs(30)).max_attempts(5)
}

/// What `--policy` says, or the file that it names.
fn read(spec: &str) -> Result<Policy, CliError> {
    let Some(path) = spec.strip_prefix('@') else {
        return spec.parse().map_err(|error| CliError::usage(format_args!("--policy: {error}")));
    };
    let text =
        fs::read_to_string(path).map_err(|error| CliError::io(format_args!("--policy: cannot read {path}"), error))?;
    let policy = match Format::of(&text) {
        Format::Line => text.trim().parse().map_err(CliError::usage),
        Format::Toml => toml::from_str(&text).map_err(CliError::usage),
        Format::Json => serde_json::from_str(&text).map_err(CliError::usage),
    };
    policy.map_err(|error| CliError::usage(format_args!("--policy: in {path}: {}", error.to_string().trim_end())))
}

/// What a file that holds a policy is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Line,
    Toml,
    Json,
}

impl Format {
    /// The one-line form begins with a bare word, which nothing but another setting follows.
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['{', '"']) {
            return Self::Json;
        }
        let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
        let next = text[word..].trim_start_matches([' ', '\t']).chars().next();
        if word > 0 && next != Some('=') { Self::Line } else { Self::Toml }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(policy: &str) -> PolicyArgs {
        PolicyArgs { policy: Some(policy.to_owned()), ..PolicyArgs::default() }
    }

    #[test]
    fn flags_override_the_policy_whatever_came_first() {
        let policy =
            PolicyArgs { cap: Some("5s".to_owned()), ..args("exponential base=200ms cap=1s max-attempts=9") }.policy();
        assert_eq!(
            policy.unwrap().to_string(),
            "exponential base=200ms cap=5s multiplier=2 jitter=full max-attempts=9"
        );
    }

    #[test]
    fn without_a_word_the_defaults_hold() {
        let policy = PolicyArgs::default().policy().unwrap();
        assert_eq!(policy.to_string(), "exponential base=1s cap=30s multiplier=2 jitter=full max-attempts=5");
    }

    #[test]
    fn a_file_is_read_in_the_form_it_has() {
        for (text, want) in [
            ("exponential base=1s", Format::Line),
            ("  zero\n", Format::Line),
            ("backoff = \"exponential\"\nbase = \"1s\"", Format::Toml),
            ("backoff=\"zero\"", Format::Toml),
            ("# a comment\nbackoff = \"zero\"", Format::Toml),
            ("{\"backoff\": \"zero\"}", Format::Json),
            ("\"zero\"", Format::Json),
        ] {
            assert_eq!(Format::of(text), want, "{text:?}");
        }
    }

    #[test]
    fn all_forms_of_a_file_give_the_same_policy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy");
        let want = "exponential base=200ms cap=1s multiplier=2 jitter=equal max-attempts=3";
        for text in [
            want,
            "backoff = \"exponential\"\nbase = \"200ms\"\ncap = \"1s\"\njitter = \"equal\"\nmax-attempts = 3\n",
            "{\"backoff\": \"exponential\", \"base\": \"200ms\", \"cap\": \"1s\", \"jitter\": \"equal\", \"max-attempts\": 3}",
        ] {
            fs::write(&path, text).unwrap();
            let policy = args(&format!("@{}", path.display())).policy().unwrap();
            assert_eq!(policy.to_string(), want, "{text}");
        }
    }
}
