use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stagger::breaker::{BreakerState, TransitionCause};

/// What one process says about its breaker, and what the fleet says: what its calls and the background task share.
#[derive(Debug, Default)]
pub(crate) struct Opinion {
    /// Whether the breaker is open for reasons of its own.
    is_open: AtomicBool,
    /// What the last report said.
    reported: AtomicBool,
    /// How many processes have theirs open, by the last reply.
    open: AtomicU64,
    is_advised: AtomicBool,
}

/// The store's reply about one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Advice {
    /// How many processes have their breaker open.
    pub(crate) open: u64,
    /// Whether these are enough to advise the others.
    pub(crate) is_enough: bool,
}

/// What has changed for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Advised,
    NotAdvised,
}

impl Opinion {
    /// Notes the state of the breaker, and returns whether to report it early.
    ///
    /// A breaker that opened on advice says nothing about the server that others do not know, and one that an operator
    /// holds open says nothing at all: if they counted, advice could keep itself alive. A probe that fails is evidence
    /// of its own.
    pub(crate) fn note(&self, state: BreakerState, cause: TransitionCause) -> bool {
        let is_open = match (state, cause) {
            (BreakerState::Open, TransitionCause::Advised | TransitionCause::Command) => false,
            (BreakerState::Open, _) => true,
            (BreakerState::HalfOpen, _) => return self.has_news(),
            _ => false,
        };
        self.is_open.store(is_open, Ordering::Relaxed);
        self.has_news()
    }

    /// Returns whether the next report says something else than the last one.
    pub(crate) fn has_news(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) != self.reported.load(Ordering::Relaxed)
    }

    /// Returns what to report: whether the breaker is open for reasons of its own.
    pub(crate) fn claim(&self) -> bool {
        let is_open = self.is_open.load(Ordering::Relaxed);
        self.reported.store(is_open, Ordering::Relaxed);
        is_open
    }

    /// Takes over what the store replied, and returns what has changed.
    pub(crate) fn on_reply(&self, advice: Advice) -> Option<Changed> {
        self.open.store(advice.open, Ordering::Relaxed);
        let was = self.is_advised.swap(advice.is_enough, Ordering::Relaxed);
        match (was, advice.is_enough) {
            (false, true) => Some(Changed::Advised),
            (true, false) => Some(Changed::NotAdvised),
            _ => None,
        }
    }

    /// Forgets the advice, because the store is lost.
    pub(crate) fn on_loss(&self) -> Option<Changed> {
        self.on_reply(Advice { open: 0, is_enough: false })
    }

    /// Returns how many processes have their breaker open, by the last reply.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns whether this process is advised that the server is down.
    pub(crate) fn is_advised(&self) -> bool {
        self.is_advised.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_that_is_open_for_reasons_of_its_own_is_reported_until_it_closes() {
        use BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
        use TransitionCause::{Advised, Command, Consecutive, OpenTime, Probes};
        let opinion = Opinion::default();
        for (state, cause, is_news, want) in [
            (Closed, Command, false, false),
            (Open, Advised, false, false),
            (HalfOpen, OpenTime, false, false),
            // The probe has failed.
            (Open, Probes, true, true),
            (HalfOpen, OpenTime, false, true),
            (Closed, Probes, true, false),
            (Open, Consecutive, true, true),
            (Open, Consecutive, false, true),
            (ForcedOpen, Command, true, false),
        ] {
            assert_eq!(opinion.note(state, cause), is_news, "{state:?} {cause:?}");
            assert_eq!(opinion.claim(), want, "{state:?} {cause:?}");
            assert!(!opinion.has_news());
        }
    }

    #[test]
    fn advice_begins_and_ends_once_and_is_lost_with_the_store() {
        let opinion = Opinion::default();
        let enough = Advice { open: 2, is_enough: true };
        assert_eq!([opinion.on_reply(enough), opinion.on_reply(enough)], [Some(Changed::Advised), None]);
        assert_eq!((opinion.open(), opinion.is_advised()), (2, true));
        assert_eq!([opinion.on_loss(), opinion.on_loss()], [Some(Changed::NotAdvised), None]);
        assert_eq!((opinion.open(), opinion.is_advised()), (0, false));
    }
}
