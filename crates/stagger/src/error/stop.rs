use stagger_core::StopReason;

use super::fact::{Fact, fact_of, leave_fact};
use super::links::links;

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
pub fn stop_reason(error: &(dyn core::error::Error + 'static)) -> Option<StopReason> {
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
/// let error = anyhow::Error::from(GaveUp(StopReason::Budget)).context("cannot connect");
/// assert_eq!(stop_reason(&*error), Some(StopReason::Budget));
/// ```
pub fn provide_stop_reason(stop: StopReason) {
    leave_fact(Fact::Stop(stop));
}
