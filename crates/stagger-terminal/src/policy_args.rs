use core::num::NonZeroU32;
use core::time::Duration;
use std::fs::File;
use std::path::Path;

use clap::Args;
use clap::builder::StringValueParser;
use stagger_core::profile::Profile;
use stagger_core::text::{backoff_names, jitter_names};
use stagger_core::{Policy, PolicyBuilder, Seed};

use crate::input;
use crate::output::error::CliError;
use crate::output::outside::path_shown;
use crate::output::suggestion::offering;

/// The longest file of a policy in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The flags that describe a retry policy, shared by all subcommands.
///
/// Their values are parsed by the policy language, so a flag and the setting of the same name in `--policy` accept the
/// same values.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// Complete policy, e.g. 'exponential base=500ms cap=30s jitter=full max-attempts=8'; or the NAME of a profile,
    /// such as aws-sdk or socket.io (see `stagger plan --profiles`); or @FILE containing either of these, TOML or JSON.
    /// The flags below override its settings. A value of a profile, like a default, yields to a contradicting one that
    /// is given
    #[arg(short, long, value_name = "SPEC|NAME|@FILE", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), policies))]
    pub policy: Option<String>,

    /// Upper bound of the first delay; with decorrelated jitter, its lower bound [default
    /// without --policy: 100ms, or the cap if that is shorter]
    #[arg(short = 'd', long, alias = "delay", value_name = "DUR")]
    pub base: Option<String>,

    /// Upper bound for every delay, which only a ± jitter may exceed, by its share; 'none' for no limit
    /// [default without --policy: 30s, or the base if that is longer]
    #[arg(long, aliases = ["max", "max-delay"], value_name = "DUR")]
    pub cap: Option<String>,

    /// Factor by which the upper bound grows with each retry [default without --policy: 2]
    #[arg(long, alias = "factor", value_name = "X")]
    pub multiplier: Option<String>,

    /// Distribution of a delay: none, full, equal, decorrelated, a share like ±20%, or an added length like
    /// add:500ms [default without --policy: full]
    #[arg(short, long, value_name = "KIND", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), jitters))]
    pub jitter: Option<String>,

    /// Upper bound of a random wait before the first attempt, to spread out clients that one event starts at the same
    /// time [default without --policy: 0s]
    #[arg(long, value_name = "DUR")]
    pub spread: Option<String>,

    /// Maximum number of attempts, including the first; 'inf' for no limit
    /// [default without --policy: 4]
    #[arg(short = 'n', long, alias = "attempts", value_name = "N|inf")]
    pub max_attempts: Option<String>,

    /// Latest start of a retry, measured from the start of the run; a retry that would start later ends the run
    /// immediately. Does not interrupt a running attempt
    /// [default without --policy: none]
    #[arg(short = 'T', long, value_name = "DUR")]
    pub max_elapsed: Option<String>,

    /// Longest delay that a server or the command may request, as with Retry-After; a longer one ends the run, 'inf'
    /// for no limit [default without --policy: 5m]
    #[arg(long, value_name = "DUR")]
    pub max_hint: Option<String>,

    /// Treat an attempt that ran at least this long as healthy, and start counting attempts and delays afresh
    /// [default without --policy: none]
    #[arg(long, alias = "reset-after", value_name = "DUR")]
    pub stable_after: Option<String>,

    /// Seed of the random delays, to reproduce an earlier run [default: random for run, else 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Returns the policies that have a name: backoffs and profiles.
pub fn policies() -> Vec<&'static str> {
    backoff_names().chain(Profile::all().map(Profile::name)).collect()
}

/// Returns the jitters that have a name of their own.
fn jitters() -> Vec<&'static str> {
    jitter_names().collect()
}

/// Parses a count of at least 1; an error says what is expected, and clap adds the flag and the value.
pub fn at_least_one(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "expected a whole number of at least 1")
}

impl PolicyArgs {
    /// Builds the policy that these flags describe. An error names the first value that cannot be parsed, or all
    /// problems of the policy.
    pub fn policy(&self) -> Result<Policy, CliError> {
        self.policy_or(defaults())
    }

    /// Builds the policy that these flags describe, with the defaults of a subcommand of its own.
    pub fn policy_or(&self, defaults: PolicyBuilder) -> Result<Policy, CliError> {
        match &self.policy {
            None => self.changed(defaults),
            Some(spec) => self.changed(read(spec)?.0.to_builder()),
        }
    }

    /// Builds the policy that these flags describe, and returns the profile that it begins with.
    pub fn policy_and_profile(&self) -> Result<(Policy, Option<&'static Profile>), CliError> {
        match &self.policy {
            None => Ok((self.changed(defaults())?, None)),
            Some(spec) => {
                let (policy, profile) = read(spec)?;
                Ok((self.changed(policy.to_builder())?, profile))
            }
        }
    }

    /// Builds a policy with the settings of the flags.
    fn changed(&self, mut builder: PolicyBuilder) -> Result<Policy, CliError> {
        let given = self.settings().into_iter().filter_map(|(flag, key, value)| Some((flag, key, value.as_deref()?)));
        for (flag, key, value) in given {
            builder = builder.set(key, value).map_err(|error| CliError::usage(format_args!("{flag}: {error}")))?;
        }
        builder.build().map_err(CliError::usage)
    }

    /// Returns whether any policy flag is present.
    pub fn is_given(&self) -> bool {
        self.first_given().is_some()
    }

    /// Returns the first policy flag that is present.
    pub fn first_given(&self) -> Option<&'static str> {
        if self.policy.is_some() {
            return Some("--policy");
        }
        self.settings().into_iter().find(|(_, _, value)| value.is_some()).map(|(flag, ..)| flag)
    }

    /// Returns each flag that is a setting, with its name in the policy language and its value.
    fn settings(&self) -> [(&'static str, &'static str, &Option<String>); 9] {
        [
            ("--base", "base", &self.base),
            ("--cap", "cap", &self.cap),
            ("--multiplier", "multiplier", &self.multiplier),
            ("--jitter", "jitter", &self.jitter),
            ("--spread", "spread", &self.spread),
            ("--max-attempts", "max-attempts", &self.max_attempts),
            ("--max-elapsed", "max-elapsed", &self.max_elapsed),
            ("--max-hint", "max-hint", &self.max_hint),
            ("--stable-after", "stable-after", &self.stable_after),
        ]
    }

    /// Returns the seed passed with `--seed`, or a new random one. That is below 2⁵³, so that programs whose numbers
    /// are floating-point, such as `jq` and JavaScript, read it exactly from JSON.
    pub fn seed(&self) -> Seed {
        match self.seed {
            Some(seed) => Seed::new(seed),
            None => Seed::new(stagger::seed().get() >> 11),
        }
    }
}

/// Returns the policy used without any policy flag: that of the line `exponential`, so that a setting means the same as
/// a flag, on a line and in a program.
fn defaults() -> PolicyBuilder {
    Policy::exponential(Policy::DEFAULT.base(), Duration::from_secs(30)).as_defaults()
}

/// Parses the value of `--policy`, or the file that it names, and returns the profile that it begins with.
fn read(spec: &str) -> Result<(Policy, Option<&'static Profile>), CliError> {
    // In the policy language an empty text is the default policy of the library; here it is most likely an unset
    // variable of a script.
    if spec.trim().is_empty() {
        return Err(CliError::usage(
            "--policy: the policy is empty; if it is a variable, set it; or write one such as 'exponential \
             base=500ms', or \
             leave out the flag",
        ));
    }
    let Some(path) = spec.strip_prefix('@') else {
        let is_file = || !spec.contains(char::is_whitespace) && Path::new(spec).is_file();
        let policy = spec.parse().map_err(|error| {
            if is_file() {
                return CliError::usage(format_args!("--policy: `{spec}` is a file; write it as @{spec}"));
            }
            CliError::usage(format_args!("--policy: {error}"))
        });
        return Ok((policy?, first_profile(spec)));
    };
    let file = File::open(path);
    let path = path_shown(path);
    let text = input::text("--policy: ", &path, file, MAX_BYTES)?;
    let has_setting = text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    if !has_setting {
        return Err(CliError::usage(format_args!(
            "--policy: {path} is empty; write a policy into it, such as 'exponential base=500ms', or leave out the flag"
        )));
    }
    let policy = match Format::detect(&text) {
        Format::Line => text.trim().parse().map_err(CliError::usage),
        Format::Toml => toml::from_str(&text).map_err(|error| toml_error(&error, &text)),
        Format::Json => serde_json::from_str(&text).map_err(CliError::usage),
    };
    let policy =
        policy.map_err(|error| CliError::usage(format_args!("--policy: in {path}: {}", error.to_string().trim_end())));
    Ok((policy?, first_profile(&text)))
}

/// Returns the profile that a line of the policy language begins with, which may be in quotes.
fn first_profile(text: &str) -> Option<&'static Profile> {
    let line = text.trim_start_matches(|c: char| c.is_whitespace() || c == '"');
    Profile::named(line.split(|c: char| c.is_whitespace() || c == '"').next()?)
}

/// Returns the error with its position, unless it is about the policy as a whole, which has none.
fn toml_error(error: &toml::de::Error, text: &str) -> CliError {
    let is_whole = error.span().is_none_or(|span| span.is_empty() || span.len() >= text.trim().len());
    if is_whole { CliError::usage(error.message()) } else { CliError::usage(error) }
}

/// The format of a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Line,
    Toml,
    Json,
}

impl Format {
    /// Detects the format: the one-line form begins with a bare word that is not followed by `=`.
    fn detect(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['{', '"']) {
            return Self::Json;
        }
        let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
        let next = text[word..].trim_start_matches([' ', '\t']).chars().next();
        if word > 0 && next != Some('=') { Self::Line } else { Self::Toml }
    }
}

/// Returns whether a positional argument is a file and not a policy: if it is `-`, or contains `/` or `.` or names
/// something that exists, and does not begin like a policy. `socket.io` is a policy, `./socket.io` a file.
pub fn is_file(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    if text == "-" {
        return true;
    }
    if text.starts_with('@') || policies().contains(&first) {
        return false;
    }
    let exists = || Path::new(text).exists();
    // Settings of a policy have an equals sign, as hardly any file has.
    let looks_like_one = text.contains(['/', '.', '*']) && !text.contains('=');
    looks_like_one || exists()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn args(policy: &str) -> PolicyArgs {
        PolicyArgs { policy: Some(policy.to_owned()), ..PolicyArgs::default() }
    }

    #[test]
    fn flags_override_the_policy_in_any_order() {
        let policy =
            PolicyArgs { cap: Some("5s".to_owned()), ..args("exponential base=200ms cap=1s max-attempts=9") }.policy();
        assert_eq!(
            policy.unwrap().to_string(),
            "exponential base=200ms cap=5s multiplier=2 jitter=full max-attempts=9"
        );
    }

    #[test]
    fn flags_lines_and_the_library_have_the_same_defaults() {
        let of = |args: &PolicyArgs| args.policy().unwrap();
        assert_eq!(of(&PolicyArgs::default()), of(&args("exponential")));
        assert_eq!(
            of(&PolicyArgs::default()),
            Policy::DEFAULT.to_builder().max_hint(Duration::from_secs(300)).build().unwrap()
        );
        let second = || Some("1s".to_owned());
        for (flags, line) in [
            (PolicyArgs { base: second(), ..PolicyArgs::default() }, "exponential base=1s"),
            (PolicyArgs { base: Some("1m".to_owned()), ..PolicyArgs::default() }, "exponential base=1m"),
            (PolicyArgs { cap: Some("50ms".to_owned()), ..PolicyArgs::default() }, "exponential cap=50ms"),
            (PolicyArgs { spread: second(), ..PolicyArgs::default() }, "exponential spread=1s"),
            (PolicyArgs { max_elapsed: second(), ..PolicyArgs::default() }, "exponential max-elapsed=1s"),
            (PolicyArgs { jitter: Some("equal".to_owned()), ..PolicyArgs::default() }, "exponential jitter=equal"),
        ] {
            assert_eq!(of(&flags), of(&args(line)), "{line}");
            assert_eq!(of(&flags), line.parse().unwrap(), "{line}");
        }
    }

    #[test]
    fn a_policy_begins_with_a_profile_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy");
        fs::write(&path, "\n\"Socket_IO spread=5s\"\n").unwrap();
        let file = format!("@{}", path.display());
        let name = |spec: &str| args(spec).policy_and_profile().unwrap().1.map(Profile::name);
        for (spec, want) in [
            ("socket.io", Some("socket.io")),
            (" aws-sdk base=2s", Some("aws-sdk")),
            ("1s..5s", None),
            (&*file, Some("socket.io")),
        ] {
            assert_eq!(name(spec), want, "{spec}");
        }
        assert_eq!(PolicyArgs::default().policy_and_profile().unwrap().1, None);
    }

    #[test]
    fn an_empty_policy_is_an_error() {
        for spec in ["", "  "] {
            assert!(
                args(spec).policy().is_err_and(|error| error.to_string().contains("the policy is empty")),
                "{spec:?}"
            );
        }
    }

    #[test]
    fn an_empty_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy");
        for text in ["", "\n \n", "# only a comment\n"] {
            fs::write(&path, text).unwrap();
            let error = args(&format!("@{}", path.display())).policy().unwrap_err().to_string();
            assert!(error.contains("policy is empty; write a policy into it"), "{text:?}: {error}");
        }
    }

    #[test]
    fn every_name_that_is_offered_is_accepted() {
        for name in policies() {
            // Some backoffs have a setting without a default.
            let error = name.parse::<Policy>().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.is_empty() || error.contains("backoff needs"), "{name}: {error}");
        }
        for name in jitters() {
            assert!(name.parse::<stagger_core::Jitter>().is_ok(), "{name}");
        }
    }

    #[test]
    fn an_error_in_a_file_has_the_position_of_the_setting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy");
        for (text, position) in [
            ("backoff = \"exponential\"\nbase = \"1s\"\ncap = \"foo\"\n", Some("line 3, column 7")),
            ("backoff = \"exponential\"\n\n  bsae = \"1s\"\n", Some("line 3, column 3")),
            ("base = \"1s\"\nretries = 3\n", Some("line 2, column 11")),
            ("base = \"1s\"\nbackoff = \"expo\"\n", Some("line 2, column 11")),
            ("{\n\"base\": \"1s\",\n\"cap\": \"foo\"}", Some("line 3 column 13")),
            ("base = \"2s\"\ncap = \"1s\"\n", None),
        ] {
            fs::write(&path, text).unwrap();
            let error = args(&format!("@{}", path.display())).policy().unwrap_err().to_string();
            match position {
                Some(position) => assert!(error.contains(position), "{text:?}: {error}"),
                None => assert!(!error.contains("column") && error.contains("cap 1s is below base 2s"), "{error}"),
            }
        }
    }

    #[test]
    fn the_format_of_a_file_is_detected() {
        for (text, want) in [
            ("exponential base=1s", Format::Line),
            ("  zero\n", Format::Line),
            ("backoff = \"exponential\"\nbase = \"1s\"", Format::Toml),
            ("backoff=\"zero\"", Format::Toml),
            ("# a comment\nbackoff = \"zero\"", Format::Toml),
            ("{\"backoff\": \"zero\"}", Format::Json),
            ("\"zero\"", Format::Json),
        ] {
            assert_eq!(Format::detect(text), want, "{text:?}");
        }
    }

    #[test]
    fn all_file_formats_give_the_same_policy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy");
        let want = "exponential base=200ms cap=1s multiplier=2 jitter=equal max-attempts=3";
        for text in [
            want,
            "backoff = \"exponential\"\nbase = \"200ms\"\ncap = \"1s\"\njitter = \"equal\"\nmax-attempts = 3\n",
            r#"{"backoff": "exponential", "base": "200ms", "cap": "1s", "jitter": "equal", "max-attempts": 3}"#,
        ] {
            fs::write(&path, text).unwrap();
            let policy = args(&format!("@{}", path.display())).policy().unwrap();
            assert_eq!(policy.to_string(), want, "{text}");
        }
    }

    #[test]
    fn a_policy_is_not_taken_for_a_file() {
        for policy in
            ["socket.io", "aws-sdk", "exponential base=0.5s", "exponentail base=1.5s", "@policy.toml", "zero", "typo"]
        {
            assert!(!is_file(policy), "{policy}");
        }
        for file in ["-", "a.yaml", "./socket.io", "dir/", "src", "*.yaml", "k8s/**/x", "my file.yaml"] {
            assert!(is_file(file), "{file}");
        }
    }
}
