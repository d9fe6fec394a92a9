use reqwest::{Error, Response, Url};
use stagger::{Outcome, classify};

use crate::client::Hops;
use crate::request::RequestProgress;

/// Classifies an error that the retrier has no rule for.
pub(super) fn outcome(error: &Error) -> Outcome {
    if is_permanent(error) { Outcome::Permanent } else { classify::chain(error).unwrap_or(Outcome::TRANSIENT) }
}

/// Returns whether every attempt with the same request would fail in the same way.
pub(crate) fn is_permanent(error: &Error) -> bool {
    error.is_builder() || error.is_redirect() || error.is_upgrade()
}

/// Returns how far the request of an attempt with these hops got.
pub(super) fn request_progress(error: &Error, hops: Hops) -> RequestProgress {
    match hops {
        Hops::One => RequestProgress::from_error(error),
        // A server that has processed the request may have redirected it to the one that the error is about.
        Hops::Unknown => RequestProgress::MaybeProcessed,
    }
}

/// Removes the user information, the query and the fragment from the URL of an error, since tokens are often in them.
/// Returns the URL as it was, for [`restore_url`].
pub(super) fn hide_url_secrets(error: &mut Error) -> Option<Url> {
    let url = error.url_mut()?;
    let has_secrets =
        url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    if !has_secrets {
        return None;
    }
    let original = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail for URLs that cannot have user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(original)
}

/// Restores the URL of an error for its caller.
pub(super) fn restore_url(error: &mut Error, original: Option<Url>) {
    if let (Some(url), Some(original)) = (error.url_mut(), original) {
        *url = original;
    }
}

/// Returns whether the response is from the origin that the request was sent to. reqwest follows redirects itself.
pub(crate) fn is_from_origin(response: &Response, requested: &Url) -> bool {
    response.url().origin() == requested.origin()
}
