use stagger_core::Outcome;

/// Classifies an error number of MySQL or MariaDB, given that the whole transaction is run again.
///
/// | number | outcome |
/// |---|---|
/// | 1205 lock wait timeout, 1213 deadlock, 3572 `NOWAIT`, 3101 conflict in group replication, 1020 record changed (snapshot isolation of MariaDB) | transient: the transaction, not its last statement |
/// | 1290 and 1836, the server is read-only (after a failover) | transient, over a new connection |
/// | 1047 not prepared (a Galera node that joins or has no quorum), 1053 shutting down, 1152 and 1158 to 1161 and 1184 lost connection, 1927 connection killed, 4031 idle for too long | transient, over a new connection |
/// | 2002 and 2003 cannot connect, 2006 server has gone away, 2013 and 2055 lost connection: errors of the C client | transient, over a new connection |
/// | 1040 too many connections, 1203 and 1226 too many of this user | throttled |
/// | anything else | permanent |
///
/// The number says more than the SQLSTATE, which is `HY000` for a lock wait timeout as for most others, and `08004` for too many
/// connections. So ask the number first: a client that has it has the SQLSTATE as well, and needs [`sqlstate`](fn@super::sqlstate) no more.
///
/// A lock wait timeout ends the statement and not the transaction (unless `innodb_rollback_on_timeout` is set), so roll back before
/// the retry. 1290 is also the answer of a server that runs with another restricting option, such as `--secure-file-priv`, and MariaDB uses
/// 4031 for a `CREATE TRIGGER` that names an unknown one; then the retries are made in vain.
///
/// Source: "Server Error Message Reference" and "Client Error Message Reference" of MySQL 8.4; "MariaDB Error Codes".
#[must_use]
pub const fn mysql(number: u16) -> Outcome {
    match number {
        // Another transaction was in the way; the server is read-only; it has closed the connection, or will; it cannot be
        // reached.
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
        | 2006
        | 2013
        | 2055 => Outcome::TRANSIENT,
        1040 | 1203 | 1226 => Outcome::throttled(None),
        _ => Outcome::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_for_every_number() {
        const TRANSIENT: [u16; 22] = [
            1020, 1047, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1205, 1213, 1290, 1836, 1927, 2002, 2003, 2006, 2013,
            2055, 3101, 3572, 4031,
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
}
