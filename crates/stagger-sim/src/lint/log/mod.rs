//! Delays that have really happened: [`read`] from a log, and judged by [`check`].
//!
//! Two forms are understood, line by line, also mixed:
//!
//! - **JSON** (with the feature `serde`): what `stagger run --log json` writes; each `start` is another client, its
//!   policy is kept, and delays that the command asked for are left out. Any other object with `delay_s`, and perhaps
//!   `client`, `retry` and `time_s`, is understood too.
//! - **Plain**: `DELAY [CLIENT [RETRY [TIME]]]`, apart by spaces, tabs or commas. Lengths are in seconds or have a unit
//!   (`1.5`, `250ms`). RETRY counts the retries of a call from 1: the delay came before this one. TIME is when the
//!   retry was made, since any moment that all lines have in common. A first line of the words `delay`, `client`,
//!   `retry` and `time` gives the columns another order. `-` stands for what is not known.
//!
//! Empty lines and those that begin with `#` are comments. Where a client is said and the retry is not, its lines are
//! counted. A line that is not understood is an error that names it; nothing is passed over.

mod check;
mod entry;
mod error;
#[cfg(feature = "serde")]
mod json;
mod plain;
mod read;
mod statistics;

pub use check::check;
pub use entry::{Log, LogEntry};
pub use error::{LineError, LogError};
pub use read::read;
