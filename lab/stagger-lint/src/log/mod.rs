//! Measured delays: [`read`] from a log, and checked by [`check`].
//!
//! Three line formats are accepted, also mixed:
//!
//! - **JSON** (with the feature `serde`): the output of `stagger run --log json`. Each `run` is a client, its `time`
//!   gives the time of the retry, its policy is recorded, and delays that were requested by the command are skipped. If
//!   lines name no run, each `start` begins a new client. Any other object with `delay_s`,
//!   and optionally `client`, `retry` and `time_s`, is accepted as well.
//! - **Plain**: `DELAY [CLIENT [RETRY [TIME]]]`, separated by spaces, tabs or commas. Durations are in seconds or have
//!   a unit (`1.5`, `250ms`). RETRY counts the retries of a call from 1: the delay preceded this retry. TIME is the
//!   time of the retry, relative to any reference that all lines share. A first line made of the words `delay`,
//!   `client`, `retry` and `time` changes the order of the columns. `-` stands for an unknown value.
//! - **Sentences** of a program's log that say how long it waits: `Attempt 1 failed. Retrying in 0.134s`.
//!
//! Empty lines and lines that begin with `#` are ignored. If a client is given without a retry, its lines are counted.
//! A line that cannot be parsed is an error that names the line; no line is skipped silently.

mod check;
#[cfg(feature = "serde")]
mod json;
mod read;

pub use check::{TooFew, check, too_few};
pub use read::{LineError, Log, LogEntry, LogError, read};
