//! A box for errors of any type that implements `Error` itself.

use core::any::Any;
use core::error::Error;
use core::fmt;
use core::ops::Deref;

use super::chain::display_chain;
use super::rejected::Rejected;

/// An error of any type, which implements `Error` itself: `Box<dyn Error>`, `anyhow::Error` and `eyre::Report` do not,
/// so `?` cannot convert an [`Error`](crate::Error) around them.
///
/// It is transparent: message and source are those of the inner error, which it dereferences to.
///
/// ```
/// use stagger::BoxedError;
///
/// let error = BoxedError::new(std::io::Error::from(std::io::ErrorKind::NotFound));
/// assert!(error.is::<std::io::Error>());
/// assert_eq!(error.to_string(), "entity not found");
/// ```
pub struct BoxedError(Holder);

enum Holder {
    Boxed(Box<dyn Error + Send + Sync>),
    // A box made of these would hide the error that they hold from `downcast_ref`.
    #[cfg(feature = "anyhow")]
    Anyhow(anyhow::Error),
    #[cfg(feature = "eyre")]
    Eyre(eyre::Report),
}

impl BoxedError {
    /// Boxes `error`: an error type, an `anyhow::Error`, an `eyre::Report`, a `Box<dyn Error + Send + Sync>`, or a
    /// string.
    ///
    /// An `anyhow::Error` or `eyre::Report` keeps its type and backtrace with the feature `anyhow` or `eyre`. Without
    /// it, the outermost error that it holds can no longer be downcast to.
    #[must_use]
    pub fn new<E: Into<Box<dyn Error + Send + Sync>> + 'static>(error: E) -> Self {
        // The slot is downcast to, and not the error, so that a match can be moved out without a box.
        let mut error = Some(error);
        let slot: &mut dyn Any = &mut error;
        #[cfg(feature = "anyhow")]
        if let Some(error) = slot.downcast_mut::<Option<anyhow::Error>>().and_then(Option::take) {
            return Self(Holder::Anyhow(error));
        }
        #[cfg(feature = "eyre")]
        if let Some(error) = slot.downcast_mut::<Option<eyre::Report>>().and_then(Option::take) {
            return Self(Holder::Eyre(error));
        }
        if let Some(error) = slot.downcast_mut::<Option<Self>>().and_then(Option::take) {
            return error;
        }
        // The slot is only emptied by the branches above. Boxing a zero-sized value does not allocate.
        Self(Holder::Boxed(match error {
            Some(error) => error.into(),
            None => Box::new(fmt::Error),
        }))
    }

    /// Returns the inner error as a box.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        match self.0 {
            Holder::Boxed(error) => error,
            #[cfg(feature = "anyhow")]
            Holder::Anyhow(error) => error.into(),
            #[cfg(feature = "eyre")]
            Holder::Eyre(error) => error.into(),
        }
    }

    /// Returns the inner error, if it is an `E`.
    ///
    /// # Errors
    /// Returns `self` if the inner error is of another type.
    pub fn downcast<E: Error + Send + Sync + 'static>(self) -> Result<E, Self> {
        match self.0 {
            Holder::Boxed(error) => error.downcast().map(|error| *error).map_err(|error| Self(Holder::Boxed(error))),
            #[cfg(feature = "anyhow")]
            Holder::Anyhow(error) => error.downcast().map_err(|error| Self(Holder::Anyhow(error))),
            #[cfg(feature = "eyre")]
            Holder::Eyre(error) => error.downcast().map_err(|error| Self(Holder::Eyre(error))),
        }
    }
}

impl Deref for BoxedError {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Holder::Boxed(error) => &**error,
            #[cfg(feature = "anyhow")]
            Holder::Anyhow(error) => &**error,
            #[cfg(feature = "eyre")]
            Holder::Eyre(error) => &**error,
        }
    }
}

/// The message of the inner error; with `{:#}`, the messages of the whole chain.
impl fmt::Display for BoxedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { display_chain(&**self).fmt(f) } else { fmt::Display::fmt(&**self, f) }
    }
}

impl fmt::Debug for BoxedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Holder::Boxed(error) => error.fmt(f),
            #[cfg(feature = "anyhow")]
            Holder::Anyhow(error) => error.fmt(f),
            #[cfg(feature = "eyre")]
            Holder::Eyre(error) => error.fmt(f),
        }
    }
}

impl Error for BoxedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        (**self).source()
    }
}

impl From<Rejected> for BoxedError {
    fn from(rejected: Rejected) -> Self {
        Self::new(rejected)
    }
}
