//! What the errors of hyper, hyper-util's client and h2 tell about a request.

use core::error::Error;

use h2::Reason;
use hyper_util::client::legacy;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
use stagger::{FailureKind, Outcome, classify};

use crate::request::RequestProgress;

/// Returns the progress that one error of a chain tells, if it is one of these.
pub(crate) fn progress(link: &(dyn Error + 'static)) -> Option<RequestProgress> {
    if let Some(error) = link.downcast_ref::<legacy::Error>() {
        return error.is_connect().then_some(RequestProgress::NotSent);
    }
    if let Some(error) = link.downcast_ref::<hyper::Error>() {
        return of_hyper(error);
    }
    link.downcast_ref::<h2::Error>().filter(|error| is_excluded(error)).map(|_| RequestProgress::NotProcessed)
}

fn of_hyper(error: &hyper::Error) -> Option<RequestProgress> {
    // hyper cancels a request that it gives back, because the connection has closed before any of it was written.
    if error.is_canceled() {
        return Some(RequestProgress::NotProcessed);
    }
    // The body of the request failed, after its head was sent. The errors below are of what the body was read from.
    error.is_user().then_some(RequestProgress::MaybeProcessed)
}

/// Returns whether the server says that it has not processed the stream (RFC 9113 §8.7).
fn is_excluded(error: &h2::Error) -> bool {
    // h2 gives a GOAWAY of the server only to streams above the last one that it names, and to those opened later.
    error.is_remote() && (error.is_go_away() || error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Classifies an error by the server's own word in its chain: it asks clients to slow down (`ENHANCE_YOUR_CALM`).
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) fn outcome(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let is_throttled = |error: &h2::Error| error.is_remote() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM);
    let throttled = Outcome::Failed { kind: FailureKind::Throttled, hint: None };
    classify::links(error).find_map(|link| link.downcast_ref().filter(|error| is_throttled(error))).map(|_| throttled)
}
