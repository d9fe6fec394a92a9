//! Runs in a command that another `stagger run` retries.
//!
//! Layers that each retry multiply: three with three attempts each make 27 calls. A run therefore makes a single attempt if
//! another one retries it, and passes the exit code on to that one.

use core::num::NonZeroU32;
use std::env;

use rustix::process::{Pid, getpid};
use stagger_core::Policy;

use super::args::{NestedMode, RunArgs};
use super::process_tree::is_ancestor;

/// Names the run that retries the command, by its PID.
pub(super) const RETRIED_BY: &str = "STAGGER_RETRIED_BY";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nesting {
    /// The run that retries instead of this one.
    pub(super) stands_down_for: Option<Pid>,
    /// The run that retries the command, as it is told.
    pub(super) retried_by: Option<Pid>,
}

impl Nesting {
    pub(super) fn detect(args: &RunArgs, policy: &Policy) -> Self {
        // The variable may have outlived its run, for example in a terminal multiplexer that an attempt has started.
        let named = env::var(RETRIED_BY).ok().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        let outer = named.filter(|pid| is_ancestor(*pid).unwrap_or(true));
        Self::new(args, policy, outer, getpid())
    }

    fn new(args: &RunArgs, policy: &Policy, outer: Option<Pid>, this: Pid) -> Self {
        // Its attempts are not repetitions of one that failed: it keeps a service up, or waits for an outcome.
        let supervises = policy.max_attempts().is_none() || policy.stable_after().is_some();
        let polls = args.until.is_some() || args.consecutive > NonZeroU32::MIN;
        if supervises || polls {
            return Self::default();
        }
        match outer {
            outer if policy.max_attempts() == Some(NonZeroU32::MIN) => {
                Self { stands_down_for: None, retried_by: outer }
            }
            Some(outer) if args.nested == NestedMode::StandDown => {
                Self { stands_down_for: Some(outer), retried_by: Some(outer) }
            }
            _ => Self { stands_down_for: None, retried_by: Some(this) },
        }
    }
}
