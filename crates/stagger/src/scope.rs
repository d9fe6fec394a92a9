//! Whether an outer layer is already retrying.
//!
//! Three layers that try three times each make 27 calls of a server that is already in trouble. So a call that is
//! made inside an attempt of another call stands down by default: it makes one attempt and leaves the retrying to the
//! layer outside. [`NestedRetries`](crate::NestedRetries) chooses otherwise:
//!
//! ```
//! use std::sync::Arc;
//! use stagger::budget::Tokens;
//! use stagger::{Budget, NestedRetries, Policy, Retrier, policy};
//!
//! const POLICY: Policy = policy!(constant(ms(1)).max_attempts(3));
//!
//! let budget: Arc<dyn Budget> = Arc::new(Tokens::builder().capacity(25).build()?);
//! let page = Retrier::new(POLICY).shared_budget(Arc::clone(&budget));
//! let part = Retrier::new(POLICY).shared_budget(budget).nested(NestedRetries::ShareBudget);
//!
//! let mut calls = 0;
//! let mut fetch = || page.blocking(|| part.blocking(|| { calls += 1; Err::<(), _>("down") }));
//! assert!(fetch().is_err());
//! // The budget grants five retries, whichever layer makes them.
//! assert_eq!(calls, 1 + 5);
//! # Ok::<(), stagger::budget::BudgetError>(())
//! ```
//!
//! The mark is a thread-local count, set only while an attempt is being polled, so it crosses awaits and moves with a
//! task from thread to thread; a task that is spawned, or another thread, does not have it. [`inherit`] carries it
//! there, and [`detached`] keeps it out of work that is shared between callers; [`inherit_fn`] and [`detached_fn`] do
//! the same for blocking code.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// How many layers outside are retrying the work at hand; 0 outside any attempt.
///
/// ```
/// assert_eq!(stagger::scope::depth(), 0);
/// let inside = stagger::blocking::retry(&stagger::Policy::DEFAULT, || Ok::<_, ()>(stagger::scope::depth())).run();
/// assert_eq!(inside, Ok(1));
/// ```
#[inline]
#[must_use]
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Carries the mark of the present attempt into a future that is spawned, so that calls made in it stand down.
///
/// ```
/// use stagger::{Policy, scope};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let depths = stagger::retry(&Policy::DEFAULT, async || {
///     let spawned = tokio::spawn(async { scope::depth() }).await.unwrap();
///     let inherited = tokio::spawn(scope::inherit(async { scope::depth() })).await.unwrap();
///     let detached = scope::detached(async { scope::depth() }).await;
///     Ok::<_, ()>((spawned, inherited, detached))
/// });
/// assert_eq!(depths.await, Ok((0, 1, 0)));
/// # });
/// ```
pub fn inherit<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, depth: depth() }
}

/// Marks a future as a part of an attempt that somebody makes elsewhere: in another process, whose request says so. Calls
/// made in it stand down.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert_eq!(stagger::scope::inside(async { stagger::scope::depth() }).await, 1);
/// # });
/// ```
pub fn inside<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, depth: depth().max(1) }
}

/// Keeps the mark out of a future: calls made in it retry by themselves. For work that is shared between callers, of
/// whom only some are inside an attempt, like a cache fill that many wait for.
pub fn detached<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, depth: 0 }
}

/// Carries the mark of the present attempt into blocking code on another thread: what it gives does `work` under the mark
/// that was there when it was made.
///
/// ```
/// use stagger::{Policy, blocking, scope};
///
/// let depths = blocking::retry(&Policy::DEFAULT, || {
///     let spawned = std::thread::spawn(scope::depth).join().unwrap();
///     let inherited = std::thread::spawn(scope::inherit_fn(scope::depth)).join().unwrap();
///     let detached = scope::detached_fn(scope::depth)();
///     Ok::<_, ()>((spawned, inherited, detached))
/// });
/// assert_eq!(depths.run(), Ok((0, 1, 0)));
/// ```
pub fn inherit_fn<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    at_depth(depth(), work)
}

/// Keeps the mark out of blocking code: calls made in it retry by themselves.
pub fn detached_fn<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    at_depth(0, work)
}

fn at_depth<T>(depth: u32, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _mark = Mark::set(depth);
        work()
    }
}

/// Marks a future as an attempt under this policy.
pub(crate) fn attempt<F: Future>(future: F, policy: &crate::Policy) -> Scoped<F> {
    Scoped { future, depth: deeper(policy) }
}

/// One layer deeper, if the layer at hand can retry at all: one that is turned off must not make the others stand down.
#[inline]
fn deeper(policy: &crate::Policy) -> u32 {
    depth().wrapping_add(u32::from(policy.allows_retries()))
}

pin_project! {
    /// The future that [`inherit`] and [`detached`] give.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Scoped<F> {
        #[pin]
        future: F,
        depth: u32,
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _mark = Mark::set(*this.depth);
        this.future.poll(cx)
    }
}

/// The mark of an attempt, while it lives.
#[derive(Debug)]
pub(crate) struct Mark {
    before: u32,
}

impl Mark {
    /// Marks what follows as an attempt under this policy.
    #[inline]
    pub(crate) fn deeper(policy: &crate::Policy) -> Self {
        Self::set(deeper(policy))
    }

    /// Whether there is a layer outside of the one that set this mark.
    #[inline]
    pub(crate) const fn is_inside(&self) -> bool {
        self.before > 0
    }

    #[inline]
    fn set(depth: u32) -> Self {
        Self { before: DEPTH.replace(depth) }
    }
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}
