use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use stagger::control::RetryControls;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::controls::ObeyedControls;
use crate::error::SettingsProblem;
use crate::guards::admission::AdmissionTarget;
use crate::guards::breaker::BreakerTarget;
use crate::guards::quiet::QuietTarget;
use crate::leases::{TokenTarget, WindowTarget};

/// The most guards of one fleet: all are renewed by one call of the store.
const MOST_GUARDS: usize = 64;

/// What handles and the task share of one guard.
pub(crate) trait Guard: Sized {
    fn name(&self) -> &str;

    /// Returns whether both have the same settings.
    fn is_like(&self, other: &Self) -> bool;

    /// Returns the guards of this kind.
    fn of(guards: &Guards) -> &Vec<Registered<Self>>;

    /// Returns the guards of this kind.
    fn of_mut(guards: &mut Guards) -> &mut Vec<Registered<Self>>;
}

/// The guards of a fleet, by kind.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    pub(crate) tokens: Vec<Registered<TokenTarget>>,
    pub(crate) windows: Vec<Registered<WindowTarget>>,
    pub(crate) quiet: Vec<Registered<QuietTarget>>,
    pub(crate) breakers: Vec<Registered<BreakerTarget>>,
    pub(crate) admissions: Vec<Registered<AdmissionTarget>>,
}

#[derive(Debug)]
pub(crate) struct Registered<T> {
    guard: Arc<T>,
    held: Weak<Held<T>>,
}

/// What the handles and the task share.
#[derive(Debug)]
pub(crate) struct Registry {
    guards: Mutex<Guards>,
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
pub(crate) struct Alive(pub(crate) Arc<Registry>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }
}

/// A guard that is in use. When the last one is dropped, its lease is handed back.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) target: Arc<T>,
    pub(crate) alive: Arc<Alive>,
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.alive.0.wake.notify_one();
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

    /// Returns the guard with the name of this one, which is added if it is new.
    pub(crate) fn hold<T: Guard>(alive: &Arc<Alive>, guard: T) -> Result<Arc<Held<T>>, SettingsProblem> {
        let registry = &alive.0;
        let mut guards = registry.lock();
        let budgets = guards.tokens.len() + guards.windows.len();
        let count = budgets + guards.quiet.len() + guards.breakers.len() + guards.admissions.len();
        let list = T::of_mut(&mut guards);
        for registered in list.iter().filter(|registered| registered.guard.name() == guard.name()) {
            let Some(held) = registered.held.upgrade() else { continue };
            return if held.target.is_like(&guard) { Ok(held) } else { Err(SettingsProblem::OtherLimits) };
        }
        if count >= MOST_GUARDS {
            return Err(SettingsProblem::TooManyTargets);
        }
        let held = Arc::new(Held { target: Arc::new(guard), alive: Arc::clone(alive) });
        list.push(Registered { guard: Arc::clone(&held.target), held: Arc::downgrade(&held) });
        drop(guards);
        registry.wake.notify_one();
        Ok(held)
    }

    /// Calls `f` with each guard of this kind, and whether it is still in use.
    pub(crate) fn for_each<T: Guard>(&self, mut f: impl FnMut(&Arc<T>, bool)) {
        for Registered { guard, held } in T::of(&self.lock()) {
            f(guard, held.strong_count() > 0);
        }
    }

    /// Returns the guards of this kind that are in use, and forgets the others.
    pub(crate) fn used<T: Guard>(&self) -> Vec<Arc<T>> {
        let mut guards = self.lock();
        let list = T::of_mut(&mut guards);
        list.retain(|registered| registered.held.strong_count() > 0);
        list.iter().map(|registered| Arc::clone(&registered.guard)).collect()
    }

    /// Forgets a guard whose lease was handed back.
    pub(crate) fn forget<T: Guard>(&self, guard: &Arc<T>) {
        T::of_mut(&mut self.lock()).retain(|registered| !Arc::ptr_eq(&registered.guard, guard));
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

    fn lock(&self) -> MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
