//! What a request may cost. The page is for one person; these bounds hold for whatever else reaches the port.

use core::time::Duration;
use std::sync::Arc;

use axum::http::StatusCode;
use stagger_sim::{CancelToken, Progress};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reply::Failure;

/// Maximum number of bytes of the first line and the headers of a request.
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Maximum number of bytes of a request's body.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024;

/// Time within which the headers of a request must arrive, also on a connection that is kept alive.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Time within which the body of a request must arrive.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Time within which a part of a response must have been received.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a connection is closed, however slowly it goes on. Browsers open another.
pub(super) const MAX_CONNECTION_TIME: Duration = Duration::from_secs(300);

/// Maximum number of open connections. Further ones wait in the queue of the kernel.
pub(super) const MAX_CONNECTIONS: usize = 64;

/// Maximum number of simulations that run at a time, and of forecasts. Each simulation uses all cores.
const MAX_RUNNING: usize = 2;

/// Maximum number of simulations that run, wait, or whose results are being sent, and of forecasts.
const MAX_JOBS: usize = 16;

/// Maximum duration of a simulation.
const MAX_RUN_TIME: Duration = Duration::from_secs(20);

/// Time within which the results of a simulation must have been received.
pub(super) const MAX_SEND_TIME: Duration = Duration::from_secs(60);

/// Maximum number of clients of a race; the program simulates 67 million.
pub(super) const MAX_CLIENTS: u64 = 1_000_000;

/// Maximum number of clients that are shown one by one.
pub(super) const MAX_DOTS: u64 = 10_000;

/// Maximum number of attempts that are shown of all clients of a policy, on average over seeds.
pub(super) const MAX_SHOWN_ATTEMPTS: u64 = 300_000;

/// Maximum number of bins of a curve. Longer ones are added up.
pub(super) const MAX_BINS: usize = 6_000;

/// What is computed for a request, which a message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Simulation,
    /// What `plan` and `check` say about a policy.
    Forecast,
    /// What `advise` looks for.
    Search,
}

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Simulation => "simulation",
            Self::Forecast => "forecast",
            Self::Search => "search",
        }
    }

    /// Says what to do if it takes too long here.
    const fn way_out(self) -> &'static str {
        match self {
            Self::Simulation => "lower clients, or use stagger simulate",
            Self::Forecast => "use stagger plan and stagger check, which have no time limit",
            Self::Search => "use stagger advise, which has no time limit",
        }
    }
}

/// Simulations or forecasts, of which a bounded number runs at a time.
#[derive(Debug)]
pub(super) struct Jobs {
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// The place of a job among all that run, wait, or are being answered.
#[derive(Debug)]
pub(super) struct Place {
    work: Work,
    _admitted: OwnedSemaphorePermit,
    running: Arc<Semaphore>,
}

/// Cancels a simulation when it is dropped, as it is when the page goes.
#[derive(Debug)]
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { admitted: Arc::new(Semaphore::new(MAX_JOBS)), running: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    /// Returns a place, unless all are taken.
    pub(super) fn admit(&self, work: Work) -> Result<Place, Failure> {
        match Arc::clone(&self.admitted).try_acquire_owned() {
            Ok(admitted) => Ok(Place { work, _admitted: admitted, running: Arc::clone(&self.running) }),
            Err(_) => Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format_args!(
                    "{MAX_JOBS} requests are waiting before this {}; close other tabs of this page, or try again",
                    work.name()
                ),
            )),
        }
    }
}

impl Place {
    /// Runs `work` on a thread of its own when its turn comes. It is cancelled if the returned future is dropped, or if
    /// it takes too long; `work` must then return soon.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        progress: Arc<Progress>,
        work: impl FnOnce(&Progress) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let cancel = CancelOnDrop(progress.cancel_token().clone());
        let turn = Arc::clone(&self.running).acquire_owned().await;
        let running = tokio::task::spawn_blocking(move || {
            // Held until the work has ended, however soon its caller is gone.
            let _turn = turn;
            work(&progress)
        });
        let done = tokio::time::timeout(MAX_RUN_TIME, running).await;
        drop(cancel);
        match done {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => {
                let text = format_args!("the {} failed; please report it", self.work.name());
                Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text))
            }
            Err(_) => Err(Failure::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format_args!(
                    "the {} takes longer than {} s; {}",
                    self.work.name(),
                    MAX_RUN_TIME.as_secs(),
                    self.work.way_out()
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Waits until it is cancelled.
    fn endless(progress: &Progress) {
        while !progress.cancel_token().is_cancelled() {
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn places_are_bounded_and_free_again_when_dropped() {
        let jobs = Jobs::new();
        let places: Vec<_> = (0..MAX_JOBS).map(|_| jobs.admit(Work::Simulation).unwrap()).collect();
        assert!(jobs.admit(Work::Simulation).is_err_and(|failure| failure.text().contains("16 requests are waiting")));
        drop(places);
        assert!(jobs.admit(Work::Simulation).is_ok());
    }

    #[tokio::test]
    async fn a_dropped_run_is_cancelled_and_frees_its_turn() {
        let jobs = Jobs::new();
        for _ in 0..2 * MAX_RUNNING {
            let place = jobs.admit(Work::Simulation).unwrap();
            let progress = Arc::new(Progress::new());
            tokio::select! {
                biased;
                _ = place.run(Arc::clone(&progress), endless) => panic!("the run has no end"),
                () = core::future::ready(()) => {}
            }
            assert!(progress.cancel_token().is_cancelled());
        }
        let all = jobs.running.acquire_many(MAX_RUNNING as u32).await;
        assert!(all.is_ok(), "every run has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_takes_too_long_is_cancelled_with_what_is_true_for_it() {
        for (work, want) in [
            (Work::Simulation, "the simulation takes longer than 20 s; lower clients"),
            (Work::Forecast, "the forecast takes longer than 20 s; use stagger plan and stagger check"),
            (Work::Search, "the search takes longer than 20 s; use stagger advise"),
        ] {
            is_cancelled(work, want).await;
        }
    }

    async fn is_cancelled(work: Work, want: &str) {
        let jobs = Jobs::new();
        let place = jobs.admit(work).unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&ended);
        let work = move |progress: &Progress| {
            endless(progress);
            counter.fetch_add(1, Ordering::SeqCst);
        };
        let run = place.run(Arc::new(Progress::new()), work);
        let (done, ()) = tokio::join!(biased; run, tokio::time::advance(MAX_RUN_TIME));
        let failure = done.unwrap_err();
        assert!(failure.text().starts_with(want), "{failure:?}");
        let all = jobs.running.acquire_many(MAX_RUNNING as u32).await;
        assert_eq!((all.is_ok(), ended.load(Ordering::SeqCst)), (true, 1));
    }
}
