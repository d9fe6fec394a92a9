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
        return if error.is_connect() { Some(RequestProgress::NotSent) } else { None };
    }
    if let Some(error) = link.downcast_ref::<hyper::Error>() {
        return of_hyper(error);
    }
    match link.downcast_ref::<h2::Error>() {
        Some(error) if is_excluded(error) => Some(RequestProgress::NotProcessed),
        _ => None,
    }
}

fn of_hyper(error: &hyper::Error) -> Option<RequestProgress> {
    // hyper cancels a request that it gives back, because the connection has closed before any of it was written.
    if error.is_canceled() {
        return Some(RequestProgress::NotProcessed);
    }
    // The body of the request failed, after its head was sent. The errors below are of what the body was read from.
    if error.is_user() { Some(RequestProgress::MaybeProcessed) } else { None }
}

/// Returns whether the server says that it has not processed the stream (RFC 9113 §8.7).
fn is_excluded(error: &h2::Error) -> bool {
    // h2 gives a GOAWAY of the server only to streams above the last one that it names, and to those opened later.
    // hyper 1.12 gives it to one stream more, if it arrives between two lines of `ClientTask::poll`: after
    // `send_request` has queued the stream, and before `poll_ready` is asked again. If another thread has written the
    // stream meanwhile, the server may have processed it. Nothing in the error tells the two apart.
    error.is_remote() && (error.is_go_away() || error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Classifies an error by the server's own word in its chain: it asks clients to slow down (`ENHANCE_YOUR_CALM`).
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) fn outcome(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let mut errors = classify::links(error).filter_map(|link| link.downcast_ref::<h2::Error>());
    if errors.any(|error| error.is_remote() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM)) {
        return Some(Outcome::Failed { kind: FailureKind::Throttled, hint: None });
    }
    None
}
