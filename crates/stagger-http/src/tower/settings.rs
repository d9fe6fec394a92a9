use core::any::Any;
use core::borrow::Borrow;
use core::error::Error;
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use http::request;
use stagger::{Outcome, Retrier};

use crate::client;
use crate::request::progress::RequestProgress;

/// A call's reference to its settings: the only reference count that a request increments.
#[derive(Clone, Debug)]
pub(super) struct SharedSettings(pub(super) Arc<Settings>);

impl Deref for SharedSettings {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Borrow<Retrier> for SharedSettings {
    fn borrow(&self) -> &Retrier {
        &self.0.common.retrier
    }
}

/// The settings of a [`RetryLayer`](super::RetryLayer), shared by all of its calls.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) common: client::Settings<request::Parts>,
    /// The replay limit for bodies, in bytes.
    pub(super) replay: usize,
    /// The rules for how far a failed request got; the first one for the error's type applies.
    pub(super) progress: Vec<ProgressRule>,
    /// The rule for errors that the retrier has none for, before its built-in ones.
    pub(super) outcome: Option<OutcomeRule>,
}

type OutcomeRule = Arc<dyn Fn(&dyn Any) -> Option<Outcome> + Send + Sync>;
pub(super) type ProgressRule = Arc<dyn Fn(&dyn Any) -> Option<RequestProgress> + Send + Sync>;

impl Settings {
    /// Returns the outcome of an error that the retrier has no rule for, if there is a rule here.
    pub(super) fn default_outcome(&self, error: &dyn Any) -> Option<Outcome> {
        self.outcome.as_ref()?(error)
    }

    /// Returns how far the request got that failed with this error, which is `link` as a trait object: by the first rule
    /// for its type, or else by its chain.
    pub(super) fn request_progress(&self, error: &dyn Any, link: Option<&(dyn Error + 'static)>) -> RequestProgress {
        let classified = self.progress.iter().find_map(|rule| rule(error));
        classified.or_else(|| link.map(RequestProgress::from_error)).unwrap_or(RequestProgress::MaybeProcessed)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("common", &self.common).field("replay", &self.replay).finish_non_exhaustive()
    }
}
