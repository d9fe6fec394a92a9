//! A port of the Go package `github.com/cenkalti/backoff/v4`, as of v4.3.0: the same parts, defaults and order of
//! operations, and the same delays to the nanosecond.
//!
//! If you only need its delays, use [`stagger::profile::CENKALTI`], a policy like any other. This crate is for code
//! that must behave like the package: code that has its own [`BackOff`], composes them, reads the elapsed time, or
//! injects clock and timer. It has no budgets, breakers or server hints.
//!
//! # Side by side
//!
//! ```go
//! operation := func() (string, error) { return get(url) }
//!
//! b := backoff.WithContext(backoff.WithMaxRetries(backoff.NewExponentialBackOff(), 5), ctx)
//! body, err := backoff.RetryNotifyWithData(operation, b, func(err error, d time.Duration) {
//!     log.Printf("%v: again in %v", err, d)
//! })
//! ```
//!
//! ```
//! use stagger_cenkalti::{self as backoff, ExponentialBackOff, with_max_retries};
//!
//! # use core::future::pending;
//! # fn get(_: &str) -> impl Future<Output = Result<String, std::io::Error>> { core::future::ready(Ok("body".into())) }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let (url, ctx) = ("", pending::<()>());
//! let operation = async || get(url).await;
//!
//! let b = with_max_retries(ExponentialBackOff::new(), 5);
//! let body = backoff::retry(operation, b)
//!     .notify(|error, delay| eprintln!("{error}: again in {delay:?}"))
//!     .cancelled_by(ctx)
//!     .await?;
//! # assert_eq!(body, "body"); Ok::<(), backoff::Error<std::io::Error>>(()) }).unwrap();
//! ```
//!
//! The parts, each below the line of Go that it replaces:
//!
//! ```
//! use std::time::Duration;
//! use stagger_cenkalti::*;
//! use stagger::testing::VirtualClock;
//!
//! # let (second, clock) = (Duration::from_secs(1), VirtualClock::new());
//! # fn operation() -> Result<u32, std::io::Error> { Ok(42) }
//! // backoff.NewExponentialBackOff(
//! //     backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(10*time.Second),
//! //     backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.1),
//! //     backoff.WithMaxElapsedTime(0), backoff.WithClockProvider(clock))
//! let mut b = ExponentialBackOff::options()
//!     .initial_interval(second)
//!     .max_interval(10 * second)
//!     .multiplier(2.0)
//!     .randomization_factor(0.1)
//!     .max_elapsed_time(None)
//!     .clock(clock.clone())
//!     .build()?;
//!
//! // if d := b.NextBackOff(); d != backoff.Stop { time.Sleep(d) }
//! if let Some(d) = b.next_backoff() {
//!     clock.advance(d);
//! }
//! // b.GetElapsedTime(); b.Reset()
//! assert!(b.elapsed() >= 9 * second / 10);
//! b.reset();
//!
//! // backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 3)
//! let three = with_max_retries(ConstantBackOff::new(second), 3);
//!
//! // backoff.RetryNotifyWithTimerAndData(operation, b, notify, timer)
//! let notify = |error: &std::io::Error, d| eprintln!("{error}: again in {d:?}");
//! let answer = blocking::retry_notify_with_timer(operation, three.clone(), notify, clock.clone()).run()?;
//! # assert_eq!(answer, 42);
//!
//! // ticker := backoff.NewTickerWithTimer(b, timer); defer ticker.Stop()
//! // for range ticker.C { … }
//! let mut ticks = 0;
//! for _ in blocking::new_ticker_with_timer(three, clock.clone()) {
//!     ticks += 1;
//! }
//! assert_eq!(ticks, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | Go | Rust |
//! |---|---|
//! | `BackOff`, `NextBackOff()`, `Reset()` | [`BackOff`], [`next_backoff`], [`reset`] |
//! | `Stop` | `None` |
//! | `NewExponentialBackOff()` | [`ExponentialBackOff::new`] |
//! | `NewExponentialBackOff(WithInitialInterval(d))` | `ExponentialBackOff::options().initial_interval(d).build()?` |
//! | `WithInitialInterval`, `DefaultInitialInterval` | [`initial_interval`], [`DEFAULT_INITIAL_INTERVAL`] |
//! | `WithRandomizationFactor`, … | [`randomization_factor`], [`DEFAULT_RANDOMIZATION_FACTOR`] |
//! | `WithMultiplier`, … | [`multiplier`](ExponentialBackOffOptions::multiplier), [`DEFAULT_MULTIPLIER`] |
//! | `WithMaxInterval`, … | [`max_interval`], [`DEFAULT_MAX_INTERVAL`] |
//! | `WithMaxElapsedTime`, … | [`max_elapsed_time`], [`DEFAULT_MAX_ELAPSED_TIME`] |
//! | `WithClockProvider`, `Clock`, `SystemClock` | [`options.clock(c)`], and both from [`stagger::time`] |
//! | `rand.Float64()` inside | [`random`], [`seed`] |
//! | `GetElapsedTime()` | [`elapsed`]; [`elapsed_time`] while a ticker owns the backoff |
//! | `NewConstantBackOff(d)` | [`ConstantBackOff::new`] |
//! | `ZeroBackOff`, `StopBackOff` | [`ZeroBackOff`], [`StopBackOff`] |
//! | `WithMaxRetries(b, n)` | [`with_max_retries`]`(b, n)`; 0 means one call |
//! | `WithContext(b, ctx)` | [`cancelled_by`](Call::cancelled_by) on the call or the ticker |
//! | `Permanent(err)`, `PermanentError` of boxed errors | [`permanent`]`(err)`, [`PermanentError`] |
//! | `Permanent(err)` of typed errors | [`Marked::permanent`] and [`with_marks`] |
//! | `Operation`, `OperationWithData` | `FnMut() -> impl Future<Output = Result<T, E>>`, or `FnMut() -> Result<T, E>` |
//! | `Retry`, `RetryWithData` | [`retry`](fn@retry), [`blocking::retry`] |
//! | `Notify` | `FnMut(&E, Duration)` |
//! | `RetryNotify`, `RetryNotifyWithData` | [`retry_notify`], [`blocking::retry_notify`], or [`notify`] |
//! | `RetryNotifyWithTimer`, `…AndData` | [`retry_notify_with_timer`], that of [`blocking`], or [`timer`] |
//! | `Timer` | [`Sleep`](stagger::time::Sleep), [`BlockingSleep`](stagger::time::BlockingSleep) |
//! | `NewTicker(b)`, `NewTickerWithTimer(b, t)` | [`new_ticker`], [`new_ticker_with_timer`], those of [`blocking`] |
//! | `Ticker`, `range ticker.C`, `ticker.Stop()` | [`Ticker`], `while let Some(at) = ticker.tick().await`, [`stop`] |
//!
//! [`Error<E>`]: Error
//! [`Marked::permanent`]: stagger::Marked::permanent
//! [`Cancelled`]: stagger::StopReason::Cancelled
//! [`build`]: ExponentialBackOffOptions::build
//! [`elapsed_time`]: ExponentialBackOff::elapsed_time
//! [`elapsed`]: ExponentialBackOff::elapsed
//! [`initial_interval`]: ExponentialBackOffOptions::initial_interval
//! [`max_elapsed_time`]: ExponentialBackOffOptions::max_elapsed_time
//! [`max_interval`]: ExponentialBackOffOptions::max_interval
//! [`next_backoff`]: BackOff::next_backoff
//! [`notify`]: Call::notify
//! [`options.clock(c)`]: ExponentialBackOffOptions::clock
//! [`random`]: ExponentialBackOffOptions::random
//! [`randomization_factor`]: ExponentialBackOffOptions::randomization_factor
//! [`reset`]: BackOff::reset
//! [`scope`]: stagger::scope
//! [`seed`]: ExponentialBackOffOptions::seed
//! [`stop`]: Ticker::stop
//! [`timer`]: Call::timer
//! [`with_marks`]: Call::with_marks
//!
//! # What is the same, although it may be surprising
//!
//! - The first interval is not capped, and a wait may exceed the longest interval, by the randomization factor.
//! - The limit on elapsed time, 15 min by default, counts from the start of the call, includes the duration of the
//!   operation and the coming wait, and ends the retries if the sum *exceeds* it.
//! - The interval has advanced when the limit ends the retries.
//! - The operation is called at least once, and its success is returned even if the call was cancelled in the meantime.
//!   An attempt is not interrupted: cancelling the call ends its sleep.
//! - A wait is never shorter than drawn. It is not fitted to the ticks of a coarse timer, as those of stagger's
//!   calls are: tokio's timer rounds it up to its next millisecond.
//! - A backoff is reset by every call and every ticker that it is passed to. Once exhausted, [`with_max_retries`] no
//!   longer calls the inner backoff.
//!
//! # What differs, and why
//!
//! | Go | here | because |
//! |---|---|---|
//! | `Stop` is a wait of −1 ns | `None` | a number that is not a duration may be slept on: a busy loop |
//! | the field `Stop`, `WithRetryStopDuration` | omitted | the loops compare with the constant only |
//! | `MaxElapsedTime` 0 means no limit | `None` | a computed limit that happens to be 0 would retry forever |
//! | factor above 1, multiplier below 1, NaN | [`build`] returns an error | negative waits, and a busy loop |
//! | sums and products may overflow | they saturate at 292 years | a wait that overflows is negative |
//! | no method works before `Reset` | ready to use when created | there is nothing to reset yet |
//! | one `BackOff` may be shared by mistake | `&mut` | data races on its fields |
//! | functions with and without data | one, with a value | `()` is a value; an error can have its own data |
//! | `nil` for no notify, no timer | omit the step | Rust has no `nil` |
//! | `Permanent(nil)` is `nil` | omitted | there is no error to mark |
//! | a mark deeper in the chain: the inner error | the whole chain | the context added on the way would be lost |
//! | when cancelled, `ctx.Err()` | [`Error<E>`] with [`Cancelled`] and the last error | it says why it took long |
//! | `WithContext` around or in other wrappers; a custom one hides it | a step of the call | an uninterruptible sleep |
//! | cancelled, and the wait is zero: either may win | cancellation wins | deterministic |
//! | a ticker's delay runs from the previous tick, one tick is buffered | from the request | two slow calls in a row |
//! | a ticker that is not stopped leaks a goroutine | dropping it is enough | nothing runs in the background |
//! | retries inside retries multiply | the inner call does not retry: see [`scope`] | 3 × 3 × 3 calls |
//!
//! A panic of the operation propagates. Dropping the future ends the call.
//!
//! # Dependencies before 1.0
//!
//! The public interface contains types and traits of these. Each new minor version of one is incompatible with the one
//! before, so a release of this crate that moves to it is incompatible, too: it raises the minor version, from 1.0 on
//! the major version.
//!
//! | dependency | feature | in the interface |
//! |---|---|---|
//! | futures-core 0.3 | `stream` | `Stream` is implemented |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
pub mod blocking;
mod call;
mod exponential;
mod operation;
mod options;
mod output;
mod retry;
mod ticker;

pub use backoff::{BackOff, ConstantBackOff, MaxRetries, StopBackOff, ZeroBackOff, with_max_retries};
pub use call::Call;
pub use exponential::{ElapsedTime, ExponentialBackOff};
pub use operation::{PermanentError, permanent};
pub use options::{
    DEFAULT_INITIAL_INTERVAL, DEFAULT_MAX_ELAPSED_TIME, DEFAULT_MAX_INTERVAL, DEFAULT_MULTIPLIER,
    DEFAULT_RANDOMIZATION_FACTOR, ExponentialBackOffOptions, OptionsError, Random, Seeded,
};
pub use output::Error;
pub use retry::{RetryFuture, retry_notify_with_timer};
#[cfg(feature = "tokio")]
pub use retry::{retry, retry_notify};
#[cfg(feature = "tokio")]
pub use ticker::new_ticker;
pub use ticker::{Ticker, new_ticker_with_timer};
