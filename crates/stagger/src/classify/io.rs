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
/// | the resolver failed | transient |
/// | the resolver reports an unknown name | permanent |
/// | too many open files (`EMFILE`, `ENFILE`), no buffer space (`ENOBUFS`) | local exhaustion |
/// | no free local address or port | local exhaustion |
/// | anything else: not found, permission denied, invalid input, … | permanent |
///
/// Delays after local exhaustion start from the policy's `local_base`, and it is never counted against the server. A
/// resolver failure is recognized by its message, which is all that the standard library provides.
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
        | ErrorKind::NetworkDown => Outcome::TRANSIENT,
        ErrorKind::AddrNotAvailable => LOCAL,
        _ => resolver(error).unwrap_or(Outcome::Permanent),
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

/// Messages of `getaddrinfo` for an unknown name: glibc, its older message, musl, Apple and the BSDs, Windows.
const UNKNOWN_NAME: [&str; 6] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "nodename nor servname provided",
    "Name has no usable address",
    "No such host is known",
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
    lookup(message)
}

/// Returns the operating system's error whose number ends this message.
fn os_error(message: &str) -> Option<Error> {
    let (_, code) = message.strip_suffix(')')?.rsplit_once("(os error ")?;
    Some(Error::from_raw_os_error(code.parse().ok()?))
}

/// The kinds that an error of the standard library has without a message of its own.
const KINDS: [ErrorKind; 18] = [
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
];

/// Classifies a failed name lookup; `None` if the error is something else.
fn resolver(error: &Error) -> Option<Outcome> {
    // The message is the standard library's own, not the system's; most errors return here.
    if error.raw_os_error().is_none() { lookup(&error.to_string()) } else { None }
}

/// Classifies the message of a failed name lookup; `None` if it is something else.
fn lookup(message: &str) -> Option<Outcome> {
    if !message.contains("failed to lookup address information") && !message.contains("No such host is known") {
        return None;
    }
    let unknown = UNKNOWN_NAME.iter().any(|phrase| message.contains(phrase));
    Some(if unknown { Outcome::Permanent } else { Outcome::TRANSIENT })
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
    fn unknown_names_are_permanent_and_resolver_failures_transient() {
        let failed = |detail| Error::other(format!("failed to lookup address information: {detail}"));
        for (detail, want) in [
            ("Name or service not known", Outcome::Permanent),
            ("No address associated with hostname", Outcome::Permanent),
            ("Name does not resolve", Outcome::Permanent),
            ("nodename nor servname provided, or not known", Outcome::Permanent),
            ("Name has no usable address", Outcome::Permanent),
            ("Temporary failure in name resolution", Outcome::TRANSIENT),
            ("Try again", Outcome::TRANSIENT),
            ("Name server failure", Outcome::TRANSIENT),
        ] {
            assert_eq!(io(&failed(detail)), want, "{detail}");
        }
        assert_eq!(io(&Error::other("No such host is known. (os error 11001)")), Outcome::Permanent);
        assert_eq!(by_message(&failed("Name or service not known").to_string()), Some(Outcome::Permanent));
        // The real resolver's message: either of the two, with or without a network.
        let error = "name.invalid:80".to_socket_addrs().unwrap_err();
        assert!(resolver(&error).is_some(), "{error:?}");
    }
}
