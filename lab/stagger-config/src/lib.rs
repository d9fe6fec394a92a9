//! Reads the retry settings of other systems.
//!
//! [`read`] finds what a configuration says about retries, restarts and probes. It keeps three things apart: what the
//! file states, what applies because the system has a default, and what cannot be said as a policy. Every value has its
//! place in the file. [`export`] is the other direction: it writes a policy for another system, and lists what is lost.
//!
//! ```
//! use stagger_config::{Limit, read};
//!
//! let file = "
//! apiVersion: networking.istio.io/v1
//! kind: VirtualService
//! metadata: {name: reviews}
//! spec:
//!   http:
//!   - route: [{destination: {host: reviews}}]
//! ";
//! let entries = read(file, None)?;
//! let attempts = entries[0].settings.attempts.unwrap();
//! // Nobody wrote it: Istio retries by default.
//! assert_eq!((attempts.value, attempts.is_stated()), (Limit::At(3), false));
//! # Ok::<(), stagger_config::ReadError>(())
//! ```

mod entry;
pub mod export;
mod fields;
mod format;
mod formats;
mod position;
mod tree;
mod units;

pub use entry::{Entry, EntryKind, Limit, Origin, Remark, RemarkKind, RetryBudget, Setting, Settings};
pub use format::{Format, UnknownFormat};
pub use position::{Position, ReadError, Span};

/// Reads what a configuration says about retries, in the order of the file.
///
/// The format is found by the content, not by the name: pass it if the content does not tell. A file may contain
/// several documents for several systems; those that have nothing to do with retries yield no entries.
///
/// # Errors
/// [`ReadError`] with the place, if the text is not valid in any syntax that is known here, is longer than 64 MiB, is
/// nested deeper than 200 values, has aliases that expand to more than 200,000 values, or is not of the format.
pub fn read(text: &str, format: Option<Format>) -> Result<Vec<Entry>, ReadError> {
    formats::read(text, format)
}
