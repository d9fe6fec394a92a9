use stagger::{Outcome, classify};

/// By the SQLSTATE of the server; without one, the connection is lost or was never made.
pub(crate) fn tokio_postgres(error: &tokio_postgres::Error) -> Outcome {
    match error.code() {
        Some(state) => classify::sqlstate(state.code()),
        None if error.is_closed() => Outcome::TRANSIENT,
        None => classify::chain(error).unwrap_or(Outcome::Permanent),
    }
}
