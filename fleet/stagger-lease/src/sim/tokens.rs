use core::fmt;
use core::time::Duration;

use stagger_sim::outage::{FleetBudget, FleetConditions, FleetRun};

use super::fleet::Fleet;
use crate::claim::Limits;
use crate::settings::{SettingsProblem, TokenSettings};

/// A token bucket that all processes of a fleet share by leases, as `SharedTokens` of `stagger-redis`: every retry
/// takes tokens, every success puts tokens back.
///
/// Units: whole tokens.
///
/// ```
/// use core::time::Duration;
/// use stagger_lease::sim::LeasedTokens;
/// use stagger_sim::outage::ProcessGuards;
///
/// let tokens = LeasedTokens::builder().capacity(500).refill(50, Duration::from_secs(1)).build()?;
/// let process = ProcessGuards::none().shared(tokens);
/// # let _ = process;
/// # Ok::<(), stagger_lease::sim::LeaseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeasedTokens {
    pub(super) limits: Limits,
    pub(super) expected: Option<u32>,
}

/// Builds [`LeasedTokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct LeasedTokensBuilder {
    settings: TokenSettings,
    expected: Option<u32>,
}

/// Every problem in the settings of [`LeasedTokens`]. Displayed with a fix for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseError {
    problems: Vec<SettingsProblem>,
    has_no_processes: bool,
}

impl LeasedTokens {
    /// Creates a builder with the default settings.
    pub const fn builder() -> LeasedTokensBuilder {
        LeasedTokensBuilder { settings: TokenSettings::DEFAULT, expected: None }
    }
}

impl FleetBudget for LeasedTokens {
    fn start(&self, conditions: &FleetConditions) -> Box<dyn FleetRun> {
        Box::new(Fleet::new(*self, conditions))
    }
}

impl LeasedTokensBuilder {
    /// Sets the maximum number of tokens of the fleet, leases included. Default: 500. Range: 1 to 1,000,000,000.
    pub const fn capacity(mut self, tokens: u32) -> Self {
        self.settings.capacity = tokens as u64;
        self
    }

    /// Sets the number of tokens at the start. Default: the capacity.
    pub const fn initial(mut self, tokens: u32) -> Self {
        self.settings.initial = Some(tokens as u64);
        self
    }

    /// Sets the cost of a retry. Default: 5. Range: 1 to the capacity.
    pub const fn cost(mut self, tokens: u32) -> Self {
        self.settings.cost = tokens as u64;
        self
    }

    /// Sets what a success puts back. Default: 1. Range: 0 to the capacity.
    pub const fn reward(mut self, tokens: u32) -> Self {
        self.settings.reward = tokens as u64;
        self
    }

    /// Adds `tokens` for the fleet in each period `per`, evenly. Default: none. Range: at most 1,000,000,000 per
    /// second.
    pub const fn refill(mut self, tokens: u32, per: Duration) -> Self {
        self.settings.refill = (tokens as u64, per);
        self
    }

    /// Sets the number of processes that are expected to run: without the store, each uses its share of the budget.
    /// Default: the number that runs. Range: at least 1.
    pub const fn expected(mut self, processes: u32) -> Self {
        self.expected = Some(processes);
        self
    }

    /// Builds the budget.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn build(self) -> Result<LeasedTokens, LeaseError> {
        let Self { settings, expected } = self;
        let has_no_processes = expected == Some(0);
        match settings.limits() {
            Ok(limits) if !has_no_processes => Ok(LeasedTokens { limits, expected }),
            limits => Err(LeaseError { problems: limits.err().unwrap_or_default(), has_no_processes }),
        }
    }
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none =
            self.has_no_processes.then(|| "0 processes are expected: use the number that usually runs".to_owned());
        let problems: Vec<String> = self.problems.iter().map(ToString::to_string).chain(none).collect();
        f.write_str(&problems.join("; "))
    }
}

impl core::error::Error for LeaseError {}
