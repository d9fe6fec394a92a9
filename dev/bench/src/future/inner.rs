//! The futures that are retried, and the way they are polled.

use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::operation::{Failure, SUCCESS, Script};
use crate::tokio_runtime::{self, repeat_on};

/// Makes an attempt in a future of two words. `E` is the error type that the crate expects.
pub(super) async fn small<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    script.step().map_err(E::from)
}

/// Makes an attempt in a future that holds a kibibyte across an await, like a connection with its buffers.
pub(super) async fn large<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    let buffer = black_box([0_u8; 1024]);
    core::future::ready(()).await;
    black_box(&buffer);
    script.step().map_err(E::from)
}

/// Expands to the bytes that the future of `retry` adds to [`small`] and to [`large`].
macro_rules! sizes_of {
    ($retry:expr) => {{
        use crate::future::inner::{large, small};
        use crate::operation::{Failure, SUCCESS};
        crate::sizes::Sizes::added(
            (&small::<Failure>(&SUCCESS), &$retry(|| small(&SUCCESS))),
            (&large::<Failure>(&SUCCESS), &$retry(|| large(&SUCCESS))),
        )
    }};
}
pub(super) use sizes_of;

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
pub(super) fn await_each<F: Future>(iterations: u64, operation: impl FnMut(&'static Script) -> F) {
    repeat_on(&tokio_runtime::real(), iterations, &SUCCESS, operation);
}

#[cold]
fn not_ready() -> ! {
    panic!("the future of this case is not ready at its first poll")
}
