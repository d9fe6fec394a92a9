use stagger_core::guard::{BudgetPermit, Now};
use stagger_core::{Budget, FailureKind, Outcome};
use stagger_terminal::output::error::CliError;

#[cfg(feature = "fleet")]
use super::fleet::FleetBudget;
use super::machine::MachineBudget;
use super::place::BudgetPlace;
use crate::run::args::RunArgs;

/// The budget of `--budget`. A retry takes one from it, and a success puts one back.
#[derive(Debug)]
pub(crate) enum SharedBudget {
    Machine(MachineBudget),
    #[cfg(feature = "fleet")]
    Fleet(FleetBudget),
}

impl SharedBudget {
    /// Returns the budget, if there is one.
    pub(crate) fn new(args: &RunArgs) -> Result<Option<Self>, CliError> {
        let (size, refill) = (args.budget_size, args.budget_refill);
        Ok(match (&args.budget, args.budget_processes) {
            (None, _) => None,
            (Some(BudgetPlace::Machine(name)), None) => Some(Self::Machine(MachineBudget::new(name, size, refill)?)),
            (Some(BudgetPlace::Machine(name)), Some(_)) => {
                return Err(CliError::usage(format_args!(
                    "--budget-processes is for a budget in Redis, and `{name}` is one of this machine; leave it out"
                )));
            }
            #[cfg(feature = "fleet")]
            (Some(BudgetPlace::Store(address)), Some(processes)) => {
                Some(Self::Fleet(FleetBudget::new(address, processes, size, refill)?))
            }
            #[cfg(not(feature = "fleet"))]
            (Some(BudgetPlace::Store(address)), Some(_)) => return Err(CliError::usage(address.unsupported())),
            (Some(BudgetPlace::Store(address)), None) => {
                return Err(CliError::usage(format_args!(
                    "--budget {} needs --budget-processes N, the number of runs at the same time: without the store, \
                     each \
                     uses that part of the budget",
                    address.shown
                )));
            }
        })
    }

    /// Returns what the user must be told, once.
    pub(crate) fn take_warning(&self) -> Option<String> {
        match self {
            Self::Machine(budget) => budget.take_warning(),
            #[cfg(feature = "fleet")]
            Self::Fleet(budget) => budget.take_warning(),
        }
    }

    fn budget(&self) -> &dyn Budget {
        match self {
            Self::Machine(budget) => budget,
            #[cfg(feature = "fleet")]
            Self::Fleet(budget) => budget,
        }
    }
}

impl Budget for SharedBudget {
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        self.budget().try_acquire(kind, now)
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.budget().record(permit, outcome, now);
    }

    fn release(&self, permit: BudgetPermit) {
        self.budget().release(permit);
    }
}
