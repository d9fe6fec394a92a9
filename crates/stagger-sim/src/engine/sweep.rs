//! Many runs in parallel.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use stagger_core::Seed;

use super::progress::Progress;

/// A parameter sweep: runs every strategy with every seed, in parallel on all cores.
///
/// A run uses one core, and its figures do not depend on other runs. Results are in the order of strategies and seeds.
/// At most as many runs as threads are in memory at once.
///
/// ```
/// use stagger_core::{profile::Profile, Seed};
/// use stagger_sim::{Sweep, Progress, reconnect::ReconnectScenario};
///
/// let scenario = ReconnectScenario::builder(1_000).rate(100.0).build()?;
/// let strategies = ["web-socket", "socket.io"].map(|name| Profile::named(name).expect("a known profile").policy());
/// let seeds = [Seed::new(1), Seed::new(2)];
/// let figures = Sweep::new().run(&strategies, &seeds, &Progress::new(), |policy, seed, progress| {
///     scenario.run_with_progress(policy, seed, progress)
/// });
/// let attempts = |policy: usize| -> u64 { figures[policy].iter().flatten().map(|run| run.attempts).sum() };
/// assert!(attempts(0) < attempts(1));
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Sweep {
    threads: Option<NonZeroUsize>,
}

impl Sweep {
    /// Creates a sweep that uses all available cores.
    pub const fn new() -> Self {
        Self { threads: None }
    }

    /// Sets the number of threads. Default: the available parallelism.
    pub const fn threads(self, threads: NonZeroUsize) -> Self {
        Self { threads: Some(threads) }
    }

    /// Runs every strategy with every seed and waits for all runs. Returns a list for each strategy, with an entry for
    /// each seed: `None` for runs that were cancelled before they completed.
    pub fn run<S: Sync, T: Send>(
        self,
        strategies: &[S],
        seeds: &[Seed],
        progress: &Progress,
        run: impl Fn(&S, Seed, &Progress) -> Option<T> + Sync,
    ) -> Vec<Vec<Option<T>>> {
        let jobs = strategies.len() * seeds.len();
        progress.plan(jobs);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                if job >= jobs || progress.is_cancelled() {
                    return done;
                }
                let (strategy, seed) = (&strategies[job / seeds.len()], seeds[job % seeds.len()]);
                done.push((job, run(strategy, seed, progress)));
            }
        };
        let mut figures: Vec<_> = strategies.iter().map(|_| seeds.iter().map(|_| None).collect::<Vec<_>>()).collect();
        let mut keep = |done: Vec<(usize, Option<T>)>| {
            for (job, run) in done {
                figures[job / seeds.len()][job % seeds.len()] = run;
            }
        };
        let threads = match self.threads {
            Some(threads) => threads.get(),
            None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        };
        // The calling thread is one of the threads.
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(jobs)).map(|_| scope.spawn(work)).collect();
            keep(work());
            for other in others {
                match other.join() {
                    Ok(done) => keep(done),
                    // The caller of the sweep sees the panic of a run, as if it had called the run itself.
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        figures
    }
}
