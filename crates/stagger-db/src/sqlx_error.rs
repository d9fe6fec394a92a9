use sqlx::Error;
use stagger::{FailureKind, Outcome, classify};

/// What an error of sqlx means for retrying, given that the whole transaction is run again.
///
/// | error | outcome |
/// |---|---|
/// | of the database | by its SQLSTATE: [`classify::sqlstate`]. Serialization failures, deadlocks and connection exceptions are transient, too many connections throttled, a violated constraint is permanent |
/// | I/O | by [`classify::io`]: what is lost or refused is transient |
/// | TLS, or the `Any` driver | by the I/O error inside it; permanent without one |
/// | the pool timed out | local: our own connections are in use, or none can be made. Waits from the policy's `local_base` on, and is not held against the server |
/// | anything else: no such row or column, what cannot be decoded, a pool that was closed | permanent |
///
/// SQLite gives numbers of its own and no SQLSTATE: its errors are permanent here.
///
/// A pool makes attempts of its own to connect, without jitter, until its `acquire_timeout` is over: keep that short and
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
