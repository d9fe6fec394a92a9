//! The text of a chain of errors, and what an error of this crate tells about itself behind a `dyn Error`.

use core::cell::Cell;
use core::error::Error;
use core::{fmt, iter};

use stagger_core::{Outcome, StopReason};

/// The longest chain that is followed. A chain of sources may be cyclic.
pub(super) const MAX_LINKS: usize = 64;

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

/// Returns an iterator over the sources of this error, beginning with the error itself.
fn sources<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&link| link.source()).take(MAX_LINKS)
}

/// What an error of a generic type of this crate says about itself.
///
/// Behind a `dyn Error` such a type cannot be downcast to without knowing its type parameter. Instead its `source`
/// leaves the fact in a thread-local variable, where [`fact_of`] finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact {
    /// Why an [`Error`](crate::Error) stopped.
    Stop(StopReason),
    /// The mark of a [`Marked`](crate::Marked) error.
    Mark(Outcome),
}

thread_local! {
    static FACT: Cell<Option<Fact>> = const { Cell::new(None) };
}

/// Leaves the fact of an error whose source is asked for.
pub(crate) fn leave_fact(fact: Fact) {
    // At the end of a thread the variable may be gone; no chain is examined then.
    let _ = FACT.try_with(|cell| cell.set(Some(fact)));
}

/// Returns the fact of this link of a chain, if it is of a generic type of this crate, or transparent for one.
pub(crate) fn fact_of(link: &(dyn Error + 'static)) -> Option<Fact> {
    FACT.try_with(|cell| cell.set(None)).ok()?;
    let _ = link.source();
    FACT.try_with(Cell::take).ok()?
}
