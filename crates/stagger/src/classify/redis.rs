use stagger_core::{FailureKind, Outcome};

/// Classifies an error reply of Redis or Valkey.
///
/// | the reply begins with | outcome |
/// |---|---|
/// | `LOADING`, `BUSY`, `TRYAGAIN`, `CLUSTERDOWN`, `MASTERDOWN`, `NOREPLICAS`, `READONLY` (after a failover) | transient |
/// | `OOM`, `ERR max number of clients reached` | throttled |
/// | anything else | permanent |
///
/// `MOVED` and `ASK` are redirections for the client to follow, not errors to retry.
#[must_use]
pub fn redis(reply: &str) -> Outcome {
    let reply = reply.strip_prefix('-').unwrap_or(reply);
    match reply.split_whitespace().next() {
        Some("LOADING" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "NOREPLICAS" | "READONLY") => {
            Outcome::TRANSIENT
        }
        Some("OOM") => THROTTLED,
        Some("ERR") if reply.contains("max number of clients reached") => THROTTLED,
        _ => Outcome::Permanent,
    }
}

const THROTTLED: Outcome = Outcome::Failed { kind: FailureKind::Throttled, hint: None };

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
            ("OOM command not allowed when used memory > 'maxmemory'.", THROTTLED),
            ("ERR max number of clients reached", THROTTLED),
            ("ERR unknown command 'FOO'", Outcome::Permanent),
            ("WRONGTYPE Operation against a key", Outcome::Permanent),
            ("MOVED 3999 127.0.0.1:6381", Outcome::Permanent),
            ("", Outcome::Permanent),
        ] {
            assert_eq!(redis(reply), want, "{reply}");
        }
    }
}
