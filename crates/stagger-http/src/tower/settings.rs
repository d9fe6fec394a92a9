use core::any::Any;
use core::borrow::Borrow;
use core::error::Error;
use core::fmt;
use core::ops::Deref;
use std::io;
use std::sync::Arc;

use http::request;
use stagger::Retrier;

use crate::{RequestProgress, client};

/// A call's hold on what it is made with: the one count of references that a request costs.
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

/// What every call through a layer is made with.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) common: client::Settings<request::Parts>,
    /// How much of a body is kept, in bytes.
    pub(super) replay: usize,
    /// The first that knows an error says how far its request has come.
    pub(super) progress: Vec<ProgressRule>,
}

pub(super) type ProgressRule = Arc<dyn Fn(&dyn Any) -> Option<RequestProgress> + Send + Sync>;

impl Settings {
    /// How far the request has come that failed with this error.
    pub(super) fn request_progress<E: Any>(&self, error: &E) -> RequestProgress {
        let classified = self.progress.iter().find_map(|rule| rule(error));
        classified.unwrap_or_else(|| built_in(error))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("common", &self.common).field("replay", &self.replay).finish_non_exhaustive()
    }
}

/// Without a rule: a connection that was refused, or could not be made, has carried nothing.
fn built_in<E: Any>(error: &E) -> RequestProgress {
    let error: &dyn Any = error;
    let known: Option<&(dyn Error + 'static)> = if let Some(error) = error.downcast_ref::<io::Error>() {
        Some(error)
    } else if let Some(error) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
        Some(&**error)
    } else {
        None
    };
    known.map_or(RequestProgress::MaybeProcessed, RequestProgress::from_error)
}
