//! Options of calls that borrow nothing: everything comes from a retrier, and the guards from it or from one of its
//! targets.

use core::borrow::Borrow;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::Guard;
use stagger_core::{Guards, Instant, Policy};

use super::options::{Observed, Options};
use super::permits::{GuardSource, HeldPermits};
use crate::retrier::event::EventError;
use crate::retrier::handle::Retrier;
use crate::retrier::limits::IsLast;
use crate::retrier::shared::RetrierState;
use crate::retrier::target::CallTarget;
use crate::time::Clock;

/// A retrier as the only source of options, for calls that borrow nothing.
#[derive(Clone, Debug)]
pub(crate) struct RetrierOptions<R> {
    pub(crate) source: R,
    pub(crate) deadline: Option<Instant>,
    pub(crate) is_timed: bool,
}

impl<R: RetrierSource> RetrierOptions<R> {
    fn shared(&self) -> &RetrierState {
        self.source.shared()
    }
}

impl<R: RetrierSource> Options for RetrierOptions<R> {
    const PLAIN: bool = false;
    type GuardSource = R;
    type Permits<C: Clock + Clone> = HeldPermits<R, C>;

    fn policy(&self) -> &Policy {
        &self.shared().policy
    }

    fn guards(&self) -> Guards<'_, R::Guard> {
        self.source.guards()
    }

    fn guard_source(&self) -> R {
        self.source.clone()
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn timeout(&self, is_last: IsLast) -> Option<Duration> {
        self.shared().limits.timeout(is_last)
    }

    fn retrier(&self) -> Option<&RetrierState> {
        Some(self.shared())
    }

    fn is_timed(&self) -> bool {
        self.is_timed
    }
}

impl<E: EventError, R: RetrierSource> Observed<E> for RetrierOptions<R> {
    fn describe(error: &E) -> Option<&dyn EventError> {
        Some(error)
    }
}

/// What a call is made through: a retrier, which also grants the permits, or a retrier with the guards of a target.
pub(crate) trait RetrierSource: GuardSource + Clone {
    /// Returns the state of the retrier.
    fn shared(&self) -> &RetrierState;
}

impl GuardSource for Retrier {
    type Guard = Arc<dyn Guard>;

    fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        Self::shared(self).guards()
    }
}

impl RetrierSource for Retrier {
    fn shared(&self) -> &RetrierState {
        Self::shared(self)
    }
}

/// A retrier, and which of its guards a call uses: its own, or those of one of its targets.
#[derive(Clone, Debug)]
pub(crate) struct TargetedRetrier<R> {
    pub(crate) retrier: R,
    pub(crate) target: CallTarget,
}

impl<R: Borrow<Retrier>> GuardSource for TargetedRetrier<R> {
    type Guard = Arc<dyn Guard>;

    fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        let shared = self.retrier.borrow().shared();
        match &self.target {
            CallTarget::Retrier => shared.guards(),
            CallTarget::Late => Guards::of(&[]).nested(shared.nested),
            CallTarget::Named(target) | CallTarget::NamedLate(target) => {
                Guards::of(&target.guards).nested(shared.nested)
            }
        }
    }
}

impl<R: Borrow<Retrier> + Clone> RetrierSource for TargetedRetrier<R> {
    fn shared(&self) -> &RetrierState {
        self.retrier.borrow().shared()
    }
}
