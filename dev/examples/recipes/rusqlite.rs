use rusqlite::Error;
use stagger::{Outcome, classify};

/// By the extended result code. Blocks, so use it with [`stagger::blocking`] or in `spawn_blocking`.
pub(crate) fn rusqlite(error: &Error) -> Outcome {
    error.sqlite_error().map_or(Outcome::Permanent, |error| classify::sqlite(error.extended_code))
}
