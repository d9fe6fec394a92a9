use core::error::Error;
use core::{fmt, iter};

/// The longest chain that is followed. A chain of sources may be cyclic.
pub(super) const MAX_LINKS: usize = 64;

/// Returns an iterator over the sources of this error, beginning with the error itself.
fn sources<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&link| link.source()).take(MAX_LINKS)
}

/// Returns the messages of an error and all its sources, joined by `: `.
///
/// ```
/// # use stagger::{Policy, blocking, display_chain};
/// let fails = || Err::<(), _>(std::io::Error::other("no such account"));
/// let error = blocking::retry(&Policy::DEFAULT, fails).detailed().run().unwrap_err();
/// let text = display_chain(&error).to_string();
/// assert!(text.starts_with("gave up after 1 attempt in "), "{text}");
/// assert!(text.ends_with("the failure is permanent: no such account"), "{text}");
/// ```
pub fn display_chain<'e>(error: &'e (dyn Error + 'static)) -> impl fmt::Display + 'e {
    Chain(error)
}

struct Chain<'e>(&'e (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        sources(self.0).skip(1).try_for_each(|source| write!(f, ": {source}"))
    }
}
