use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use stagger_core::Budget;

/// One budget per key, such as the host that a call is made to, so that one failing host does not use up the retries of
/// the others.
///
/// The number of keys is bounded. If a new key exceeds it, the least recently used budget that is not in use elsewhere
/// is evicted; if all are in use, the new key shares one overflow budget with other such keys. Memory is therefore
/// bounded whatever the keys are, and an evicted key starts again with a full budget.
///
/// Choose a limit above the number of hosts in use at a time. Do not use keys that untrusted input can create, such as
/// request URLs: their total budget grows with their number. Use the few that you know.
///
/// Shared by reference. A lookup takes a shared lock, and for a new key an exclusive lock while all keys are scanned.
/// Code that makes many calls to one host should keep its `Arc`. The clock is not read.
///
/// ```
/// use stagger::budget::{Partitioned, Tokens};
/// use stagger::{Policy, Retrier};
/// use std::num::NonZeroUsize;
///
/// let hosts: Partitioned<String, Tokens> = Partitioned::new(NonZeroUsize::new(100).unwrap(), Tokens::new);
/// let api = Retrier::new(Policy::DEFAULT);
///
/// // For a single call:
/// let budget = hosts.of("a.example.com");
/// let answer = api.blocking_call(|_| Ok::<_, ()>("page")).budget(&*budget).run();
/// // For all calls to a host:
/// let b = api.clone().shared_budget(hosts.of("b.example.com"));
/// # let _ = (answer, b);
/// assert_eq!(hosts.len(), 2);
/// ```
pub struct Partitioned<K, B> {
    max_keys: NonZeroUsize,
    make: Box<dyn Fn() -> B + Send + Sync>,
    overflow: Arc<B>,
    budgets: RwLock<Budgets<K, B>>,
}

struct Budgets<K, B> {
    budgets: HashMap<K, Entry<B>>,
    /// Number of keys inserted so far: a logical time, which advances only when an eviction may become necessary.
    arrivals: u64,
}

struct Entry<B> {
    budget: Arc<B>,
    /// The logical time of the latest lookup.
    last_used: AtomicU64,
}

impl<K: Hash + Eq, B: Budget> Partitioned<K, B> {
    /// Creates budgets for at most `max_keys` keys, each created by `make`, and one overflow budget.
    pub fn new(max_keys: NonZeroUsize, make: impl Fn() -> B + Send + Sync + 'static) -> Self {
        let overflow = Arc::new(make());
        let budgets = RwLock::new(Budgets { budgets: HashMap::new(), arrivals: 0 });
        Self { max_keys, make: Box::new(make), overflow, budgets }
    }

    /// Returns the budget of this key, which is shared by all callers that use the key while it is stored.
    #[must_use]
    pub fn of<Q>(&self, key: &Q) -> Arc<B>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        // A panic in `make` leaves no partial state.
        if let Some(budget) = self.budgets.read().unwrap_or_else(PoisonError::into_inner).find(key) {
            return budget;
        }
        let mut budgets = self.budgets.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have inserted it in the meantime.
        if let Some(budget) = budgets.find(key) {
            return budget;
        }
        if budgets.budgets.len() >= self.max_keys.get() && !budgets.evict() {
            return Arc::clone(&self.overflow);
        }
        let budget = Arc::new((self.make)());
        budgets.arrivals += 1;
        let entry = Entry { budget: Arc::clone(&budget), last_used: AtomicU64::new(budgets.arrivals) };
        budgets.budgets.insert(key.to_owned(), entry);
        budget
    }

    /// Returns the overflow budget, shared by the keys for which there was no room.
    #[must_use]
    pub fn rest(&self) -> &B {
        &self.overflow
    }

    /// Returns the number of keys with their own budget.
    #[must_use]
    pub fn len(&self) -> usize {
        self.budgets.read().unwrap_or_else(PoisonError::into_inner).budgets.len()
    }

    /// Returns true if no key has its own budget.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `show` for every key with its own budget, in no particular order, for metrics. New keys wait until it
    /// returns.
    pub fn for_each(&self, mut show: impl FnMut(&K, &B)) {
        let budgets = self.budgets.read().unwrap_or_else(PoisonError::into_inner);
        budgets.budgets.iter().for_each(|(key, entry)| show(key, &entry.budget));
    }
}

impl<K: Hash + Eq, B> Budgets<K, B> {
    fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Arc<B>>
    where
        K: Borrow<Q>,
    {
        let entry = self.budgets.get(key)?;
        // Usually it is up to date already, and threads that only read do not contend.
        if entry.last_used.load(Ordering::Relaxed) != self.arrivals {
            entry.last_used.store(self.arrivals, Ordering::Relaxed);
        }
        Some(Arc::clone(&entry.budget))
    }

    /// Evicts the least recently used budget that is not in use elsewhere, and returns whether there was one. None can
    /// come into use meanwhile, because that needs the lock.
    fn evict(&mut self) -> bool {
        let idle = self.budgets.values().filter(|entry| Arc::strong_count(&entry.budget) == 1);
        let Some(oldest) = idle.map(|entry| entry.last_used.load(Ordering::Relaxed)).min() else { return false };
        let mut found = false;
        self.budgets.retain(|_, entry| {
            let is_evicted =
                !found && entry.last_used.load(Ordering::Relaxed) == oldest && Arc::strong_count(&entry.budget) == 1;
            found |= is_evicted;
            !is_evicted
        });
        true
    }
}

impl<K: fmt::Debug + Hash + Eq, B: Budget> fmt::Debug for Partitioned<K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|key, budget| {
            map.entry(key, budget);
        });
        map.finish()
    }
}
