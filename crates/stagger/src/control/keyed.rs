//! One guard per key, for a bounded number of keys.

use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroUsize;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

// Core's loom models compile this file.
#[cfg(not(loom))]
use {
    core::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    std::sync::RwLock,
};
#[cfg(loom)]
use {
    loom::sync::RwLock,
    loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use stagger_core::Instant;
use stagger_core::guard::{Guard, Now};

/// One guard per key, such as a budget or a breaker per host, so that one failing host does not stop the calls to the
/// others.
///
/// The number of keys is bounded: see [`max_keys`](Self::max_keys). What a new key may replace at the limit is chosen
/// so that made-up keys gain nothing:
///
/// - Only a guard that is not in use elsewhere is replaced, and that is [at rest](Guard::is_at_rest) or idle. A budget
///   that is spent and a breaker that is open, or has counted failures, are kept as long as their key is in use,
///   however many other keys come.
/// - Of these, the least recently used one is replaced, to the millisecond. At most 32 guards are examined per new key,
///   each time the next ones, so that the time for which other threads wait is bounded as well.
/// - If there is none, the new key shares one overflow guard with other such keys. It protects what they call together,
///   and can reject a key because of another; a guard of its own for each would be without a bound, and no guard at all
///   could be had by making up keys.
///
/// A guard is idle if its key has not been used for [`idle_after`](Self::idle_after). It is then replaced although it
/// is not at rest; otherwise keys that are never used again would take all places. A guard that holds calls, such as
/// a [quiet period](crate::guard::QuietPeriod) during its pause, is not replaced even then: its pause ends by itself.
///
/// Shared by reference. A lookup takes a shared lock, and for a new key an exclusive lock. No lock is held while a
/// guard is used. The clock is not read: pass the instant, by the clock of the calls.
///
/// ```
/// use stagger::budget::Tokens;
/// use stagger::guard::Keyed;
/// use stagger::time::{Clock as _, SystemClock};
/// use stagger::{Policy, Retrier};
///
/// let hosts: Keyed<String, Tokens> = Keyed::guards(Tokens::new);
/// let api = Retrier::new(Policy::DEFAULT);
///
/// // For a single call:
/// let budget = hosts.of("a.example.com", SystemClock.now());
/// let answer = api.blocking_call(|_| Ok::<_, ()>("page")).guard(&*budget).run();
/// // For all calls to a host:
/// let b = api.clone().shared_guard(hosts.of("b.example.com", SystemClock.now()));
/// # let _ = (answer, b);
/// assert_eq!(hosts.len(), 2);
/// ```
pub struct Keyed<K, G> {
    max_keys: NonZeroUsize,
    idle_after: Duration,
    make: Box<dyn Fn() -> G + Send + Sync>,
    is_at_rest: fn(&G, &dyn Now) -> bool,
    /// Whether a guard that has been idle for long must stay nevertheless.
    is_needed: fn(&G, &dyn Now) -> bool,
    overflow: Arc<G>,
    /// The number of entries of the table, written under its lock. Nothing else is read by it, so no order is needed.
    stored: AtomicUsize,
    table: RwLock<Table<K, G>>,
}

struct Table<K, G> {
    places: HashMap<K, usize>,
    entries: Vec<Entry<K, G>>,
    /// The place at which the next search for a guard to replace begins.
    next: usize,
}

struct Entry<K, G> {
    key: K,
    guard: Arc<G>,
    /// Time of the latest lookup, in nanoseconds.
    last_used: AtomicU64,
}

/// How many guards are examined for a new key at the limit.
const EXAMINED: usize = 32;
/// How exactly the time of the latest lookup is known, in nanoseconds.
const USE_RESOLUTION: u64 = 1_000_000;

impl<K, G: Guard> Keyed<K, G> {
    /// Creates an empty collection of guards, each created by `make`. Give each breaker its own seed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::guard::{Keyed, QuietPeriod};
    /// use stagger::time::{Clock as _, SystemClock};
    /// use stagger::{Policy, Retrier};
    ///
    /// let customers: Keyed<u64, QuietPeriod> = Keyed::guards(QuietPeriod::new);
    /// // One customer's quota is used up: only the calls of that customer wait.
    /// customers.of(&7, SystemClock.now()).pause(Duration::from_secs(60), &SystemClock.now());
    /// let api = Retrier::new(Policy::DEFAULT).shared_guard(customers.of(&8, SystemClock.now()));
    /// assert!(api.blocking(|| Ok::<_, ()>(())).is_ok());
    /// ```
    pub fn guards(make: impl Fn() -> G + Send + Sync + 'static) -> Self {
        Self::new(make, G::is_at_rest).keep_if(|guard, now| !guard.retry_in(now).is_zero())
    }
}

impl<K, G> Keyed<K, G> {
    /// The default limit on the number of keys.
    pub const MAX_KEYS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);
    /// The default time after which a guard is idle: ten minutes.
    pub const IDLE_AFTER: Duration = Duration::from_secs(600);

    /// Creates an empty collection of guards of any kind, each created by `make`. `is_at_rest` returns whether a guard
    /// has nothing to remember, so that a new one can replace it.
    pub fn new(make: impl Fn() -> G + Send + Sync + 'static, is_at_rest: fn(&G, &dyn Now) -> bool) -> Self {
        Self {
            max_keys: Self::MAX_KEYS,
            idle_after: Self::IDLE_AFTER,
            overflow: Arc::new(make()),
            make: Box::new(make),
            is_at_rest,
            is_needed: |_, _| false,
            stored: AtomicUsize::new(0),
            table: RwLock::new(Table { places: HashMap::new(), entries: Vec::new(), next: 0 }),
        }
    }

    /// Sets the limit on the number of keys. Choose it above the number of keys in use at a time. Default:
    /// [`MAX_KEYS`](Self::MAX_KEYS), 1,000.
    #[must_use]
    pub fn max_keys(self, max_keys: NonZeroUsize) -> Self {
        Self { max_keys, ..self }
    }

    /// Sets how long after its last use a guard may be replaced in any state. Default:
    /// [`IDLE_AFTER`](Self::IDLE_AFTER), ten minutes.
    #[must_use]
    pub fn idle_after(self, length: Duration) -> Self {
        Self { idle_after: length, ..self }
    }

    /// Sets which guards stay although they have been idle for long.
    pub(crate) fn keep_if(self, is_needed: fn(&G, &dyn Now) -> bool) -> Self {
        Self { is_needed, ..self }
    }

    /// Returns the overflow guard, shared by the keys for which there was no room.
    #[must_use]
    pub fn overflow(&self) -> &G {
        &self.overflow
    }

    /// Returns the number of keys with a guard of their own.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.load(Ordering::Relaxed)
    }

    /// Returns true if no key has a guard of its own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `show` for every key with a guard of its own, in no particular order, for metrics. New keys wait until it
    /// returns.
    pub fn for_each(&self, mut show: impl FnMut(&K, &G)) {
        let table = self.read();
        for entry in &table.entries {
            show(&entry.key, &entry.guard);
        }
    }

    // A panic in `make` leaves no partial state, so a poisoned lock is still valid. The type of a guard depends on
    // `loom`.
    fn read(&self) -> impl Deref<Target = Table<K, G>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> impl DerefMut<Target = Table<K, G>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, G> Keyed<K, G> {
    /// Returns the guard of this key, which is shared by all callers that use the key while it is stored. `now` is the
    /// time by the clock that the guards are used with.
    #[must_use]
    pub fn of<Q>(&self, key: &Q, now: Instant) -> Arc<G>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.own(key, now) {
            Some(guard) => guard,
            None => Arc::clone(&self.overflow),
        }
    }

    /// Returns the guard of this key, or `None` if there is no place for it.
    pub(crate) fn own<Q>(&self, key: &Q, now: Instant) -> Option<Arc<G>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(guard) = self.read().find(key, now) {
            return Some(guard);
        }
        let mut table = self.write();
        // Another thread may have inserted it in the meantime.
        if let Some(guard) = table.find(key, now) {
            return Some(guard);
        }
        let replaced = if table.entries.len() < self.max_keys.get() {
            None
        } else {
            Some(table.replaceable(&|guard, last_used| self.is_forgotten(guard, last_used, now))?)
        };
        let guard = Arc::new((self.make)());
        let entry = Entry { key: key.to_owned(), guard: Arc::clone(&guard), last_used: AtomicU64::new(now.as_nanos()) };
        table.insert(key.to_owned(), entry, replaced);
        self.stored.store(table.entries.len(), Ordering::Relaxed);
        Some(guard)
    }

    /// Returns whether a new guard can replace one that was last used at `last_used`.
    fn is_forgotten(&self, guard: &G, last_used: Instant, now: Instant) -> bool {
        let is_idle = now.saturating_since(last_used) >= self.idle_after;
        (self.is_at_rest)(guard, &now) || is_idle && !(self.is_needed)(guard, &now)
    }

    /// Returns the guard of this key, or the one that keys without a place share, if there is one of the two.
    pub(crate) fn find<Q>(&self, key: &Q, now: Instant) -> Option<Arc<G>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let table = self.read();
        let is_full = table.entries.len() >= self.max_keys.get();
        match table.find(key, now) {
            None if is_full => Some(Arc::clone(&self.overflow)),
            found => found,
        }
    }

    /// Removes guards that may be replaced, of the next [`EXAMINED`].
    pub(crate) fn sweep(&self, now: Instant) {
        let mut table = self.write();
        for _ in 0..table.entries.len().min(EXAMINED) {
            // The last entry takes the place of a removed one, and is examined next.
            let place = if table.next < table.entries.len() { table.next } else { 0 };
            let is_forgotten = |guard: &G, last_used| self.is_forgotten(guard, last_used, now);
            if table.last_use_if_replaceable(place, &is_forgotten).is_some() {
                table.remove(place);
                table.next = place;
            } else {
                table.next = place + 1;
            }
        }
        self.stored.store(table.entries.len(), Ordering::Relaxed);
    }
}

impl<K: Hash + Eq, G> Table<K, G> {
    fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: Instant) -> Option<Arc<G>>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.get(*self.places.get(key)?)?;
        let now = now.as_nanos();
        // Written once per millisecond, so that lookups on many threads do not disturb each other.
        if now.saturating_sub(entry.last_used.load(Ordering::Relaxed)) >= USE_RESOLUTION {
            entry.last_used.fetch_max(now, Ordering::Relaxed);
        }
        Some(Arc::clone(&entry.guard))
    }

    /// Returns the place of the least recently used guard that may be replaced, of the next ones. None of them can come
    /// into use meanwhile, because that needs the lock.
    fn replaceable(&mut self, is_forgotten: &dyn Fn(&G, Instant) -> bool) -> Option<usize> {
        let count = self.entries.len();
        let examined = count.min(EXAMINED);
        let places = (0..examined).map(|step| (self.next + step) % count.max(1));
        let last_use = |place| self.last_use_if_replaceable(place, is_forgotten);
        let candidates = places.filter_map(|place| Some((last_use(place)?, place)));
        let oldest = candidates.min().map(|(_, place)| place);
        self.next = (self.next + examined) % count.max(1);
        oldest
    }

    /// Returns the time of the latest lookup of the guard in this place if the guard may be replaced.
    fn last_use_if_replaceable(&self, place: usize, is_forgotten: &dyn Fn(&G, Instant) -> bool) -> Option<Instant> {
        let entry = self.entries.get(place)?;
        let last_used = Instant::from_nanos(entry.last_used.load(Ordering::Relaxed));
        let is_replaceable = Arc::strong_count(&entry.guard) == 1 && is_forgotten(&entry.guard, last_used);
        if is_replaceable { Some(last_used) } else { None }
    }

    /// Removes the entry in this place, which the last one takes.
    fn remove(&mut self, place: usize) {
        let removed = self.entries.swap_remove(place);
        self.places.remove(&removed.key);
        let Some(moved) = self.entries.get(place) else { return };
        if let Some(place_of_moved) = self.places.get_mut(&moved.key) {
            *place_of_moved = place;
        }
    }

    /// Stores an entry, in this place or in a new one.
    fn insert(&mut self, key: K, entry: Entry<K, G>, replaced: Option<usize>) {
        let place = match replaced {
            Some(place) if place < self.entries.len() => {
                let old = core::mem::replace(&mut self.entries[place], entry);
                self.places.remove(&old.key);
                place
            }
            _ => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.places.insert(key, place);
    }
}

impl<K: fmt::Debug, G: fmt::Debug> fmt::Debug for Keyed<K, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|key, guard| {
            map.entry(key, guard);
        });
        map.finish()
    }
}
