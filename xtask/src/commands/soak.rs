use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

/// Fifty kills under 2,000 clients with a message a second each way: some minutes. What is in the environment goes
/// before this.
const PLAN: [(&str, &str); 4] =
    [("SOAK_KILLS", "50"), ("SOAK_CLIENTS", "2000"), ("SOAK_EVERY_MS", "1000"), ("SOAK_CALM_MS", "1000")];

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let soak = Shell::cargo("test --package stagger-ws --test soak").args(arguments).args(["--", "--nocapture"]);
    let plan = PLAN.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    plan.fold(soak, |soak, (name, value)| soak.env(name, value)).run()
}
