use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

/// Fifty kills under 2,000 clients with a message a second each way: two minutes. What is in the environment goes before
/// this.
const PLAN: [(&str, &str); 4] =
    [("SOAK_KILLS", "50"), ("SOAK_CLIENTS", "2000"), ("SOAK_EVERY_MS", "1000"), ("SOAK_CALM_MS", "1000")];

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let soak = Shell::cargo("test --package stagger-ws --test soak").args(arguments).args(["--", "--nocapture"]);
    let plan = PLAN.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    plan.fold(soak, |soak, (name, value)| soak.env(name, value)).run()?;
    // The same number, from a server that drains to the next one.
    let moving = Shell::cargo("test --package stagger-ws --all-features --test server");
    moving.args(["--", "--ignored", "two_thousand_clients_move_over_sockets"]).run()
}
