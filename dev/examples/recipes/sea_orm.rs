use sea_orm::{DbErr, RuntimeErr};
use stagger::{FailureKind, Outcome};

/// By the error of sqlx inside; SeaORM 2 and `stagger-db` use the same version of it.
pub(crate) fn sea_orm(error: &DbErr) -> Outcome {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => stagger_db::sqlx(error),
        // All connections of the pool are in use.
        DbErr::ConnectionAcquire(_) => Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
        _ => Outcome::Permanent,
    }
}
