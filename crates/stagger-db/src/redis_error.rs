use core::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};
use stagger::{Outcome, classify};

/// What an error of the redis crate means for retrying, given that the command may be carried out twice.
///
/// | error | outcome |
/// |---|---|
/// | a reply of the server | by its first word: [`classify::redis`] |
/// | of a pipeline or a transaction | as the worst of its replies: permanent, then throttled, then transient |
/// | I/O | by [`classify::io`], and a connection or a socket's file that is not there is transient too |
/// | the sentinels, or the cluster, know no server at the moment | transient |
/// | anything else: authentication, configuration, types, what cannot be parsed | permanent |
///
/// After a failover a connection may lead to a server that is none any more: on `READONLY` make a new one.
#[must_use]
pub fn redis(error: &RedisError) -> Outcome {
    match error.kind() {
        ErrorKind::Io => by_io(error),
        ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::NoValidReplicasFoundBySentinel
        | ErrorKind::ClusterConnectionNotFound => Outcome::TRANSIENT,
        ErrorKind::Server(_) | ErrorKind::Extension => by_replies(error),
        _ => Outcome::Permanent,
    }
}

fn by_io(error: &RedisError) -> Outcome {
    // What is shared is not seen through by `source`.
    let inside = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let known = inside.and_then(|inside| inside.downcast_ref::<io::Error>()).map(classify::io);
    match known {
        Some(Outcome::Permanent) | None if error.is_connection_dropped() => Outcome::TRANSIENT,
        known => known.unwrap_or(Outcome::Permanent),
    }
}

fn by_replies(error: &RedisError) -> Outcome {
    let replies = error.clone().into_server_errors();
    let outcomes = replies.iter().flat_map(|replies| replies.iter()).map(|(_, reply)| {
        let details = reply.details().unwrap_or_default();
        classify::redis(&format!("{} {details}", reply.code()))
    });
    let badness = |outcome: &Outcome| match outcome {
        Outcome::Permanent => 2,
        Outcome::Failed { kind: stagger::FailureKind::Throttled, .. } => 1,
        _ => 0,
    };
    outcomes.max_by_key(badness).unwrap_or(Outcome::Permanent)
}
