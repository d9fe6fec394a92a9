//! An edge: who calls whom, and how.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::{Policy, Seed};

use crate::outage::ProcessGuards;

/// An edge: the calls that one service, or the users, make to another.
///
/// The calls retry as the policy and the guards of [`stagger_core`] decide, under a virtual clock. A refusal or an
/// error is an answer; an answer counts if it is back within the time limit, inclusive.
#[derive(Clone)]
#[must_use]
pub struct Edge {
    pub(super) from: Option<String>,
    pub(super) to: String,
    pub(super) calls: u32,
    pub(super) order: CallOrder,
    pub(super) one_way: [Duration; 2],
    pub(super) timeout: Duration,
    pub(super) policy: Policy,
    pub(super) guards: Option<GuardFactory>,
    pub(super) nested: NestedCalls,
    pub(super) cache: Option<Cache>,
    pub(super) hands_on_deadline: bool,
    pub(super) refusals: Refusals,
}

type GuardFactory = Arc<dyn Fn(Seed) -> ProcessGuards + Send + Sync>;

/// The order in which an attempt makes its calls over one edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOrder {
    /// One after the other; after a failed call, further calls are not made. The default.
    #[default]
    Sequence,
    /// All at once. The first failed call answers the caller, and the others go on.
    Parallel,
}

/// Whether a call retries although it is made for an attempt of another call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NestedCalls {
    /// It retries as if there were no outer call: attempts multiply. The default.
    #[default]
    Multiply,
    /// It makes one attempt.
    StandDown,
    /// It makes one attempt if the attempt it is made for, or one of those above it, is a retry.
    FirstOnly,
}

/// What a refusal means to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusals {
    /// A failure that another attempt may mend. The default.
    #[default]
    Retryable,
    /// A [permanent](stagger_core::Outcome::Permanent) failure: the call ends.
    Permanent,
}

/// A cache before an edge, which begins warm and which only a [cold start](super::Trigger::cold) empties.
///
/// A call asks for one of the hot keys with probability `hot`, uniformly. If the key is in the cache, the call succeeds
/// at once and nothing is sent. An answer puts its hot key into the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Cache {
    pub(super) hot: f64,
    pub(super) keys: u32,
    pub(super) fills_late: bool,
}

impl Cache {
    /// Creates a cache that a share `hot` of the calls, from 0 to 1, asks for one of `keys` hot keys, from 1 to
    /// 100,000,000. Only answers in time fill it.
    pub const fn new(hot: f64, keys: u32) -> Self {
        Self { hot, keys, fills_late: false }
    }

    /// Lets answers fill the cache after the caller has given up, too.
    pub const fn fill_from_late_answers(mut self) -> Self {
        self.fills_late = true;
        self
    }
}

impl Edge {
    /// Creates the edge from the users to a service. One call for each request, a time limit of a second, a one-way
    /// delay of 5 ms, and no retries.
    pub fn from_users(to: impl Into<String>) -> Self {
        Self::of(None, to.into())
    }

    /// Creates an edge between two services, with the same settings.
    pub fn between(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::of(Some(from.into()), to.into())
    }

    const fn of(from: Option<String>, to: String) -> Self {
        Self {
            from,
            to,
            calls: 1,
            order: CallOrder::Sequence,
            one_way: [Duration::from_millis(5); 2],
            timeout: Duration::from_secs(1),
            policy: ONE_ATTEMPT,
            guards: None,
            nested: NestedCalls::Multiply,
            cache: None,
            hands_on_deadline: true,
            refusals: Refusals::Retryable,
        }
    }

    /// Sets the number of calls that an attempt makes. Range: 1 to 1,000; the users make one.
    pub const fn calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the order of the calls. Default: [`CallOrder::Sequence`].
    pub const fn order(mut self, order: CallOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the one-way delay of messages, in both directions. Range: 0 to an hour.
    pub const fn one_way(self, delay: Duration) -> Self {
        self.one_way_between(delay, delay)
    }

    /// Sets a one-way delay that is uniform between two bounds, for each message.
    pub const fn one_way_between(mut self, least: Duration, most: Duration) -> Self {
        self.one_way = [least, most];
        self
    }

    /// Sets the time limit of an attempt. Range: 1 ns to an hour.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the policy of the calls. Default: one attempt.
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the guards that each process has for its calls over this edge, created with a seed of their own. Default:
    /// none.
    pub fn guards(mut self, guards: impl Fn(Seed) -> ProcessGuards + Send + Sync + 'static) -> Self {
        self.guards = Some(Arc::new(guards));
        self
    }

    /// Sets whether a call retries inside an attempt of another call. Without effect for the users.
    pub const fn nested(mut self, nested: NestedCalls) -> Self {
        self.nested = nested;
        self
    }

    /// Sets a cache before the edge, shared by all processes. Default: none.
    pub const fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets what it means if the service refuses an attempt. Default: [`Refusals::Retryable`].
    pub const fn refusals(mut self, refusals: Refusals) -> Self {
        self.refusals = refusals;
        self
    }

    /// Gives an attempt over this edge only its own time limit as its deadline. Default: the deadline is handed on.
    pub const fn keep_deadline(mut self) -> Self {
        self.hands_on_deadline = false;
        self
    }

    /// Returns the name of the service that the edge leads to.
    #[must_use]
    pub fn to(&self) -> &str {
        &self.to
    }
}

const ONE_ATTEMPT: Policy = stagger_core::policy!(zero().max_attempts(1));

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("calls", &self.calls)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
