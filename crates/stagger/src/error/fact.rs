use core::cell::Cell;
use core::error::Error;

use stagger_core::{Outcome, StopReason};

/// What an error of a generic type of this crate says about itself.
///
/// Behind a `dyn Error` such a type cannot be downcast to without knowing its type parameter. Instead its `source` leaves
/// the fact in a thread-local variable, where [`fact_of`] finds it.
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
