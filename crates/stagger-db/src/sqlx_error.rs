use sqlx::Error;
use stagger::{FailureKind, Outcome, classify};

/// Classifies an error of sqlx, assuming that a retry runs the whole transaction again.
///
/// | error | outcome |
/// |---|---|
/// | database error | by its SQLSTATE: [`classify::sqlstate`]. Serialization failures, deadlocks and connection exceptions are transient, too many connections is throttled, constraint violations are permanent |
/// | I/O | by [`classify::io`]: lost and refused connections are transient |
/// | TLS, or the `Any` driver | by the I/O error inside it; permanent without one |
/// | the pool timed out | local exhaustion: all connections of the pool are in use, or none can be opened. Delays start from the policy's `local_base`, and the failure does not count against the server |
/// | all others: row or column not found, decoding errors, closed pool | permanent |
///
/// SQLite has its own error numbers instead of SQLSTATEs, so its errors are permanent here.
///
/// A pool retries connecting by itself, without jitter, until its `acquire_timeout` has elapsed. Keep that timeout short and
/// leave the waiting to the policy.
#[must_use]
pub fn sqlx(error: &Error) -> Outcome {
    match error {
        Error::Database(error) => error.code().map_or(Outcome::Permanent, |code| classify::sqlstate(&code)),
        Error::Io(error) => classify::io(error),
        Error::Tls(error) | Error::AnyDriverError(error) => classify::chain(&**error).unwrap_or(Outcome::Permanent),
        Error::PoolTimedOut => Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
        _ => Outcome::Permanent,
    }
}
