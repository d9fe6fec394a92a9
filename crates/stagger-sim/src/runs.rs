use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use stagger_core::Seed;

use crate::Watch;

/// Runs side by side: every strategy with every seed, on all cores.
///
/// A run uses one core, and its figures do not depend on what runs beside it; they come in the order in which strategies and
/// seeds were given. As many runs as threads are in memory at once.
///
/// ```
/// use stagger_core::{profile::Profile, Seed};
/// use stagger_sim::{Runs, Watch, reconnect::Scenario};
///
/// let scenario = Scenario::builder(1_000).rate(100.0).build()?;
/// let strategies = ["web-socket", "socket.io"].map(|name| Profile::named(name).expect("it is one of them").policy());
/// let figures = Runs::new().each(&strategies, &[Seed::new(1), Seed::new(2)], &Watch::new(), |policy, seed, watch| {
///     scenario.watched(policy, seed, watch)
/// });
/// let attempts = |policy: usize| -> u64 { figures[policy].iter().flatten().map(|run| run.attempts).sum() };
/// assert!(attempts(0) < attempts(1));
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Runs {
    threads: Option<NonZeroUsize>,
}

impl Runs {
    /// On as many threads as the machine runs at once.
    pub const fn new() -> Self {
        Self { threads: None }
    }

    /// On so many threads.
    pub const fn threads(self, threads: NonZeroUsize) -> Self {
        Self { threads: Some(threads) }
    }

    /// Runs every strategy with every seed, and waits for all of them. The answer has a list for each strategy, with an
    /// entry for each seed: `None` for those that did not come to their end before the watch was cancelled.
    pub fn each<S: Sync, T: Send>(
        self,
        strategies: &[S],
        seeds: &[Seed],
        watch: &Watch,
        run: impl Fn(&S, Seed, &Watch) -> Option<T> + Sync,
    ) -> Vec<Vec<Option<T>>> {
        let jobs = strategies.len() * seeds.len();
        watch.plan(jobs);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                if job >= jobs || watch.is_cancelled() {
                    return done;
                }
                let (strategy, seed) = (&strategies[job / seeds.len()], seeds[job % seeds.len()]);
                done.push((job, run(strategy, seed, watch)));
            }
        };
        let mut figures: Vec<_> = strategies.iter().map(|_| seeds.iter().map(|_| None).collect::<Vec<_>>()).collect();
        let mut keep = |done: Vec<(usize, Option<T>)>| {
            for (job, run) in done {
                figures[job / seeds.len()][job % seeds.len()] = run;
            }
        };
        let threads = self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        // This thread is one of them.
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(jobs)).map(|_| scope.spawn(work)).collect();
            keep(work());
            for other in others {
                // A panic in a run is not lost: the scope passes it on.
                keep(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
        figures
    }
}
