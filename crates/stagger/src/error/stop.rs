use stagger_core::StopReason;

use super::fact::{Fact, fact_of};
use super::links::links;
use super::rejected::Rejected;

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
    links(error).find_map(|link| match link.downcast_ref() {
        Some(Rejected::Cancelled) => Some(StopReason::Cancelled),
        Some(Rejected::BreakerOpen(_)) => Some(StopReason::Breaker),
        _ => match fact_of(link) {
            Some(Fact::Stop(stop)) => Some(stop),
            _ => None,
        },
    })
}
