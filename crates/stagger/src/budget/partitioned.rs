use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::Budget;

/// One budget for each key, such as the host that a call is made to, so that one host in trouble does not use up the
/// retries of the others.
///
/// There are at most so many keys. When another one comes, the budget makes room that was asked for longest ago among
/// those that nobody holds; if all are held, the newcomer shares one budget with all that came like it. So memory is
/// bounded, whatever the keys; and a key that was dropped begins anew, with a full budget.
///
/// Choose more keys than there are hosts at a time. Keys that anybody outside can make up, such as the URL of a
/// request, make the budget as large as they are many: use the few that you know.
///
/// Shared by reference. Asking for a budget takes a shared lock and, for a key that is new, an exclusive one, in which
/// all keys are looked at. Whoever makes many calls to one host keeps its `Arc`. The clock is not read.
///
/// ```
/// use stagger::budget::{Partitioned, Tokens};
/// use stagger::{Policy, Retrier};
/// use std::num::NonZeroUsize;
///
/// let hosts: Partitioned<String, Tokens> = Partitioned::new(NonZeroUsize::new(100).unwrap(), Tokens::new);
/// let api = Retrier::new(Policy::DEFAULT);
///
/// // For one call …
/// let budget = hosts.of("a.example.com");
/// let answer = api.blocking_call(|_| Ok::<_, ()>("page")).budget(&*budget).run();
/// // … and for all calls to a host.
/// let b = api.clone().shared_budget(hosts.of("b.example.com"));
/// # let _ = (answer, b);
/// assert_eq!(hosts.len(), 2);
/// ```
pub struct Partitioned<K, B> {
    most: NonZeroUsize,
    make: Box<dyn Fn() -> B + Send + Sync>,
    rest: Arc<B>,
    kept: RwLock<Kept<K, B>>,
}

struct Kept<K, B> {
    budgets: HashMap<K, Entry<B>>,
    /// How many keys have come so far: a time of its own, which passes only when somebody may have to make room.
    arrivals: u64,
}

struct Entry<B> {
    budget: Arc<B>,
    /// The number of arrivals when it was last asked for.
    used: AtomicU64,
}

impl<K: Hash + Eq, B: Budget> Partitioned<K, B> {
    /// A budget for each of at most so many keys, made by `make`, and one for those beyond.
    pub fn new(most: NonZeroUsize, make: impl Fn() -> B + Send + Sync + 'static) -> Self {
        let rest = Arc::new(make());
        let kept = RwLock::new(Kept { budgets: HashMap::new(), arrivals: 0 });
        Self { most, make: Box::new(make), rest, kept }
    }

    /// The budget for this key, and for everyone who asks with it while it is kept.
    #[must_use]
    pub fn of<Q>(&self, key: &Q) -> Arc<B>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        // A panic in `make` leaves nothing half done behind.
        if let Some(budget) = self.kept.read().unwrap_or_else(PoisonError::into_inner).find(key) {
            return budget;
        }
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have come first.
        if let Some(budget) = kept.find(key) {
            return budget;
        }
        if kept.budgets.len() >= self.most.get() && !kept.make_room() {
            return Arc::clone(&self.rest);
        }
        let budget = Arc::new((self.make)());
        kept.arrivals += 1;
        let entry = Entry { budget: Arc::clone(&budget), used: AtomicU64::new(kept.arrivals) };
        kept.budgets.insert(key.to_owned(), entry);
        budget
    }

    /// The budget that the keys share for which there was no room.
    #[must_use]
    pub fn rest(&self) -> &B {
        &self.rest
    }

    /// How many keys have a budget of their own.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).budgets.len()
    }

    /// Whether no key has a budget of its own.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows every key that has a budget of its own, in no order, for metrics. Nobody gets a new one meanwhile.
    pub fn for_each(&self, mut show: impl FnMut(&K, &B)) {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.budgets.iter().for_each(|(key, entry)| show(key, &entry.budget));
    }
}

impl<K: Hash + Eq, B> Kept<K, B> {
    fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Arc<B>>
    where
        K: Borrow<Q>,
    {
        let entry = self.budgets.get(key)?;
        // Mostly it is there already, and threads that only read do not disturb each other.
        if entry.used.load(Ordering::Relaxed) != self.arrivals {
            entry.used.store(self.arrivals, Ordering::Relaxed);
        }
        Some(Arc::clone(&entry.budget))
    }

    /// Drops what was asked for longest ago and nobody holds; says whether there was any. Nobody can take hold of one
    /// meanwhile: that needs the lock.
    fn make_room(&mut self) -> bool {
        let idle = self.budgets.values().filter(|entry| Arc::strong_count(&entry.budget) == 1);
        let Some(oldest) = idle.map(|entry| entry.used.load(Ordering::Relaxed)).min() else { return false };
        let mut found = false;
        self.budgets.retain(|_, entry| {
            let goes = !found && entry.used.load(Ordering::Relaxed) == oldest && Arc::strong_count(&entry.budget) == 1;
            found |= goes;
            !goes
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
