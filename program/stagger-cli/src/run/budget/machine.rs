use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stagger_core::budget::{Tokens, TokensBuilder};
use stagger_core::guard::{BudgetPermit, Now};
use stagger_core::text::Rate;
use stagger_core::{Budget, FailureKind, Instant, Outcome};
use stagger_terminal::output::error::CliError;

use super::file::{BudgetFile, Unusable, Used, user_directory};

/// A token bucket in a file, for the runs of a user on this machine. A retry takes one token, and a success puts one
/// back.
///
/// If the file cannot be used, the run goes on as without a budget; this is told once.
#[derive(Debug)]
pub(crate) struct MachineBudget {
    file: BudgetFile,
    limits: TokensBuilder,
    status: Mutex<Status>,
}

#[derive(Debug, Default)]
struct Status {
    is_unusable: bool,
    warning: Option<String>,
}

impl MachineBudget {
    /// Returns the budget of this name.
    pub(super) fn new(name: &str, size: NonZeroU32, refill: Option<Rate>) -> Result<Self, CliError> {
        let limits = limits(size, refill);
        limits.build().map_err(|error| CliError::usage(format_args!("--budget: {error}")))?;
        let path = user_directory()?.join(format!("budget-{name}"));
        Ok(Self { file: BudgetFile::new(path), limits, status: Mutex::default() })
    }

    /// Returns what the user must be told, once.
    pub(super) fn take_warning(&self) -> Option<String> {
        self.status().warning.take()
    }

    /// Uses the bucket; `None` if that is not possible.
    fn with<T>(&self, used: impl FnOnce(&Tokens, Instant) -> T) -> Option<T> {
        let mut status = self.status();
        if status.is_unusable {
            return None;
        }
        let path = self.file.path.display();
        match self.file.with(self.limits, used) {
            Ok(Used { value, was_damaged }) => {
                if was_damaged {
                    status.warning = Some(format!(
                        "--budget: {path} was not written by this version of stagger, or was damaged; it is replaced \
                         by \
                         a full budget"
                    ));
                }
                Some(value)
            }
            Err(error) => {
                *status = Status { is_unusable: true, warning: Some(unusable(&error, &path.to_string())) };
                None
            }
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Budget for MachineBudget {
    fn try_acquire(&self, kind: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        // There is nothing to release for a retry that no budget has granted.
        self.with(|tokens, now| tokens.try_acquire(kind, &now)).unwrap_or(Some(BudgetPermit::NONE))
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, _: &dyn Now) {
        self.with(|tokens, now| tokens.record(permit, outcome, &now));
    }

    fn release(&self, permit: BudgetPermit) {
        self.with(|tokens, _| tokens.release(permit));
    }
}

fn unusable(error: &Unusable, path: &str) -> String {
    format!("--budget: cannot use {path}: {error}; this run goes on without it")
}

/// Returns the settings of a bucket in which a token is a retry.
fn limits(size: NonZeroU32, refill: Option<Rate>) -> TokensBuilder {
    let limits = Tokens::builder().capacity(size.get()).cost(1).reward(1);
    match refill {
        Some(rate) => limits.refill(1, time_of_one(rate)),
        None => limits,
    }
}

/// Returns the time in which one retry returns.
pub(super) fn time_of_one(rate: Rate) -> Duration {
    Duration::try_from_secs_f64(rate.get().recip()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::args::RunArgs;

    /// The library's budget has another unit: 500 tokens, of which a retry takes and a success returns five.
    #[test]
    fn the_default_grants_as_many_retries_as_the_default_of_the_library() {
        use clap::Args;
        let command = RunArgs::augment_args(clap::Command::new("run"));
        let size = command.get_arguments().find(|arg| arg.get_id() == "budget_size").unwrap();
        let size = size.get_default_values()[0].to_str().unwrap().parse().unwrap();
        let (ours, library) = (limits(size, None).build().unwrap(), Tokens::new());
        let now = Instant::ZERO;
        for step in 0..1_000 {
            assert_eq!(ours.available(), library.available(), "step {step}");
            if step % 7 == 6 {
                ours.record(BudgetPermit::NONE, &Outcome::Success, &now);
                library.record(BudgetPermit::NONE, &Outcome::Success, &now);
            } else {
                let granted = ours.try_acquire(FailureKind::Transient, &now).is_some();
                assert_eq!(granted, library.try_acquire(FailureKind::Transient, &now).is_some(), "step {step}");
            }
        }
    }
}
