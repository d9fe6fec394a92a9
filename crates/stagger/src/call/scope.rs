//! Nested retries: whether an outer call is already retrying.
//!
//! Three layers that make three attempts each send 27 requests to a server that is already in trouble. A call made
//! inside an attempt of another call therefore does not retry by default: it makes one attempt and leaves retrying to
//! the outermost layer. [`NestedRetries`](crate::NestedRetries) changes that:
//!
//! ```
//! use std::sync::Arc;
//! use stagger::budget::Tokens;
//! use stagger::{Guard, NestedRetries, Policy, Retrier, policy};
//!
//! const POLICY: Policy = policy!(constant(ms(1)).max_attempts(3));
//!
//! let budget: Arc<dyn Guard> = Arc::new(Tokens::builder().capacity(25).build()?);
//! let page = Retrier::new(POLICY).shared_guard(Arc::clone(&budget));
//! let part = Retrier::new(POLICY).shared_guard(budget).nested(NestedRetries::ShareBudget);
//!
//! let mut calls = 0;
//! let mut fetch = || page.blocking(|| part.blocking(|| { calls += 1; Err::<(), _>("down") }));
//! assert!(fetch().is_err());
//! // The budget grants five retries, whichever layer makes them.
//! assert_eq!(calls, 1 + 5);
//! # Ok::<(), stagger::budget::BudgetError>(())
//! ```
//!
//! Both calls must be given the budget. The inner one cannot find it in the scope: to pass a budget there would cost
//! every guarded call a reference count.
//!
//! The scope is a thread-local depth, set only while an attempt is polled. It therefore survives `.await` and moves
//! with its task between threads, but a spawned task or another thread starts outside of it. [`inherit`] carries the
//! scope into spawned work, and [`detached`] keeps it out of work that is shared between callers; [`inherit_fn`] and
//! [`detached_fn`] do the same for blocking code.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Returns the number of enclosing calls that are retrying the current work; 0 outside any attempt.
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

/// Carries the scope of the current attempt into a future that will be spawned, so that calls made in it do not retry
/// by default.
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

/// Runs a future as part of an attempt that is made elsewhere, such as in another process whose request says so. Calls
/// made in it do not retry by default.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// assert_eq!(stagger::scope::inside(async { stagger::scope::depth() }).await, 1);
/// # });
/// ```
pub fn inside<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, depth: depth().max(1) }
}

/// Runs a future outside the current scope, so that calls made in it retry on their own. For work that is shared
/// between callers, only some of which are inside an attempt, such as filling a cache.
pub fn detached<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, depth: 0 }
}

/// Carries the scope of the current attempt into blocking code on another thread: the returned closure runs `work` in
/// the scope that was current when it was created.
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

/// Runs blocking code outside the current scope, so that calls made in it retry on their own.
pub fn detached_fn<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    at_depth(0, work)
}

fn at_depth<T>(depth: u32, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _scope = ScopeGuard::set(depth);
        work()
    }
}

/// Runs a future as an attempt under this policy.
pub(crate) fn attempt<F: Future>(future: F, policy: &stagger_core::Policy) -> Scoped<F> {
    Scoped { future, depth: nested_depth(policy) }
}

/// Returns the depth inside an attempt under this policy. A policy that allows no retries adds none: otherwise it would
/// keep nested calls from retrying.
#[inline]
fn nested_depth(policy: &stagger_core::Policy) -> u32 {
    depth().wrapping_add(u32::from(policy.allows_retries()))
}

pin_project! {
    /// The future returned by [`inherit`], [`inside`] and [`detached`].
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
        let _scope = ScopeGuard::set(*this.depth);
        this.future.poll(cx)
    }
}

/// The scope of an attempt; dropping it restores the previous one.
#[derive(Debug)]
pub(crate) struct ScopeGuard {
    before: u32,
}

impl ScopeGuard {
    /// Enters the scope of an attempt under this policy.
    #[inline]
    pub(crate) fn enter(policy: &stagger_core::Policy) -> Self {
        Self::set(nested_depth(policy))
    }

    /// Returns whether there was an enclosing attempt when this scope was entered.
    #[inline]
    pub(crate) const fn is_nested(&self) -> bool {
        self.before > 0
    }

    #[inline]
    fn set(depth: u32) -> Self {
        Self { before: DEPTH.replace(depth) }
    }
}

impl Drop for ScopeGuard {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}
