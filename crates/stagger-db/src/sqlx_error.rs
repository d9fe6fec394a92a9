use sqlx::Error;
use sqlx::error::DatabaseError;
use stagger::{FailureKind, Outcome, classify};

/// Classifies an error of sqlx, assuming that a retry runs the whole transaction again.
///
/// | error | outcome |
/// |---|---|
/// | database error | by its SQLSTATE: [`classify::sqlstate`] |
/// | database error of SQLite | by its result code: [`classify::sqlite`]. A locked database is transient |
/// | database error of MySQL or MariaDB | with the feature `sqlx-mysql` by its number: [`classify::mysql`] |
/// | I/O | by [`classify::io`]: lost and refused connections and failed name lookups are transient |
/// | TLS, or the `Any` driver | by the I/O error inside it; permanent without one |
/// | the pool timed out | local exhaustion: all connections of the pool are in use, or none can be opened |
/// | all others: row or column not found, decoding errors, closed pool | permanent |
///
/// Of the database errors, serialization failures, deadlocks and connection exceptions are transient, too many
/// connections is throttled, and constraint violations are permanent. Without the feature `sqlx-mysql`, an error of
/// MySQL is classified by its SQLSTATE, which a lock wait timeout and a read-only server do not have. After local
/// exhaustion, delays start from the policy's `local_base`, and the failure does not count against the server.
///
/// A pool retries connecting by itself, without jitter, until its `acquire_timeout` has elapsed. Keep that timeout
/// short and leave the waiting to the policy.
#[must_use]
pub fn sqlx(error: &Error) -> Outcome {
    match error {
        Error::Database(error) => database(&**error),
        Error::Io(error) => classify::io(error),
        Error::Tls(error) | Error::AnyDriverError(error) => classify::chain(&**error).unwrap_or(Outcome::Permanent),
        Error::PoolTimedOut => Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
        _ => Outcome::Permanent,
    }
}

fn database(error: &dyn DatabaseError) -> Outcome {
    #[cfg(feature = "sqlx-mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return classify::mysql(error.number());
    }
    let Some(code) = error.code() else { return Outcome::Permanent };
    match code.parse() {
        // An SQLSTATE has five characters; SQLite's largest result code has four.
        Ok(number) if code.len() < 5 => classify::sqlite(number),
        _ => classify::sqlstate(&code),
    }
}
