use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Show or change the operator controls in a file, which a program reads
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_long_help = AFTER_HELP)]
pub(crate) struct ControlArgs {
    /// What to do
    #[arg(value_enum, value_name = "ACTION")]
    pub(super) action: Action,

    /// File with the controls
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,

    /// For set: entries of the form TARGET=SETTING, with * for all other targets. For clear: targets; without any, all
    #[arg(value_name = "ENTRY")]
    pub(super) entries: Vec<String>,

    /// Author of the change, for the comment beside it [default: $USER]
    #[arg(long, value_name = "NAME", help_heading = "Control")]
    pub(super) by: Option<String>,

    /// Reason for the change, for the comment beside it
    #[arg(long, value_name = "TEXT", help_heading = "Control")]
    pub(super) reason: Option<String>,

    /// Print the controls as JSON, schema stagger.control/1
    #[arg(long, help_heading = "Control")]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Action {
    /// Print the controls
    Show,
    /// Set targets, and leave the others as they are
    Set,
    /// Reset targets to *, or all targets to enforced
    Clear,
}

/// Lines fit a manual page of 80 columns.
const EXAMPLES: &str = "\
Examples:
  stagger control set retry.controls api=25% --reason 'slow since 14:05'
  stagger control set retry.controls '*=no-retries'
  stagger control show retry.controls
  stagger control clear retry.controls api";

/// Lines fit a manual page of 80 columns.
const AFTER_HELP: &str = "\
Settings:
  enforced     budgets and breakers decide
  observed     all retries are made; what guards would have rejected is
               counted
  off          guards are not consulted: retries have no bound
  no-retries   no retries; first attempts continue
  25%          that share of the retries; also with a mode: observed 25%

The file is replaced as a whole, and keeps its mode.
A program has to read it again, for example on SIGHUP.
A control has no end time: it stays until it is changed.";
