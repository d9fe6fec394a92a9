use stagger_core::{FailureKind, Outcome};

/// Classifies an error of MongoDB by its labels and its code, given that the whole transaction is run again, or an operation that
/// may be executed twice. The first row that applies decides:
///
/// | label or code | outcome |
/// |---|---|
/// | `UnknownTransactionCommitResult` | unsafe to retry: the transaction may be committed. Repeat the commit alone |
/// | `SystemOverloadedError`; 462 the server's limit of requests | throttled |
/// | `TransientTransactionError` | transient: the whole transaction |
/// | `RetryableWriteError`, `RetryableError` | transient |
/// | 10107, 13435 and 13436 not the primary, 189 it steps down, 11602 the replica set changes, 91 and 11600 shutting down | transient |
/// | 6 and 7 a host cannot be reached, 89 network timeout, 9001 socket, 262 time limit inside the cluster, 134 majority not available yet | transient |
/// | 112 write conflict | transient |
/// | anything else | permanent |
///
/// The driver repeats most reads and writes once by itself, without a delay, before it reports the error. A repeated `insertOne` of
/// the driver carries the transaction number of the first, so that the server executes it once; a retry of the caller is a new
/// operation, so give the document its `_id` before the first attempt.
///
/// Source: MongoDB's specifications "Transactions", "Retryable Writes", "Retryable Reads" and "Client Backpressure".
#[must_use]
pub fn mongodb<L: AsRef<str>>(labels: impl IntoIterator<Item = L>, code: Option<i32>) -> Outcome {
    let by_labels = labels.into_iter().filter_map(|label| Verdict::of_label(label.as_ref()));
    match by_labels.chain(code.and_then(Verdict::of_code)).max() {
        Some(Verdict::UnknownCommit) => Outcome::UnsafeToRetry(FailureKind::Transient),
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

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Outcome = Outcome::UnsafeToRetry(FailureKind::Transient);

    #[test]
    fn the_table_holds_for_every_label() {
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
    fn a_commit_with_an_unknown_result_is_not_run_again_whatever_else_is_said() {
        // A network error during the commit has both labels.
        let labels = ["RetryableWriteError", "SystemOverloadedError", "UnknownTransactionCommitResult"];
        assert_eq!(mongodb(labels, Some(91)), UNKNOWN);
        assert_eq!(mongodb(labels.iter().rev(), Some(462)), UNKNOWN);
    }

    #[test]
    fn the_table_holds_for_every_code() {
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
    fn label_and_code_are_both_read() {
        assert_eq!(mongodb(["RetryableWriteError"], Some(11_000)), Outcome::TRANSIENT);
        assert_eq!(mongodb(["TransientTransactionError"], Some(462)), Outcome::throttled(None));
        assert_eq!(mongodb(["NetworkError"], Some(189)), Outcome::TRANSIENT);
    }
}
