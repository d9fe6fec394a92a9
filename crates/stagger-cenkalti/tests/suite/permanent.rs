//! Permanent errors: they are not retried, and the call returns them.

use core::error::Error as StdError;
use core::fmt;
use core::future::ready;

use futures_lite::future::block_on;
use stagger::Marked;
use stagger_cenkalti::{self as backoff, PermanentError, ZeroBackOff, permanent, with_max_retries};

/// Stands for `io.EOF`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Eof;

/// Stands for `fmt.Errorf("wrapped: %w", err)`.
#[derive(Clone, Debug, PartialEq)]
struct Wrapped<E>(E);

impl fmt::Display for Eof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EOF")
    }
}

impl StdError for Eof {}

impl<E> fmt::Display for Wrapped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapped")
    }
}

impl<E: StdError + 'static> StdError for Wrapped<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

type Boxed = Box<dyn StdError + Send + Sync>;

fn calls_and_error<E: 'static>(failing: impl Fn() -> E) -> (u32, E) {
    let mut calls = 0;
    let operation = || {
        calls += 1;
        Err::<(), _>(failing())
    };
    let error = backoff::blocking::retry(operation, with_max_retries(ZeroBackOff, 4)).run().unwrap_err();
    (calls, error)
}

#[test]
fn ck_35_a_permanent_error_anywhere_in_the_chain_stops() {
    assert_eq!(backoff::blocking::retry(|| Ok::<_, Boxed>(1), ZeroBackOff).run().unwrap(), 1);
    assert_eq!(calls_and_error(|| Boxed::from(Eof)).0, 5);
    assert_eq!(calls_and_error(|| Boxed::from(permanent(Eof))).0, 1);
    assert_eq!(calls_and_error(|| Boxed::from(Wrapped(permanent(Eof)))).0, 1);
    assert_eq!(calls_and_error(|| Boxed::from(Wrapped(Wrapped(permanent(Eof))))).0, 1);
    assert_eq!(calls_and_error(|| Boxed::from(Wrapped(Eof))).0, 5);

    assert_eq!(calls_and_error(|| Box::<dyn StdError>::from(Wrapped(permanent(Eof)))).0, 1);
    assert_eq!(calls_and_error(|| std::io::Error::other(Wrapped(permanent(Eof)))).0, 1);
    assert_eq!(calls_and_error(|| std::io::Error::other(Wrapped(Eof))).0, 5);
    assert_eq!(calls_and_error(|| std::io::Error::from(std::io::ErrorKind::ConnectionReset)).0, 5);
    assert_eq!(calls_and_error(|| permanent(Eof)).0, 1);
}

#[test]
fn ck_35_the_error_of_the_last_call_is_kept() {
    let operation = |call| match call {
        1 => Err(Marked::from(-1)),
        2 => Err(Marked::permanent(3)),
        _ => Ok(4),
    };
    let mut calls = 0;
    let mut next = || {
        calls += 1;
        operation(calls)
    };
    assert_eq!(backoff::blocking::retry(&mut next, ZeroBackOff).with_marks().run(), Err(3));
    assert_eq!(block_on(backoff::retry(|| ready(next()), ZeroBackOff).with_marks().into_future()), Ok(4));
}

#[test]
fn ck_37_an_outermost_mark_is_removed() {
    let (_, error) = calls_and_error(|| Boxed::from(permanent(Eof)));
    assert_eq!(error.downcast_ref(), Some(&Eof));
    let (_, error) = calls_and_error(|| Box::<dyn StdError>::from(permanent(Eof)));
    assert_eq!(error.downcast_ref(), Some(&Eof));
    let error = backoff::blocking::retry(|| Err::<(), _>(Marked::permanent(Eof)), ZeroBackOff).with_marks().run();
    assert_eq!(error, Err(Eof));
}

/// In the row, only the inner error is returned and the context of the wrappers is lost. Here the chain is kept. To get
/// the inner error, unwrap it in the operation.
#[test]
fn ck_37_wrappers_of_a_permanent_error_are_kept() {
    let (_, error) = calls_and_error(|| Boxed::from(Wrapped(permanent(Eof))));
    assert_eq!(error.to_string(), "wrapped");
    let mark = PermanentError::find(&*error).unwrap();
    assert_eq!(mark.source().and_then(|source| source.downcast_ref()), Some(&Eof));

    let wraps = || Err::<(), _>(Wrapped(Marked::permanent(Eof)));
    let unwraps = || wraps().map_err(|Wrapped(marked)| marked);
    assert_eq!(backoff::blocking::retry(unwraps, ZeroBackOff).with_marks().run(), Err(Eof));
}

#[test]
fn a_permanent_error_displays_as_its_inner_error() {
    let error = permanent("bad request");
    assert_eq!(error.to_string(), "bad request");
    assert_eq!(error.into_inner().to_string(), "bad request");
    // Converted from `PermanentError` to `Marked`.
    let operation = || -> Result<(), Marked<Boxed>> { Err(permanent(Eof))? };
    let error = backoff::blocking::retry(operation, ZeroBackOff).with_marks().run().unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Eof));
}
