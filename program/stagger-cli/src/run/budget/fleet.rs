use core::num::NonZeroU32;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use stagger::control::RetryControls;
use stagger_core::FailureKind;
use stagger_core::budget::{Controlled, RetryControl};
use stagger_core::guard::{End, Guard, Now, Permit};
use stagger_core::text::Rate;
use stagger_redis::{Fleet, FleetEvent, FleetSnapshot, SharedTokens};
use stagger_terminal::output::error::CliError;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::file::time_of_one;
use super::place::StoreAddress;

/// The target of all runs, in the namespace that the address names.
const TARGET: &str = "run";

/// How long the first report may take before the run goes on without the store.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a decision waits for a reply at most. Its wait is a part of the delay before the retry.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

/// How long the end of a run waits until the store has its lease back.
const LONGEST_END: Duration = Duration::from_millis(100);

/// A token bucket in Redis, of which each run has a lease. A retry takes one token, and a success puts one back. An
/// operator control of the target `run` holds for it.
///
/// If the store does not answer, the run has its share of the refill and nothing else, since nobody counts how many
/// runs start meanwhile; this is told once.
#[derive(Debug)]
pub(crate) struct FleetBudget {
    /// Until the end.
    open: Option<Open>,
    silence: Arc<Silence>,
}

/// What the user is told when the store does not answer.
#[derive(Debug)]
struct Silence {
    store: String,
    /// What the run does meanwhile.
    left: &'static str,
    was_told: AtomicBool,
    warning: Mutex<Option<String>>,
}

impl Silence {
    /// Leaves a warning, the first time.
    fn tell(&self, reason: &str) {
        if !self.was_told.swap(true, Ordering::Relaxed) {
            let Self { store, left, .. } = self;
            let text = format!("--budget: {store} does not answer ({reason}); this run {left} until it does");
            *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
    }
}

#[derive(Debug)]
struct Open {
    budget: Controlled<Arc<SharedTokens>, Arc<RetryControl>>,
    control: Arc<RetryControl>,
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
        let silence = Arc::new(Silence {
            store: address.shown.clone(),
            left: if refill.is_some() { "has only its share of the refill" } else { "makes no retries" },
            was_told: AtomicBool::new(false),
            warning: Mutex::new(None),
        });
        let told = Arc::clone(&silence);
        let fleet = Fleet::builder(&address.url, processes.get()).namespace(&address.name).patience(PATIENCE);
        let fleet = fleet.on_event(move |event| {
            if let FleetEvent::StoreLost { reason } = event {
                told.tell(reason);
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
        let control = controls.control(TARGET);
        let budget = Controlled::new(Arc::new(tokens), Arc::clone(&control));
        drop(entered);
        Ok(Self { open: Some(Open { budget, control, fleet, runtime }), silence })
    }

    /// Returns what the user must be told, once.
    pub(super) fn take_warning(&self) -> Option<String> {
        self.silence.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Open {
    /// Reserves a retry, if the control grants one, too.
    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let permit = self.budget.reserve(kind, now)?;
        if self.control.reserve(kind, now).is_none() {
            self.budget.settle(permit, End::NeverMade, now);
            return None;
        }
        Some(permit)
    }

    /// Waits until it is true, for a time that suits a decision, and returns whether it is.
    fn wait_until(&self, is_true: impl Fn(&FleetSnapshot) -> bool) -> bool {
        let begun = Instant::now();
        while !is_true(&self.fleet.snapshot()) {
            if begun.elapsed() >= LONGEST_WAIT {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl Guard for FleetBudget {
    fn name(&self) -> &'static str {
        "budget"
    }

    /// The attempt that has failed has usually taken longer than the first reply, so that there is nothing to wait for.
    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let open = self.open.as_ref()?;
        if !open.wait_until(|seen| seen.answered > 0 || seen.losses > 0) {
            // On a busy machine, its own task may be late to say so.
            self.silence.tell("no reply yet");
        }
        let before = open.fleet.snapshot();
        if let Some(permit) = open.reserve(kind, now) {
            return Some(permit);
        }
        if !before.is_leased {
            return None;
        }
        // The lease is used up, and the request has made the task ask for more.
        let has_tokens = || open.budget.guard().available().is_some_and(|retries| retries > 0);
        open.wait_until(|seen| has_tokens() || seen.answered > before.reports || !seen.is_leased);
        if has_tokens() { open.reserve(kind, now) } else { None }
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        if let Some(open) = &self.open {
            open.budget.settle(permit, end, now);
        }
    }
}

/// Hands the lease back, so that other runs have it at once, and with it what a success has earned.
impl Drop for FleetBudget {
    fn drop(&mut self) {
        if let Some(Open { budget, fleet, runtime, .. }) = self.open.take() {
            drop(budget);
            // Without a reply, what it held is lost.
            let _ = runtime.block_on(async { timeout(LONGEST_END, fleet.close()).await });
            runtime.shutdown_background();
        }
    }
}
