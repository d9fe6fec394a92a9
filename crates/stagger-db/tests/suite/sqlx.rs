//! The table of `stagger_db::sqlx`, row by row.

use core::fmt;
use std::borrow::Cow;
use std::io;

use sqlx::Error;
use sqlx::error::{DatabaseError, ErrorKind};
use stagger::{FailureKind, Outcome};

/// A driver's representation of a server's error message, by its SQLSTATE.
#[derive(Debug)]
struct Reply(Option<&'static str>);

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("server error")
    }
}

impl core::error::Error for Reply {}

impl DatabaseError for Reply {
    fn message(&self) -> &str {
        "server error"
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        self.0.map(Cow::Borrowed)
    }

    fn as_error(&self) -> &(dyn core::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn core::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn core::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

const LOCAL: Outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };

#[test]
fn a_database_error_is_classified_by_its_sqlstate() {
    for (code, want) in [
        (Some("40001"), Outcome::TRANSIENT),
        (Some("40P01"), Outcome::TRANSIENT),
        (Some("53300"), Outcome::throttled(None)),
        (Some("57P03"), Outcome::TRANSIENT),
        (Some("08006"), Outcome::TRANSIENT),
        (Some("23505"), Outcome::Permanent),
        (Some("25006"), Outcome::TRANSIENT),
        (None, Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::sqlx(&Error::from(Reply(code))), want, "{code:?}");
    }
}

#[test]
fn an_error_of_sqlite_is_classified_by_its_result_code() {
    for (code, want) in [
        ("5", Outcome::TRANSIENT),
        ("517", Outcome::TRANSIENT),
        ("6", Outcome::TRANSIENT),
        ("1555", Outcome::Permanent),
        ("1", Outcome::Permanent),
        // An SQLSTATE whose low byte is that of SQLITE_BUSY.
        ("22021", Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::sqlx(&Error::from(Reply(Some(code)))), want, "{code}");
    }
}

#[test]
fn lost_connections_are_transient_pool_timeouts_local_and_usage_errors_permanent() {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    for (error, want) in [
        (Error::Io(refused()), Outcome::TRANSIENT),
        (Error::Io(io::ErrorKind::UnexpectedEof.into()), Outcome::TRANSIENT),
        (Error::Io(io::ErrorKind::PermissionDenied.into()), Outcome::Permanent),
        (Error::Io(io::ErrorKind::AddrNotAvailable.into()), LOCAL),
        (Error::Tls(Box::new(refused())), Outcome::TRANSIENT),
        (Error::Tls("the certificate is for another host".into()), Outcome::Permanent),
        (Error::AnyDriverError(Box::new(refused())), Outcome::TRANSIENT),
        (Error::PoolTimedOut, LOCAL),
        (Error::PoolClosed, Outcome::Permanent),
        (Error::RowNotFound, Outcome::Permanent),
        (Error::Protocol("unexpected message".to_owned()), Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::sqlx(&error), want, "{error}");
    }
}
