use stagger_core::Outcome;

/// Classifies an SQLSTATE, given that the whole transaction is run again.
///
/// | SQLSTATE | outcome |
/// |---|---|
/// | `40001` serialization failure, `40P01` deadlock, `55P03` lock not available | transient |
/// | class `08`, connection exceptions, except `08P01` protocol violation | transient |
/// | `57P01`, `57P02`, `57P03`: shutting down, crashed, cannot connect now | transient |
/// | `57P05` idle session timeout, `25P03` idle-in-transaction timeout: the server has closed a connection that was idle | transient, over a new connection |
/// | `25006` read-only transaction: after a failover, the connection still leads to the old primary | transient, over a new connection |
/// | `26000` the prepared statement does not exist: another server answers, behind a failover or a pooler | transient, if the retry prepares it again |
/// | class `53`, insufficient resources, such as `53300` too many connections | throttled |
/// | anything else | permanent |
///
/// A transaction that ended with `57P05`, `25P03`, `25006` or `26000` was not committed. `25006` is also what a program gets that writes in
/// a transaction that it declared read-only; then the retries are made in vain.
///
/// `57014` query canceled and `25P04` transaction timeout are permanent: the statement or transaction took as long as it was allowed to,
/// and would again.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds() {
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
}
