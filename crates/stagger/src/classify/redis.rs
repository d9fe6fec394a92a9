use stagger_core::Outcome;

/// Classifies an error reply of Redis or Valkey, given that the command may be executed twice.
///
/// | the reply begins with | outcome |
/// |---|---|
/// | `LOADING` the data set, `BUSY` with a script, `NOREPLICAS` that would acknowledge | transient |
/// | `READONLY`, `MASTERDOWN`, `UNBLOCKED`: the server is a replica, or has just become one | transient, over a connection to the primary |
/// | `MOVED`, `ASK`: another node has the slot; `TRYAGAIN`: the slot is moving; `CLUSTERDOWN` | transient |
/// | `OOM`, `ERR max number of clients reached` | throttled |
/// | anything else | permanent |
///
/// A cluster client follows `MOVED` and `ASK` itself, and reports them only if it was sent on too often, while slots move or after a
/// failover; a retry asks with its new map of the slots. A client without cluster support gets them on every attempt: use a cluster
/// client.
///
/// An error reply means that the command itself was rejected; a script that ends with one may have run in part.
#[must_use]
pub fn redis(reply: &str) -> Outcome {
    let reply = reply.strip_prefix('-').unwrap_or(reply);
    match reply.split_whitespace().next() {
        Some(
            "LOADING" | "BUSY" | "NOREPLICAS" | "READONLY" | "MASTERDOWN" | "UNBLOCKED" | "MOVED" | "ASK" | "TRYAGAIN"
            | "CLUSTERDOWN",
        ) => Outcome::TRANSIENT,
        Some("OOM") => Outcome::throttled(None),
        Some("ERR") if reply.contains("max number of clients reached") => Outcome::throttled(None),
        _ => Outcome::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds() {
        for (reply, want) in [
            ("LOADING Redis is loading the dataset in memory", Outcome::TRANSIENT),
            ("BUSY Redis is busy running a script.", Outcome::TRANSIENT),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Outcome::TRANSIENT),
            ("CLUSTERDOWN The cluster is down", Outcome::TRANSIENT),
            ("MASTERDOWN Link with MASTER is down", Outcome::TRANSIENT),
            ("NOREPLICAS Not enough good replicas to write.", Outcome::TRANSIENT),
            ("-READONLY You can't write against a read only replica.", Outcome::TRANSIENT),
            ("OOM command not allowed when used memory > 'maxmemory'.", Outcome::throttled(None)),
            ("ERR max number of clients reached", Outcome::throttled(None)),
            ("ERR unknown command 'FOO'", Outcome::Permanent),
            ("WRONGTYPE Operation against a key", Outcome::Permanent),
            ("MOVED 3999 127.0.0.1:6381", Outcome::TRANSIENT),
            ("ASK 3999 127.0.0.1:6381", Outcome::TRANSIENT),
            ("UNBLOCKED force unblock from blocking operation, instance state changed", Outcome::TRANSIENT),
            ("CROSSSLOT Keys in request don't hash to the same slot", Outcome::Permanent),
            ("", Outcome::Permanent),
        ] {
            assert_eq!(redis(reply), want, "{reply}");
        }
    }
}
