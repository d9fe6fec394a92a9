//! The future itself, and the lower bound for the cost of retries around it.

use core::future::Future;
use core::iter::Take;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::inner::{await_each, poll_once, sizes_of, small};
use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::operation::{Failure, SUCCESS, repeat};

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::work(Table::Future, Role::Bare, "inner future alone", bare),
        Case::work(Table::Future, Role::Floor, "state machine, sleep boxed on first use", state_machine)
            .sized(|| sizes_of!(Floor::new)),
        Case::work(Table::Future, Role::Floor, "async block, tokio sleep inline", block)
            .sized(|| sizes_of!(inline_sleep)),
        Case::work(Table::Awaited, Role::Bare, "inner future alone", |n| await_each(n, small::<Failure>)),
        Case::work(Table::Awaited, Role::Floor, "state machine, sleep boxed on first use", |n| {
            await_each(n, |script| Floor::new(move || small(script)));
        }),
        Case::work(Table::Awaited, Role::Floor, "async block, tokio sleep inline", |n| {
            await_each(n, |script| inline_sleep(move || small(script)));
        }),
    ]
}

fn bare(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(small::<Failure>(script)));
}

fn state_machine(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(Floor::new(|| small(script))));
}

fn block(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(inline_sleep(|| small(script))));
}

pin_project! {
    /// A retry future that holds one word for its retry state until the first failure.
    struct Floor<F, Fut> {
        attempt: F,
        #[pin]
        running: Option<Fut>,
        failed: Option<Pin<Box<Failed>>>,
    }
}

pin_project! {
    /// The retry state from the first failure on.
    struct Failed {
        delays: Take<FullJitter>,
        #[pin]
        sleep: Sleep,
    }
}

impl<F, Fut> Floor<F, Fut>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    const fn new(attempt: F) -> Self {
        Self { attempt, running: None, failed: None }
    }
}

impl<F, Fut> Future for Floor<F, Fut>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    type Output = Result<u64, Failure>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            if let Some(running) = this.running.as_mut().as_pin_mut() {
                let result = ready!(running.poll(context));
                if result.is_ok() || !start_sleep(this.failed) {
                    return Poll::Ready(result);
                }
                this.running.set(None);
            }
            if let Some(failed) = this.failed {
                ready!(failed.as_mut().project().sleep.poll(context));
            }
            this.running.set(Some((this.attempt)()));
        }
    }
}

/// Starts the sleep before the next retry; returns whether there is one.
#[cold]
fn start_sleep(failed: &mut Option<Pin<Box<Failed>>>) -> bool {
    let mut fresh = delays();
    let next = match failed {
        Some(failed) => failed.as_mut().project().delays.next(),
        None => fresh.next(),
    };
    let Some(delay) = next else {
        return false;
    };
    let sleep = sleep(delay);
    match failed {
        Some(failed) => failed.as_mut().project().sleep.set(sleep),
        None => {
            *failed = Some(Box::pin(Failed { delays: fresh, sleep }));
        }
    }
    true
}

/// Retries in an async block as a user would write it inline.
async fn inline_sleep<F, Fut>(mut attempt: F) -> Result<u64, Failure>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    let mut delays = delays();
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(failure) => match delays.next() {
                None => return Err(failure),
                Some(delay) => sleep(delay).await,
            },
        }
    }
}

fn delays() -> Take<FullJitter> {
    FullJitter::new(7, Duration::from_millis(100), Duration::from_secs(30)).take(3)
}
