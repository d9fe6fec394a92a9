use stagger_core::Outcome;

/// Classifies a result code of SQLite, extended or not, given that the whole transaction is run again.
///
/// | code | outcome |
/// |---|---|
/// | 5 `SQLITE_BUSY`, with 261 `BUSY_RECOVERY`, 517 `BUSY_SNAPSHOT` and 773 `BUSY_TIMEOUT`: another connection holds the lock | transient |
/// | 6 `SQLITE_LOCKED`, with 262 `LOCKED_SHAREDCACHE` and 518 `LOCKED_VTAB`: another statement of this process does | transient |
/// | 15 `SQLITE_PROTOCOL`: the race for the start of a transaction was lost for ten seconds | transient |
/// | anything else | permanent |
///
/// **Roll back and run the transaction again**; the statement alone fails again. A transaction that has read and then meets
/// `BUSY_SNAPSHOT` has read what is no longer current, and cannot write until it ends. If two transactions have read and both want
/// to write, SQLite answers one of them `SQLITE_BUSY` at once, whatever its busy timeout is, because waiting would be a deadlock. A
/// transaction that begins with `BEGIN IMMEDIATE` meets neither.
///
/// A busy timeout (`PRAGMA busy_timeout`) waits inside the client, with fixed delays and without jitter. Keep it short, and leave the
/// waiting to the policy.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_locked_are_transient_with_all_their_extended_codes() {
        for code in [5, 261, 517, 773, 6, 262, 518, 15] {
            assert_eq!(sqlite(code), Outcome::TRANSIENT, "{code}");
        }
    }

    #[test]
    fn every_other_code_is_permanent() {
        let others = (0..=0xffff).filter(|code| ![5, 6, 15].contains(&(code % 256)));
        // -251 has the low byte of SQLITE_BUSY.
        for code in others.chain([-251, -5, i32::MIN]) {
            assert_eq!(sqlite(code), Outcome::Permanent, "{code}");
        }
    }
}
