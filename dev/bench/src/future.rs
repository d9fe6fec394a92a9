//! Section C: an async call that succeeds on the first attempt, and the size of its future.

#[cfg(feature = "peers")]
mod peers;

use core::future::Future;
use core::hint::black_box;
use core::iter::Take;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger::{Policy, policy};
use tokio::time::{Sleep, sleep};

use crate::case::{Case, Role, Table};
use crate::delay::FullJitter;
use crate::operation::{self, repeat_on};
use crate::operation::{Failure, SUCCESS, Script, repeat};

/// Returns the rows of the table.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The future itself, and the lower bound for the cost of retries around it.

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
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

// The cost that stagger adds to an async call that succeeds on the first attempt.

const ONE_LINER: &str = "retry(&POLICY, …), const policy";

const AT_RUN_TIME: &str = "retry(&policy, …), policy built at run time";

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Stagger, name, run);
    vec![
        row(Table::Future, ONE_LINER, constant).sized(|| sizes_of!(retry)),
        row(Table::Future, AT_RUN_TIME, at_run_time).sized(|| sizes_of!(retry)),
        row(Table::Awaited, ONE_LINER, |n| await_each(n, |script| retry(move || small(script)))),
        row(Table::Awaited, AT_RUN_TIME, |n| {
            await_each(n, |script| stagger::retry(black_box(&POLICY), move || small::<Failure>(script)));
        }),
    ]
}

fn retry<F, Fut>(attempt: F) -> impl Future<Output = Result<u64, Failure>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<u64, Failure>>,
{
    stagger::retry(&POLICY, attempt)
}

fn constant(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(retry(|| small(script))));
}

fn at_run_time(iterations: u64) {
    repeat(iterations, &SUCCESS, |script| poll_once(stagger::retry(black_box(&POLICY), || small::<Failure>(script))));
}

// The futures that are retried, and the way they are polled.

/// Makes an attempt in a future of two words. `E` is the error type that the crate expects.
async fn small<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    script.step().map_err(E::from)
}

/// Makes an attempt in a future that holds a kibibyte across an await, like a connection with its buffers.
async fn large<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    let buffer = black_box([0_u8; 1024]);
    core::future::ready(()).await;
    black_box(&buffer);
    script.step().map_err(E::from)
}

/// Expands to the bytes that the future of `retry` adds to [`small`] and to [`large`].
macro_rules! sizes_of {
    ($retry:expr) => {{
        use crate::operation::{Failure, SUCCESS};
        crate::measure::Sizes::added(
            (&small::<Failure>(&SUCCESS), &$retry(|| small(&SUCCESS))),
            (&large::<Failure>(&SUCCESS), &$retry(|| large(&SUCCESS))),
        )
    }};
}

use sizes_of;

/// Polls a future that is ready immediately.
///
/// # Panics
/// If it is not ready: the case would measure something else.
#[inline]
pub(crate) fn poll_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => not_ready(),
    }
}

/// Awaits a future of [`small`] `iterations` times in one task on tokio, as a loop of requests does.
fn await_each<F: Future>(iterations: u64, operation: impl FnMut(&'static Script) -> F) {
    repeat_on(&operation::real(), iterations, &SUCCESS, operation);
}

#[cold]
fn not_ready() -> ! {
    panic!("the future of this case is not ready at its first poll")
}
