use stagger_core::Outcome;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_for_every_code() {
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
}
