use core::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};
use stagger::{Outcome, classify};

/// Classifies an error of the redis crate, assuming that the command may be executed twice.
///
/// | error | outcome |
/// |---|---|
/// | an error reply of the server | by its first word: [`classify::redis`] |
/// | a pipeline or a transaction | the worst of its replies: permanent, then throttled, then transient |
/// | I/O | by [`classify::io`]; a missing connection or socket file is transient, too |
/// | no server known to the sentinels or the cluster at the moment | transient |
/// | the host's name has no address | transient |
/// | all others: authentication, configuration, types, malformed replies | permanent |
///
/// A server without a free connection closes new ones with `ERR max number of clients reached`. The client drops that
/// reply and reports a lost connection, which is transient and not throttled.
///
/// After a failover, a connection may lead to a server that is no longer the primary: open a new one on `READONLY`.
#[must_use]
pub fn redis(error: &RedisError) -> Outcome {
    match error.kind() {
        ErrorKind::Io => by_io(error),
        ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::NoValidReplicasFoundBySentinel
        | ErrorKind::ClusterConnectionNotFound => Outcome::TRANSIENT,
        ErrorKind::Server(_) | ErrorKind::Extension => by_replies(error),
        ErrorKind::InvalidClientConfig if is_failed_lookup(error) => Outcome::TRANSIENT,
        _ => Outcome::Permanent,
    }
}

/// Returns whether a lookup has found no address, which the client takes for an error in its configuration.
fn is_failed_lookup(error: &RedisError) -> bool {
    let message = error.to_string();
    message.contains("No address found for host") || message.contains("could not resolve to any addresses")
}

fn by_io(error: &RedisError) -> Outcome {
    let outcome = match io_error(error) {
        Some(error) => classify::io(error),
        None => Outcome::Permanent,
    };
    if outcome == Outcome::Permanent && error.is_connection_dropped() { Outcome::TRANSIENT } else { outcome }
}

fn io_error(error: &RedisError) -> Option<&io::Error> {
    // The source is an `Arc`, which `Error::source` does not see through.
    let source = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    source.downcast_ref()
}

fn by_replies(error: &RedisError) -> Outcome {
    let replies = error.clone().into_server_errors();
    let outcomes = replies.iter().flat_map(|replies| replies.iter()).map(|(_, reply)| {
        let details = reply.details().unwrap_or_default();
        classify::redis(&format!("{} {details}", reply.code()))
    });
    let severity = |outcome: &Outcome| match outcome {
        Outcome::Permanent => 2,
        Outcome::Failed { kind: stagger::FailureKind::Throttled, .. } => 1,
        _ => 0,
    };
    outcomes.max_by_key(severity).unwrap_or(Outcome::Permanent)
}
