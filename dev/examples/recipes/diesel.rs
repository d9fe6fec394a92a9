use diesel::result::{DatabaseErrorKind as Kind, Error};
use stagger::Outcome;

/// What the servers say of a conflict that has no kind: PostgreSQL's 40P01 and 55P03, MySQL's 1205 and 1213, SQLite's BUSY and LOCKED.
const CONFLICTS: [&str; 6] = [
    "deadlock detected",
    "could not obtain lock",
    "Lock wait timeout exceeded",
    "Deadlock found",
    "database is locked",
    "database table is locked",
];

/// By the kind of the error; diesel keeps neither SQLSTATE nor number, so a conflict without a kind is known by its message.
pub(crate) fn diesel(error: &Error) -> Outcome {
    match error {
        Error::DatabaseError(Kind::SerializationFailure | Kind::ReadOnlyTransaction | Kind::ClosedConnection, _) => {
            Outcome::TRANSIENT
        }
        Error::DatabaseError(Kind::Unknown, info) if CONFLICTS.iter().any(|text| info.message().contains(text)) => {
            Outcome::TRANSIENT
        }
        Error::RollbackErrorOnCommit { commit_error, .. } => diesel(commit_error),
        _ => Outcome::Permanent,
    }
}
