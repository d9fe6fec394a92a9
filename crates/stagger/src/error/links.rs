//! The errors that an error holds: through boxes, reference counts and other holders, and along `source()`.

use core::any::Any;
use core::error::Error;
use core::iter;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use stagger_core::StopReason;

use super::boxed::BoxedError;
use super::chain::{Fact, MAX_LINKS, fact_of, leave_fact};
use super::rejected::Rejected;

/// Returns what the first of these holders holds, if `$error` is one of them.
macro_rules! held {
    ($error:ident: $($(#[$condition:meta])* $holder:ty),+ $(,)?) => {$(
        $(#[$condition])*
        if let Some(holder) = $error.downcast_ref::<$holder>() {
            return Some(&**holder);
        }
    )+};
}

/// Returns an error of a known type as a trait object: what it holds if it is a holder, or else the error itself.
#[inline]
pub(crate) fn as_error(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error);
    }
    held!(
        error:
        Box<dyn Error + Send + Sync>,
        Box<dyn Error + Send>,
        Box<dyn Error>,
        BoxedError,
        #[cfg(feature = "anyhow")]
        anyhow::Error,
        #[cfg(feature = "eyre")]
        eyre::Report,
        Arc<dyn Error + Send + Sync>,
        Arc<dyn Error>,
        Rc<dyn Error>,
        Box<io::Error>,
        Arc<io::Error>,
        Rc<io::Error>,
    );
    if let Some(error) = error.downcast_ref::<Rejected>() {
        return Some(error);
    }
    #[cfg(feature = "anyhow")]
    if let Some(shared) = error.downcast_ref::<Arc<anyhow::Error>>() {
        return Some(&***shared);
    }
    #[cfg(feature = "eyre")]
    if let Some(shared) = error.downcast_ref::<Arc<eyre::Report>>() {
        return Some(&***shared);
    }
    // The error of a call inside this one.
    if let Some(error) = error.downcast_ref::<crate::error::call_error::Error<io::Error>>() {
        return Some(error);
    }
    error.downcast_ref::<crate::error::call_error::Error<BoxedError>>().map(|error| error as &dyn Error)
}

/// Returns `error` as an `E`: itself, or what a pointer to `E` points to.
pub(crate) fn as_type<E: 'static>(error: &dyn Any) -> Option<&E> {
    held!(error: Box<E>, Arc<E>, Rc<E>);
    error.downcast_ref()
}

/// Returns a link of a chain as an `E`: itself, or what a pointer to `E` points to.
pub(crate) fn link_as_type<'e, E: Error + 'static>(link: &'e (dyn Error + 'static)) -> Option<&'e E> {
    held!(link: Box<E>, Arc<E>);
    link.downcast_ref()
}

/// Returns an iterator over the chain of this error, from the error itself to its root cause, that the classification
/// follows: along `source()`, and through an `io::Error`, a [`BoxedError`] and reference counts around errors, whose
/// `source()` skips the error that they hold. At most 64 errors.
///
/// ```
/// use std::io::{self, ErrorKind};
/// use stagger::classify;
///
/// let wrapped = io::Error::other(io::Error::from(ErrorKind::ConnectionRefused));
/// let root = classify::links(&wrapped).last().unwrap();
/// assert_eq!(root.downcast_ref::<io::Error>().unwrap().kind(), ErrorKind::ConnectionRefused);
/// ```
pub fn links<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&link| next(link)).take(MAX_LINKS)
}

fn next<'e>(link: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    // `source` of these skips the error that they hold.
    held!(link: BoxedError, Arc<dyn Error + Send + Sync>, Arc<dyn Error>, Box<io::Error>, Arc<io::Error>);
    match link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => link.source(),
    }
}

/// Returns why a call gave up, if its error is anywhere in this chain, whatever the type of its operation's error.
///
/// For a program that ends with another exit code when it was cancelled:
///
/// ```
/// # use stagger::{Policy, Cancel, StopReason, blocking};
/// fn run(cancel: &Cancel) -> anyhow::Result<()> {
///     let fails = || Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
///     blocking::retry(&Policy::DEFAULT, fails).cancelled_by(cancel).run()?;
///     Ok(())
/// }
///
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let error = run(&cancel).unwrap_err();
/// let code = if stagger::stop_reason(&*error) == Some(StopReason::Cancelled) { 130 } else { 1 };
/// assert_eq!(code, 130);
/// ```
#[must_use]
pub fn stop_reason(error: &(dyn Error + 'static)) -> Option<StopReason> {
    links(error).find_map(|link| match fact_of(link) {
        Some(Fact::Stop(stop)) => Some(stop),
        _ => None,
    })
}

/// Lets [`stop_reason`] see why a call gave up whose error is of a type of your own, through every wrapper. Call it in
/// the [`source`](core::error::Error::source) of that type.
///
/// ```
/// use std::{error::Error, fmt};
/// use stagger::classify::provide_stop_reason;
/// use stagger::{StopReason, stop_reason};
///
/// #[derive(Debug)]
/// struct GaveUp(StopReason);
///
/// impl fmt::Display for GaveUp {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         write!(f, "gave up, {}", self.0)
///     }
/// }
///
/// impl Error for GaveUp {
///     fn source(&self) -> Option<&(dyn Error + 'static)> {
///         provide_stop_reason(self.0);
///         None
///     }
/// }
///
/// let error = anyhow::Error::from(GaveUp(StopReason::BUDGET)).context("cannot connect");
/// assert_eq!(stop_reason(&*error), Some(StopReason::BUDGET));
/// ```
pub fn provide_stop_reason(stop: StopReason) {
    leave_fact(Fact::Stop(stop));
}
