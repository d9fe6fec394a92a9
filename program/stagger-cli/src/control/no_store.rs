//! Controls in Redis, in a build without the feature `fleet`: they are not known.

use core::time::Duration;

use stagger_terminal::output::error::CliError;

use super::args::ControlArgs;
use super::controls::Controls;
use crate::run::StoreAddress;

/// What is known of controls in Redis beside their text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) age: Option<Duration>,
    pub(super) ends_in: Option<Duration>,
}

pub(super) fn run(_: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    Err(CliError::usage(address.unsupported()))
}
