//! Classifiers of the codes and replies of gRPC and of databases.

use stagger_core::{FailureKind, Outcome};

/// Classifies a gRPC status code, given that the method is idempotent.
///
/// | code | outcome |
/// |---|---|
/// | 0 `OK` | success |
/// | 1 `CANCELLED` | cancelled |
/// | 8 `RESOURCE_EXHAUSTED` | throttled |
/// | 4 `DEADLINE_EXCEEDED`, 10 `ABORTED`, 14 `UNAVAILABLE` | transient |
/// | anything else | permanent |
///
/// Source: the documentation of the status codes, which leaves `FAILED_PRECONDITION`, `OUT_OF_RANGE` and the rest to
/// the caller.
#[must_use]
pub const fn grpc(code: u32) -> Outcome {
    match code {
        0 => Outcome::Success,
        1 => Outcome::Cancelled,
        4 | 10 | 14 => Outcome::TRANSIENT,
        8 => Outcome::throttled(None),
        _ => Outcome::Permanent,
    }
}

/// Classifies an SQLSTATE, given that the whole transaction is run again.
///
/// | SQLSTATE | outcome |
/// |---|---|
/// | `40001` serialization failure, `40P01` deadlock, `55P03` lock not available | transient |
/// | class `08`, connection exceptions, except `08P01` protocol violation | transient |
/// | `57P01`, `57P02`, `57P03`: shutting down, crashed, cannot connect now | transient |
/// | `57P05` idle session timeout, `25P03` idle-in-transaction timeout | transient, over a new connection |
/// | `25006` read-only transaction: the connection leads to the old primary | transient, over a new connection |
/// | `26000` no such prepared statement: another server answers | transient, if the retry prepares it again |
/// | class `53`, insufficient resources, such as `53300` too many connections | throttled |
/// | anything else | permanent |
///
/// After a timeout the server has closed a connection that was idle. Another server answers after a failover, or behind
/// a pooler. A transaction that ended with `57P05`, `25P03`, `25006` or `26000` was not committed. `25006` is also what
/// a program gets that writes in a transaction that it declared read-only; then the retries are made in vain.
///
/// `57014` query canceled and `25P04` transaction timeout are permanent: the statement or transaction took as long as
/// it was allowed to, and would again.
///
/// Source: PostgreSQL 18, appendix A; the classes are those of the SQL standard.
#[must_use]
pub fn sqlstate(code: &str) -> Outcome {
    match code {
        "08P01" => Outcome::Permanent,
        "25006" | "25P03" | "26000" | "40001" | "40P01" | "55P03" | "57P01" | "57P02" | "57P03" | "57P05" => {
            Outcome::TRANSIENT
        }
        _ if code.starts_with("08") => Outcome::TRANSIENT,
        _ if code.starts_with("53") => Outcome::throttled(None),
        _ => Outcome::Permanent,
    }
}

/// Classifies an error number of MySQL or MariaDB, given that the whole transaction is run again.
///
/// | number | outcome |
/// |---|---|
/// | 1205 lock wait timeout, 1213 deadlock, 3572 `NOWAIT` | transient: the transaction, not its last statement |
/// | 3101 conflict in group replication, 1020 record changed (MariaDB's snapshot isolation) | likewise |
/// | 1290 and 1836, the server is read-only (after a failover) | transient, over a new connection |
/// | 1047 not prepared (a Galera node that joins or has no quorum), 1053 shutting down | likewise |
/// | 1152, 1158 to 1161 and 1184 lost connection, 1927 connection killed, 4031 idle for too long | likewise |
/// | errors of the C client: 2002 and 2003 cannot connect, 2005 unknown host | likewise |
/// | errors of the C client: 2006 server has gone away, 2013 and 2055 lost connection | likewise |
/// | 1040 too many connections, 1203 and 1226 too many of this user | throttled |
/// | anything else | permanent |
///
/// The number says more than the SQLSTATE, which is `HY000` for a lock wait timeout as for most others, and `08004` for
/// too many connections. So ask the number first: a client that has it has the SQLSTATE as well, and needs
/// [`sqlstate`](fn@super::sqlstate) no more.
///
/// A lock wait timeout ends the statement and not the transaction (unless `innodb_rollback_on_timeout` is set), so roll
/// back before the retry. 1290 is also the answer of a server that runs with another restricting option, such as
/// `--secure-file-priv`, and MariaDB uses 4031 for a `CREATE TRIGGER` that names an unknown one; then the retries are
/// made in vain.
///
/// Source: "Server Error Message Reference" and "Client Error Message Reference" of MySQL 8.4; "MariaDB Error Codes".
#[must_use]
pub const fn mysql(number: u16) -> Outcome {
    match number {
        // Another transaction was in the way; the server is read-only; it has closed the connection, or will; it cannot
        // be reached.
        1020
        | 1205
        | 1213
        | 3101
        | 3572
        | 1290
        | 1836
        | 1047
        | 1053
        | 1152
        | 1158..=1161
        | 1184
        | 1927
        | 4031
        | 2002
        | 2003
        | 2005
        | 2006
        | 2013
        | 2055 => Outcome::TRANSIENT,
        1040 | 1203 | 1226 => Outcome::throttled(None),
        _ => Outcome::Permanent,
    }
}

/// Classifies a result code of SQLite, extended or not, given that the whole transaction is run again.
///
/// | code | outcome |
/// |---|---|
/// | 5 `SQLITE_BUSY`: another connection holds the lock | transient |
/// | 261 `BUSY_RECOVERY`, 517 `BUSY_SNAPSHOT`, 773 `BUSY_TIMEOUT` | transient |
/// | 6 `SQLITE_LOCKED`: another statement of this process holds it | transient |
/// | 262 `LOCKED_SHAREDCACHE`, 518 `LOCKED_VTAB` | transient |
/// | 15 `SQLITE_PROTOCOL`: the race for the start of a transaction was lost for ten seconds | transient |
/// | anything else | permanent |
///
/// **Roll back and run the transaction again**; the statement alone fails again. A transaction that has read and then
/// meets `BUSY_SNAPSHOT` has read what is no longer current, and cannot write until it ends. If two transactions have
/// read and both want to write, SQLite answers one of them `SQLITE_BUSY` at once, whatever its busy timeout is, because
/// waiting would be a deadlock. A transaction that begins with `BEGIN IMMEDIATE` meets neither.
///
/// A busy timeout (`PRAGMA busy_timeout`) waits inside the client, with fixed delays and without jitter. Keep it short,
/// and leave the waiting to the policy.
///
/// Source: "Result and Error Codes", sqlite.org/rescode.html. The low byte is the primary code.
#[must_use]
pub const fn sqlite(code: i32) -> Outcome {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const PROTOCOL: i32 = 15;
    match code & 0xff {
        // A negative number is no result code.
        BUSY | LOCKED | PROTOCOL if code > 0 => Outcome::TRANSIENT,
        _ => Outcome::Permanent,
    }
}

/// Classifies an error of MongoDB by its labels and its code, given that the whole transaction is run again, or an
/// operation that may be executed twice. The first row that applies decides:
///
/// | label or code | outcome |
/// |---|---|
/// | `UnknownTransactionCommitResult` | unsafe to retry: the transaction may be committed. Repeat the commit alone |
/// | `SystemOverloadedError`; 462 the server's limit of requests | throttled |
/// | `TransientTransactionError` | transient: the whole transaction |
/// | `RetryableWriteError`, `RetryableError` | transient |
/// | 10107, 13435 and 13436 not the primary, 189 it steps down, 11602 the replica set changes | transient |
/// | 91 and 11600 shutting down | transient |
/// | 6 and 7 a host cannot be reached, 89 network timeout, 9001 socket | transient |
/// | 262 time limit inside the cluster, 134 majority not available yet | transient |
/// | 112 write conflict | transient |
/// | anything else | permanent |
///
/// The driver repeats most reads and writes once by itself, without a delay, before it reports the error. A repeated
/// `insertOne` of the driver carries the transaction number of the first, so that the server executes it once; a retry
/// of the caller is a new operation, so give the document its `_id` before the first attempt.
///
/// Source: MongoDB's specifications "Transactions", "Retryable Writes", "Retryable Reads" and "Client Backpressure".
#[must_use]
pub fn mongodb<L: AsRef<str>>(labels: impl IntoIterator<Item = L>, code: Option<i32>) -> Outcome {
    let by_labels = labels.into_iter().filter_map(|label| Verdict::of_label(label.as_ref()));
    match by_labels.chain(code.and_then(Verdict::of_code)).max() {
        Some(Verdict::UnknownCommit) => Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None },
        Some(Verdict::Overloaded) => Outcome::throttled(None),
        Some(Verdict::Transient) => Outcome::TRANSIENT,
        None => Outcome::Permanent,
    }
}

/// What a label or a code says; if there are several, the greatest decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Transient,
    Overloaded,
    UnknownCommit,
}

impl Verdict {
    fn of_label(label: &str) -> Option<Self> {
        match label {
            "UnknownTransactionCommitResult" => Some(Self::UnknownCommit),
            "SystemOverloadedError" => Some(Self::Overloaded),
            "TransientTransactionError" | "RetryableWriteError" | "RetryableError" => Some(Self::Transient),
            _ => None,
        }
    }

    const fn of_code(code: i32) -> Option<Self> {
        match code {
            462 => Some(Self::Overloaded),
            6 | 7 | 89 | 91 | 112 | 134 | 189 | 262 | 9001 | 10107 | 11600 | 11602 | 13435 | 13436 => {
                Some(Self::Transient)
            }
            _ => None,
        }
    }
}

/// Classifies an error reply of Redis or Valkey, given that the command may be executed twice.
///
/// | the reply begins with | outcome |
/// |---|---|
/// | `LOADING` the data set, `BUSY` with a script, `NOREPLICAS` that would acknowledge | transient |
/// | `READONLY`, `MASTERDOWN`, `UNBLOCKED`: the server is a replica | transient, over a connection to the primary |
/// | `MOVED`, `ASK`: another node has the slot; `TRYAGAIN`: the slot is moving; `CLUSTERDOWN` | transient |
/// | `OOM`, `ERR max number of clients reached` | throttled |
/// | anything else | permanent |
///
/// A cluster client follows `MOVED` and `ASK` itself, and reports them only if it was sent on too often, while slots
/// move or after a failover; a retry asks with its new map of the slots. A client without cluster support gets them on
/// every attempt: use a cluster client.
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
    fn grpc_codes_are_as_in_the_table() {
        for code in 0..=17 {
            let want = match code {
                0 => Outcome::Success,
                1 => Outcome::Cancelled,
                4 | 10 | 14 => Outcome::TRANSIENT,
                8 => Outcome::throttled(None),
                _ => Outcome::Permanent,
            };
            assert_eq!(grpc(code), want, "{code}");
        }
    }

    #[test]
    fn sqlstates_are_as_in_the_table() {
        let throttled = Outcome::throttled(None);
        for (code, want) in [
            ("40001", Outcome::TRANSIENT),
            ("40P01", Outcome::TRANSIENT),
            ("40002", Outcome::Permanent),
            ("55P03", Outcome::TRANSIENT),
            ("55000", Outcome::Permanent),
            ("08006", Outcome::TRANSIENT),
            ("08P01", Outcome::Permanent),
            ("57P01", Outcome::TRANSIENT),
            ("57P02", Outcome::TRANSIENT),
            ("57P03", Outcome::TRANSIENT),
            ("25006", Outcome::TRANSIENT),
            ("25P03", Outcome::TRANSIENT),
            ("25P04", Outcome::Permanent),
            ("25001", Outcome::Permanent),
            ("26000", Outcome::TRANSIENT),
            ("57P04", Outcome::Permanent),
            ("57P05", Outcome::TRANSIENT),
            ("57014", Outcome::Permanent),
            ("53300", throttled),
            ("23505", Outcome::Permanent),
            ("", Outcome::Permanent),
        ] {
            assert_eq!(sqlstate(code), want, "{code}");
        }
    }

    #[test]
    fn mysql_numbers_are_as_in_the_table() {
        const TRANSIENT: [u16; 23] = [
            1020, 1047, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1205, 1213, 1290, 1836, 1927, 2002, 2003, 2005, 2006,
            2013, 2055, 3101, 3572, 4031,
        ];
        for number in 0..=u16::MAX {
            let want = match number {
                1040 | 1203 | 1226 => Outcome::throttled(None),
                _ if TRANSIENT.contains(&number) => Outcome::TRANSIENT,
                _ => Outcome::Permanent,
            };
            assert_eq!(mysql(number), want, "{number}");
        }
    }

    #[test]
    fn sqlite_busy_and_locked_are_transient_with_all_their_extended_codes() {
        for code in [5, 261, 517, 773, 6, 262, 518, 15] {
            assert_eq!(sqlite(code), Outcome::TRANSIENT, "{code}");
        }
    }

    #[test]
    fn every_other_sqlite_code_is_permanent() {
        let others = (0..=0xffff).filter(|code| ![5, 6, 15].contains(&(code % 256)));
        // -251 has the low byte of SQLITE_BUSY.
        for code in others.chain([-251, -5, i32::MIN]) {
            assert_eq!(sqlite(code), Outcome::Permanent, "{code}");
        }
    }

    const UNKNOWN: Outcome = Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None };

    #[test]
    fn mongodb_labels_are_as_in_the_table() {
        for (labels, want) in [
            (&["TransientTransactionError"][..], Outcome::TRANSIENT),
            (&["RetryableWriteError"], Outcome::TRANSIENT),
            (&["RetryableError"], Outcome::TRANSIENT),
            (&["RetryableError", "SystemOverloadedError"], Outcome::throttled(None)),
            (&["SystemOverloadedError", "TransientTransactionError"], Outcome::throttled(None)),
            (&["UnknownTransactionCommitResult"], UNKNOWN),
            (&["NetworkError"], Outcome::Permanent),
            (&[], Outcome::Permanent),
        ] {
            assert_eq!(mongodb(labels, None), want, "{labels:?}");
        }
    }

    #[test]
    fn a_mongodb_commit_with_an_unknown_result_is_not_run_again_whatever_else_is_said() {
        // A network error during the commit has both labels.
        let labels = ["RetryableWriteError", "SystemOverloadedError", "UnknownTransactionCommitResult"];
        assert_eq!(mongodb(labels, Some(91)), UNKNOWN);
        assert_eq!(mongodb(labels.iter().rev(), Some(462)), UNKNOWN);
    }

    #[test]
    fn mongodb_codes_are_as_in_the_table() {
        const TRANSIENT: [i32; 14] = [6, 7, 89, 91, 112, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];
        for code in -1..20_000 {
            let want = match code {
                462 => Outcome::throttled(None),
                _ if TRANSIENT.contains(&code) => Outcome::TRANSIENT,
                _ => Outcome::Permanent,
            };
            assert_eq!(mongodb([""; 0], Some(code)), want, "{code}");
        }
    }

    #[test]
    fn mongodb_label_and_code_are_both_read() {
        assert_eq!(mongodb(["RetryableWriteError"], Some(11_000)), Outcome::TRANSIENT);
        assert_eq!(mongodb(["TransientTransactionError"], Some(462)), Outcome::throttled(None));
        assert_eq!(mongodb(["NetworkError"], Some(189)), Outcome::TRANSIENT);
    }

    #[test]
    fn redis_replies_are_as_in_the_table() {
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
