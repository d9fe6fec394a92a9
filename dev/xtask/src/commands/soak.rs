use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

/// Defaults of the variables that the soak test reads: fifty kills under 2,000 clients with a message per second in each
/// direction, which takes two minutes.
const DEFAULTS: [(&str, &str); 4] =
    [("SOAK_KILLS", "50"), ("SOAK_CLIENTS", "2000"), ("SOAK_EVERY_MS", "1000"), ("SOAK_CALM_MS", "1000")];

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let soak = Shell::cargo("test --package stagger-ws --test soak").args(arguments).args(["--", "--nocapture"]);
    let defaults = DEFAULTS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    defaults.fold(soak, |soak, (name, value)| soak.env(name, value)).run()?;
    // As many clients move from a server that drains to the next one.
    let drain = Shell::cargo("test --package stagger-ws --all-features --test server");
    drain.args(["--", "--ignored", "two_thousand_clients_move_over_sockets"]).run()
}
