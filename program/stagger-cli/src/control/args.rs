use core::time::Duration;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::run::StoreAddress;

/// Show or change the operator controls in a file, which a program reads, or in Redis, for all processes of a fleet
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_long_help = AFTER_HELP)]
pub(crate) struct ControlArgs {
    /// What to do
    #[arg(value_enum, value_name = "ACTION")]
    pub(super) action: Action,

    /// File with the controls, or redis://HOST/NAME (rediss:// with TLS, and with a database redis://HOST/0/NAME),
    /// where NAME is the namespace of the fleet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = ControlPlace::parse)]
    pub(super) place: ControlPlace,

    /// For set: entries of the form TARGET=SETTING, with * for all other targets. For clear: targets; without any, all
    #[arg(value_name = "ENTRY")]
    pub(super) entries: Vec<String>,

    /// Author of the change, for the comment beside it [default: $USER]
    #[arg(long, value_name = "NAME", help_heading = "Control")]
    pub(super) by: Option<String>,

    /// Reason for the change, for the comment beside it
    #[arg(long, value_name = "TEXT", help_heading = "Control")]
    pub(super) reason: Option<String>,

    /// How long the controls stay in force, in Redis; after it every target is enforced [default: as long as those in
    /// force, or until they are changed]
    #[arg(long = "for", value_name = "DUR", value_parser = length, help_heading = "Control")]
    pub(super) length: Option<Duration>,

    /// Print the controls as JSON, schema stagger.control/1
    #[arg(long, help_heading = "Control")]
    pub(super) json: bool,
}

/// Where the controls are.
#[derive(Clone, Debug)]
pub(super) enum ControlPlace {
    File(PathBuf),
    Store(StoreAddress),
}

impl ControlPlace {
    fn parse(text: &str) -> Result<Self, String> {
        if StoreAddress::is_address(text) {
            return StoreAddress::parse(text).map(Self::Store);
        }
        Ok(Self::File(text.into()))
    }
}

fn length(text: &str) -> Result<Duration, String> {
    let length = humantime::parse_duration(text).map_err(|error| format!("{error}; write it like 30m or 2h"))?;
    if length.is_zero() { Err("they would end at once; write it like 30m or 2h".to_owned()) } else { Ok(length) }
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
  stagger control clear retry.controls api
  stagger control set redis://db/shop api=no-retries --for 30m";

/// Lines fit a manual page of 80 columns.
const AFTER_HELP: &str = "\
Settings:
  enforced     budgets and breakers decide
  observed     all retries are made; what guards would have rejected is
               counted
  off          guards are not consulted: retries have no bound
  no-retries   no retries; first attempts continue
  25%          that share of the retries; also with a mode: observed 25%

A file is replaced as a whole, and keeps its mode.
A program has to read it again, for example on SIGHUP.
In Redis, all processes of the fleet have it a second later.
A control stays until it is changed; in Redis, --for gives it an end.";
