//! What the lab adds to `stagger plan`: the policies of configurations of other systems, and policies as such configurations.

mod budget;
mod export;

use core::time::Duration;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use stagger_config::RetryBudget;
use stagger_config::export::Circumstances;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::print;
use stagger_terminal::plot::{RenderOptions, paragraph};
use stagger_terminal::policy_args::PolicyArgs;

use self::budget::{length, parse as budget};
use self::export::Export;
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

    /// Budget that limits the retries of all calls together, for --export: none, concurrent, throttle, window or tokens, with
    /// settings as `stagger simulate` has them: 'throttle max-tokens=100 token-ratio=10%' [default: that of the file]
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
                file.display(),
                paths.join(", ")
            )));
        }
        Ok(found)
    }

    /// Prints a policy as a configuration to standard output and what is lost to standard error. What no flag says is that of
    /// the file it was read from.
    ///
    /// # Errors
    ///
    /// If the other system cannot represent the policy.
    pub fn export(&self, policy: &PolicyArgs, of: Option<&ConfigPolicy>, term: &Term) -> Result<ExitCode, CliError> {
        let Some(system) = self.export else { return Ok(ExitCode::SUCCESS) };
        let mut circumstances = Circumstances::default();
        if let Some(timeout) = self.attempt_timeout.or(of.and_then(|of| of.attempt)) {
            circumstances = circumstances.attempt_timeout(timeout);
        }
        if let Some(timeout) = self.within.or(of.and_then(|of| of.overall)) {
            circumstances = circumstances.timeout(timeout);
        }
        if let Some(budget) = self.guards.or(of.and_then(|of| of.budget)) {
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
