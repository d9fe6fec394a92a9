//! Classification of I/O errors, by their kind, their number or their message.

use std::io::{Error, ErrorKind};

use stagger_core::{FailureKind, Outcome};

/// Classifies an I/O error.
///
/// | error | outcome |
/// |---|---|
/// | refused, reset, aborted, broken pipe, unexpected end of file | transient |
/// | timed out; would block, which is how Unix reports that a socket's read or write timeout has elapsed | transient |
/// | host or network unreachable, network down | transient |
/// | a signal interrupted the call | transient |
/// | a name lookup failed, whatever the resolver says of the name: it may be created, or the answer be wrong | transient |
/// | too many open files (`EMFILE`, `ENFILE`), no buffer space (`ENOBUFS`) | local exhaustion |
/// | no free local address or port | local exhaustion |
/// | anything else: not found, permission denied, invalid input, … | permanent |
///
/// Delays after local exhaustion start from the policy's `local_base`, and it is never counted against the server. A
/// failed lookup is recognized by its message, which is all that the standard library and clients provide. If an
/// unknown name is a typing mistake to you, say so with a rule: `.when(|error| ..)`.
#[must_use]
pub fn io(error: &Error) -> Outcome {
    if error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code)) {
        return LOCAL;
    }
    match error.kind() {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::TimedOut
        | ErrorKind::WouldBlock
        | ErrorKind::UnexpectedEof
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::Interrupted => Outcome::TRANSIENT,
        _ if is_failed_lookup(error) => Outcome::TRANSIENT,
        ErrorKind::AddrNotAvailable => LOCAL,
        _ => Outcome::Permanent,
    }
}

const LOCAL: Outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };

/// `EMFILE`, `ENFILE`, `ENOBUFS`.
#[cfg(any(target_os = "linux", target_os = "android"))]
const EXHAUSTED: [i32; 3] = [24, 23, 105];
/// `WSAEMFILE`, `ERROR_TOO_MANY_OPEN_FILES`, `WSAENOBUFS`.
#[cfg(windows)]
const EXHAUSTED: [i32; 3] = [10024, 4, 10055];
/// `EMFILE`, `ENFILE`, `ENOBUFS` of the BSDs and macOS.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
const EXHAUSTED: [i32; 3] = [24, 23, 55];

/// `WSAHOST_NOT_FOUND`, `WSATRY_AGAIN`, `WSANO_RECOVERY`, `WSANO_DATA`, whose messages are in the user's language.
#[cfg(windows)]
const LOOKUP: [i32; 4] = [11001, 11002, 11003, 11004];
/// Elsewhere the numbers of `getaddrinfo` are no error numbers, and are lost.
#[cfg(not(windows))]
const LOOKUP: [i32; 0] = [];

/// What the messages of failed lookups contain. Nearly all begin with that of the standard library; the others are of
/// lookups that have found no address, and have a kind that says something else.
const FAILED_LOOKUPS: [&str; 8] = [
    "failed to lookup address information",
    // Windows, in an error that is known by its message alone.
    "No such host is known",
    // The standard library, tokio and redis.
    "could not resolve to any address",
    // tokio-postgres.
    "could not resolve any addresses",
    // sqlx.
    "did not resolve to any addresses",
    // hyper-util, in an error of the kind `NotConnected`.
    "Network unreachable",
    // hickory, since version 0.25 and before.
    "no records found for Query",
    "no record found for Query",
];

/// Classifies an error that is only known by its message: that of an operating system error, of an [`ErrorKind`], or of
/// the resolver.
pub(super) fn by_message(message: &str) -> Option<Outcome> {
    let kinds = KINDS.iter().map(|kind| Error::from(*kind));
    for error in os_error(message).into_iter().chain(kinds) {
        if error.to_string() == message {
            return Some(io(&error));
        }
    }
    if is_lookup_message(message) { Some(Outcome::TRANSIENT) } else { None }
}

/// Returns the operating system's error whose number ends this message.
fn os_error(message: &str) -> Option<Error> {
    let (_, code) = message.strip_suffix(')')?.rsplit_once("(os error ")?;
    Some(Error::from_raw_os_error(code.parse().ok()?))
}

/// The kinds that an error of the standard library has without a message of its own.
const KINDS: [ErrorKind; 19] = [
    ErrorKind::NotFound,
    ErrorKind::PermissionDenied,
    ErrorKind::ConnectionRefused,
    ErrorKind::ConnectionReset,
    ErrorKind::HostUnreachable,
    ErrorKind::NetworkUnreachable,
    ErrorKind::ConnectionAborted,
    ErrorKind::NotConnected,
    ErrorKind::AddrInUse,
    ErrorKind::AddrNotAvailable,
    ErrorKind::NetworkDown,
    ErrorKind::BrokenPipe,
    ErrorKind::AlreadyExists,
    ErrorKind::TimedOut,
    ErrorKind::InvalidInput,
    ErrorKind::InvalidData,
    ErrorKind::Unsupported,
    ErrorKind::UnexpectedEof,
    ErrorKind::Interrupted,
];

/// Returns whether this is the error of a name lookup.
fn is_failed_lookup(error: &Error) -> bool {
    match error.raw_os_error() {
        Some(code) => LOOKUP.contains(&code),
        // The message is the standard library's or a client's own, not the system's.
        None => is_lookup_message(&error.to_string()),
    }
}

fn is_lookup_message(message: &str) -> bool {
    FAILED_LOOKUPS.iter().any(|phrase| message.contains(phrase))
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs;

    use super::*;

    #[test]
    fn every_kind_of_the_table_has_its_outcome() {
        for (kind, want) in [
            (ErrorKind::ConnectionRefused, Outcome::TRANSIENT),
            (ErrorKind::ConnectionReset, Outcome::TRANSIENT),
            (ErrorKind::ConnectionAborted, Outcome::TRANSIENT),
            (ErrorKind::BrokenPipe, Outcome::TRANSIENT),
            (ErrorKind::TimedOut, Outcome::TRANSIENT),
            (ErrorKind::WouldBlock, Outcome::TRANSIENT),
            (ErrorKind::UnexpectedEof, Outcome::TRANSIENT),
            (ErrorKind::HostUnreachable, Outcome::TRANSIENT),
            (ErrorKind::NetworkUnreachable, Outcome::TRANSIENT),
            (ErrorKind::NetworkDown, Outcome::TRANSIENT),
            (ErrorKind::Interrupted, Outcome::TRANSIENT),
            (ErrorKind::AddrNotAvailable, LOCAL),
            (ErrorKind::NotFound, Outcome::Permanent),
            (ErrorKind::PermissionDenied, Outcome::Permanent),
            (ErrorKind::InvalidInput, Outcome::Permanent),
            (ErrorKind::AddrInUse, Outcome::Permanent),
            (ErrorKind::OutOfMemory, Outcome::Permanent),
            (ErrorKind::Other, Outcome::Permanent),
        ] {
            assert_eq!(io(&kind.into()), want, "{kind:?}");
        }
    }

    #[test]
    fn local_exhaustion_is_recognized_by_its_error_number() {
        for code in EXHAUSTED {
            assert_eq!(io(&Error::from_raw_os_error(code)), LOCAL, "{code}");
        }
    }

    #[test]
    fn every_failed_lookup_is_transient() {
        // As glibc, musl, Apple and the BSDs say it.
        for detail in [
            "Name or service not known",
            "No address associated with hostname",
            "Name does not resolve",
            "Name has no usable address",
            "nodename nor servname provided, or not known",
            "Non-recoverable failure in name resolution",
            "Temporary failure in name resolution",
            "Try again",
            "Name server failure",
        ] {
            let error = Error::other(format!("failed to lookup address information: {detail}"));
            assert_eq!(io(&error), Outcome::TRANSIENT, "{detail}");
            assert_eq!(by_message(&error.to_string()), Some(Outcome::TRANSIENT), "{detail}");
        }
        assert_eq!(io(&Error::other("No such host is known. (os error 11001)")), Outcome::TRANSIENT);
        for code in LOOKUP {
            assert_eq!(io(&Error::from_raw_os_error(code)), Outcome::TRANSIENT, "{code}");
        }
        // The real resolver's message: either of two, with or without a network.
        let error = "name.invalid:80".to_socket_addrs().unwrap_err();
        assert_eq!(io(&error), Outcome::TRANSIENT, "{error:?}");
    }

    #[test]
    fn a_lookup_without_an_address_is_transient_whatever_its_kind() {
        for (kind, message) in [
            (ErrorKind::InvalidInput, "could not resolve to any addresses"),
            (ErrorKind::InvalidInput, "could not resolve to any address"),
            (ErrorKind::InvalidInput, "could not resolve any addresses"),
            (ErrorKind::AddrNotAvailable, "Hostname did not resolve to any addresses"),
            (ErrorKind::NotConnected, "Network unreachable"),
            (ErrorKind::Other, "no records found for Query { name: Name(\"a.test.\") }"),
        ] {
            assert_eq!(io(&Error::new(kind, message)), Outcome::TRANSIENT, "{message}");
        }
        for (kind, message, want) in [
            (ErrorKind::InvalidInput, "invalid port value", Outcome::Permanent),
            (ErrorKind::InvalidInput, "file name contained an unexpected NUL byte", Outcome::Permanent),
            (ErrorKind::AddrNotAvailable, "no port left", LOCAL),
            (ErrorKind::NotConnected, "not connected", Outcome::Permanent),
        ] {
            assert_eq!(io(&Error::new(kind, message)), want, "{message}");
        }
    }
}
