//! What the handles of a fleet and its background task share: the guards that are in use, and the clock.
//!
//! ```text
//! Fleet ──────────────────────► FleetHandle ──► Registry ◄── Task, which ends when the last
//! SharedTokens, … ─► GuardHandle ─────┘            │          FleetHandle is dropped
//!                        │                         ▼
//!                        └──────► a Target ◄── Entry, forgotten when its lease was handed back
//! ```

use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use stagger::control::RetryControls;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::controls::ObeyedControls;
use crate::error::SettingsProblem;

/// The most guards of one fleet: all are renewed by one call of the store.
const MOST_GUARDS: usize = 64;

/// What the handles and the task share of one guard. The registry knows no kind of guard: it finds them by their type.
pub(crate) trait Target: Any + Send + Sync {
    fn name(&self) -> &str;

    /// Returns whether both have the same settings.
    fn is_like(&self, other: &Self) -> bool;
}

/// One guard in the registry.
struct Entry {
    guard: Arc<dyn Any + Send + Sync>,
    /// The [`GuardHandle`] of the guard.
    handle: Weak<dyn Any + Send + Sync>,
}

impl Entry {
    /// Returns the guard if it is of this kind.
    fn guard<T: Target>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.guard).downcast().ok()
    }

    /// Returns the handle of the guard if it is of this kind, and in use.
    fn handle<T: Target>(&self) -> Option<Arc<GuardHandle<T>>> {
        if self.guard.is::<T>() { self.handle.upgrade()?.downcast().ok() } else { None }
    }

    fn is_used(&self) -> bool {
        self.handle.strong_count() > 0
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("is_used", &self.is_used()).finish_non_exhaustive()
    }
}

/// What the handles and the task share.
#[derive(Debug)]
pub(crate) struct Registry {
    guards: Mutex<Vec<Entry>>,
    /// Wakes the task.
    pub(crate) wake: Notify,
    is_closed: AtomicBool,
    /// Closed by the end of the task.
    has_ended: Semaphore,
    pub(crate) counts: Counts,
    controls: Mutex<Option<Arc<ObeyedControls>>>,
    begun: Instant,
    /// The expected number of processes.
    expected: u64,
    /// What to add to the process's clock for the time of the store, in microseconds. Before the first reply, that of
    /// the machine.
    offset: AtomicI64,
}

/// What the task has counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) is_leased: AtomicBool,
    pub(crate) processes: AtomicU64,
    pub(crate) reports: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) losses: AtomicU64,
}

/// Keeps the task running. The last one to be dropped ends it.
#[derive(Debug)]
pub(crate) struct FleetHandle(pub(crate) Arc<Registry>);

impl Drop for FleetHandle {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }
}

/// Keeps a guard in use. When the last one is dropped, the lease of the guard is handed back.
#[derive(Debug)]
pub(crate) struct GuardHandle<T> {
    pub(crate) target: Arc<T>,
    pub(crate) fleet: Arc<FleetHandle>,
}

impl<T> Drop for GuardHandle<T> {
    fn drop(&mut self) {
        self.fleet.0.wake.notify_one();
    }
}

impl Registry {
    /// Creates a registry for the expected number of processes.
    pub(crate) fn new(expected: u64) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            guards: Mutex::default(),
            wake: Notify::new(),
            is_closed: AtomicBool::new(false),
            has_ended: Semaphore::new(0),
            counts: Counts::default(),
            controls: Mutex::default(),
            begun: Instant::now(),
            expected,
            offset: AtomicI64::new(i64::try_from(wall.as_micros()).unwrap_or(0)),
        }
    }

    /// Returns a handle of the guard of this kind with the name of this one, which is added if it is new.
    pub(crate) fn hold<T: Target>(fleet: &Arc<FleetHandle>, guard: T) -> Result<Arc<GuardHandle<T>>, SettingsProblem> {
        let registry = &fleet.0;
        let mut guards = registry.lock();
        for entry in guards.iter() {
            if let Some(handle) = entry.handle::<T>()
                && handle.target.name() == guard.name()
            {
                return if handle.target.is_like(&guard) { Ok(handle) } else { Err(SettingsProblem::OtherLimits) };
            }
        }
        if guards.len() >= MOST_GUARDS {
            return Err(SettingsProblem::TooManyTargets);
        }
        let target = Arc::new(guard);
        let handle = Arc::new(GuardHandle { target: Arc::clone(&target), fleet: Arc::clone(fleet) });
        let weak = Arc::downgrade(&handle);
        guards.push(Entry { guard: target, handle: weak });
        drop(guards);
        registry.wake.notify_one();
        Ok(handle)
    }

    /// Calls `f` with each guard of this kind, and whether it is still in use.
    pub(crate) fn for_each<T: Target>(&self, mut f: impl FnMut(&Arc<T>, bool)) {
        for entry in self.lock().iter() {
            if let Some(guard) = entry.guard() {
                f(&guard, entry.is_used());
            }
        }
    }

    /// Returns the guards of this kind that are in use, and forgets the others.
    pub(crate) fn used<T: Target>(&self) -> Vec<Arc<T>> {
        let mut guards = self.lock();
        guards.retain(|entry| entry.is_used() || !entry.guard.is::<T>());
        guards.iter().filter_map(Entry::guard).collect()
    }

    /// Forgets a guard whose lease was handed back.
    pub(crate) fn forget<T: Target>(&self, guard: &Arc<T>) {
        // Addresses alone are compared: the entry has no type.
        self.lock().retain(|entry| Arc::as_ptr(&entry.guard).cast::<()>() != Arc::as_ptr(guard).cast());
    }

    /// Sets the controls that obey those of the fleet.
    pub(crate) fn obey(&self, controls: RetryControls) {
        let obeyed = Some(Arc::new(ObeyedControls::new(controls)));
        *self.controls.lock().unwrap_or_else(PoisonError::into_inner) = obeyed;
        self.wake.notify_one();
    }

    /// Returns the controls that obey those of the fleet.
    pub(crate) fn controls(&self) -> Option<Arc<ObeyedControls>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether nobody uses the fleet any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Notes that the task has ended.
    pub(crate) fn end(&self) {
        self.has_ended.close();
    }

    /// Waits for the end of the task.
    pub(crate) async fn ended(&self) {
        // There is no permit: it returns when the semaphore is closed.
        let _ = self.has_ended.acquire().await;
    }

    /// Returns the microseconds since the fleet was built.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the nanoseconds since the fleet was built.
    pub(crate) fn now_nanos(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the expected number of processes.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    /// Returns what to add to the process's clock for the time of the store, in nanoseconds.
    pub(crate) fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed).saturating_mul(1_000)
    }

    /// Notes that the store's clock was at `store` when that of the process was at `now`, in microseconds.
    pub(crate) fn note_store_time(&self, store: u64, now: u64) {
        let offset = i128::from(store) - i128::from(now);
        self.offset.store(i64::try_from(offset).unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the instant so many microseconds after the fleet was built.
    pub(crate) fn instant(&self, micros: u64) -> Instant {
        self.begun + Duration::from_micros(micros)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
