use core::time::Duration;
use std::io;

use stagger_redis::{ControlStore, ControlStoreError, StoredControls};
use stagger_terminal::output::error::CliError;
use tokio::runtime::Builder;

use super::args::{Action, ControlArgs};
use super::command::{changed, note};
use super::controls::Controls;
use crate::run::StoreAddress;

/// What is known of controls in Redis beside their text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// How long ago they were set; `None` if they never were.
    pub(super) age: Option<Duration>,
    /// How long they stay in force; `None` without an end.
    pub(super) ends_in: Option<Duration>,
}

/// Shows or changes the controls of a fleet, and returns them.
pub(super) fn run(args: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    let shown = &address.shown;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start a connection", error))?;
    let mut store = ControlStore::new(&address.url, &address.name)
        .map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let failed = |error| match error {
        ControlStoreError::Unreachable(reason) => {
            CliError::io(format_args!("cannot reach {shown}"), io::Error::other(reason))
        }
        error => CliError::usage(format_args!("{shown}: {error}")),
    };
    let stored = runtime.block_on(store.read()).map_err(failed)?;
    let version = stored.as_ref().map_or(0, |stored| stored.version);
    // After their end they are as good as cleared.
    let in_force = stored.as_ref().filter(|stored| stored.ends_in.is_none_or(|rest| !rest.is_zero()));
    let text = in_force.or(stored.as_ref().filter(|_| args.action == Action::Show)).map(|stored| stored.text.clone());
    let controls = Controls::parse(text.unwrap_or_default());
    let controls = controls.map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let Some(changed) = changed(args, &controls)? else {
        return Ok((controls, known(stored.as_ref())));
    };
    // A change of one target does not take the end from the others.
    let length = args.length.or(in_force.and_then(|stored| stored.ends_in));
    let note = note(args)?;
    let set = store.set(version, changed.text(), &note, length);
    let stored = runtime.block_on(set).map_err(failed)?;
    Ok((changed, known(Some(&stored))))
}

fn known(stored: Option<&StoredControls>) -> Stored {
    Stored { age: stored.map(|stored| stored.age), ends_in: stored.and_then(|stored| stored.ends_in) }
}
