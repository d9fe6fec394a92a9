use stagger_core::{FailureKind, Outcome};

/// Classifies an SQLSTATE, given that the whole transaction is run again.
///
/// | SQLSTATE | outcome |
/// |---|---|
/// | `40001` serialization failure, `40P01` deadlock, `55P03` lock not available | transient |
/// | class `08`, connection exceptions, except `08P01` protocol violation | transient |
/// | `57P01`, `57P02`, `57P03`: shutting down, crashed, cannot connect now | transient |
/// | class `53`, insufficient resources, such as `53300` too many connections | throttled |
/// | anything else | permanent |
///
/// Source: PostgreSQL, appendix A; the classes are those of the SQL standard.
#[must_use]
pub fn sqlstate(code: &str) -> Outcome {
    match code {
        "08P01" => Outcome::Permanent,
        "40001" | "40P01" | "55P03" | "57P01" | "57P02" | "57P03" => Outcome::TRANSIENT,
        _ if code.starts_with("08") => Outcome::TRANSIENT,
        _ if code.starts_with("53") => Outcome::Failed { kind: FailureKind::Throttled, hint: None },
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
            ("57014", Outcome::Permanent),
            ("53300", throttled),
            ("23505", Outcome::Permanent),
            ("", Outcome::Permanent),
        ] {
            assert_eq!(sqlstate(code), want, "{code}");
        }
    }
}
