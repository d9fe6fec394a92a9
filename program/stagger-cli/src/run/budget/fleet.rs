use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use stagger::control::RetryControls;
use stagger_core::budget::{ControlledBudget, RetryControl};
use stagger_core::guard::{BudgetPermit, Now};
use stagger_core::text::Rate;
use stagger_core::{Budget, FailureKind, Outcome};
use stagger_redis::{Fleet, FleetEvent, FleetSnapshot, SharedTokens};
use stagger_terminal::output::error::CliError;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::file::time_of_one;
use super::place::StoreAddress;

/// The target of all runs, in the namespace that the address names.
const TARGET: &str = "run";

/// How long the first report may take before the run uses its share.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a decision waits for a reply at most. Its wait is a part of the delay before the retry.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

/// How long the end of a run waits until the store has its lease back.
const LONGEST_END: Duration = Duration::from_millis(100);

/// A token bucket in Redis, of which each run has a lease. A retry takes one token, and a success puts one back. An
/// operator control of the target `run` holds for it.
///
/// If the store does not answer, the run uses its share of the budget; this is told once.
#[derive(Debug)]
pub(crate) struct FleetBudget {
    /// Until the end.
    open: Option<Open>,
    warning: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
struct Open {
    tokens: SharedTokens,
    budget: ControlledBudget<SharedTokens, Arc<RetryControl>>,
    fleet: Fleet,
    runtime: Runtime,
}

impl FleetBudget {
    /// Connects in the background.
    ///
    /// # Errors
    /// Settings that cannot work. Never because the store is away.
    pub(super) fn new(
        address: &StoreAddress,
        processes: NonZeroU32,
        size: NonZeroU32,
        refill: Option<Rate>,
    ) -> Result<Self, CliError> {
        let failed = |error| CliError::io("--budget: cannot start a thread", error);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
        let entered = runtime.enter();
        let wrong = |error| CliError::usage(format_args!("--budget {}: {error}", address.shown));
        let warning = Arc::new(Mutex::new(None));
        let (told, shown) = (Arc::clone(&warning), address.shown.clone());
        let was_told = Mutex::new(false);
        let fleet = Fleet::builder(&address.url, processes.get()).namespace(&address.name).patience(PATIENCE);
        let fleet = fleet.on_event(move |event| {
            if let FleetEvent::StoreLost { reason } = event
                && !core::mem::replace(&mut *was_told.lock().unwrap_or_else(PoisonError::into_inner), true)
            {
                let text = format!(
                    "--budget: {shown} does not answer ({reason}); this run uses its share of the budget until it does"
                );
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
            }
        });
        let fleet = fleet.build().map_err(wrong)?;
        let controls = RetryControls::new();
        fleet.controls(&controls);
        let tokens = fleet.tokens(TARGET).capacity(size.get()).cost(1).reward(1);
        let tokens = match refill {
            Some(rate) => tokens.refill(1, time_of_one(rate)),
            None => tokens,
        };
        let tokens = tokens.build().map_err(wrong)?;
        let budget = controls.budget(TARGET, tokens.clone());
        drop(entered);
        Ok(Self { open: Some(Open { tokens, budget, fleet, runtime }), warning })
    }

    /// Returns what the user must be told, once.
    pub(super) fn take_warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Open {
    /// Waits until it is true, for a time that suits a decision.
    fn wait_until(&self, is_true: impl Fn(&FleetSnapshot) -> bool) {
        let begun = Instant::now();
        while !is_true(&self.fleet.snapshot()) && begun.elapsed() < LONGEST_WAIT {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Budget for FleetBudget {
    /// The attempt that has failed has usually taken longer than the first reply, so that there is nothing to wait for.
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let open = self.open.as_ref()?;
        open.wait_until(|seen| seen.answered > 0 || seen.losses > 0);
        let before = open.fleet.snapshot();
        if let Some(permit) = open.budget.try_acquire(kind, now) {
            return Some(permit);
        }
        if !before.is_leased {
            return None;
        }
        // The lease is used up, and the request has made the task ask for more.
        let has_tokens = || open.tokens.available().is_some_and(|retries| retries > 0);
        open.wait_until(|seen| has_tokens() || seen.answered > before.reports || !seen.is_leased);
        if has_tokens() { open.budget.try_acquire(kind, now) } else { None }
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        if let Some(open) = &self.open {
            open.budget.record(permit, outcome, now);
        }
    }

    fn release(&self, permit: BudgetPermit) {
        if let Some(open) = &self.open {
            open.budget.release(permit);
        }
    }
}

/// Hands the lease back, so that other runs have it at once, and with it what a success has earned.
impl Drop for FleetBudget {
    fn drop(&mut self) {
        if let Some(Open { tokens, budget, fleet, runtime }) = self.open.take() {
            drop((tokens, budget));
            // Without a reply the lease returns by itself.
            let _ = runtime.block_on(async { timeout(LONGEST_END, fleet.close()).await });
            runtime.shutdown_background();
        }
    }
}
