use core::error::Error;
use core::time::Duration;
use std::io::{self, ErrorKind};

use stagger::classify::links;
use stagger::{FailureKind, Outcome, ServerHint};
use stagger_terminal::output::line::short;

/// Why a target is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether it proves that the target is not ready, which `--gone` needs.
    pub(super) proof: Proof,
    /// Whether waiting may change it, which `--fail-fast` asks.
    pub(super) lasts: Lasting,
    /// The delay that a server has asked for.
    pub(super) retry_after: Option<Duration>,
}

/// Whether an attempt has got an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// Such as a refused connection.
    Certain,
    /// Such as no answer in time.
    Unknown,
}

/// Whether waiting may change a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    Passing,
    Permanent,
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), proof: Proof::Certain, lasts: Lasting::Passing, retry_after: None }
    }

    /// Creates a failure that proves nothing.
    pub(super) fn unknown(reason: impl Into<String>) -> Self {
        Self { proof: Proof::Unknown, ..Self::new(reason) }
    }

    pub(super) fn no_answer(limit: Duration) -> Self {
        Self::unknown(format!("no answer within {}", short(limit)))
    }

    pub(super) fn permanent(self) -> Self {
        Self { lasts: Lasting::Permanent, ..self }
    }

    /// Creates the failure of a lookup. Its errors have no kind, only the text of the system.
    pub(super) fn lookup(host: &str, error: &dyn Error) -> Self {
        let text = error.to_string();
        let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        let failure = Self::new(format!("cannot look up {host}: {text}"));
        // EAI_AGAIN, of glibc and of musl.
        let passing = text.contains("Temporary") || text.contains("Try again");
        if passing { Self { proof: Proof::Unknown, ..failure } } else { failure.permanent() }
    }

    pub(super) fn io(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::new("connection refused"),
            ErrorKind::ConnectionReset => Self::unknown("connection reset"),
            ErrorKind::TimedOut => Self::unknown("connection timed out"),
            ErrorKind::NotFound => Self::new("does not exist"),
            ErrorKind::PermissionDenied => Self::unknown("permission denied"),
            _ => Self::unknown(error.to_string()),
        }
    }

    /// Creates the failure of an HTTP request from the chain of its error, whose first link may contain the URL and is
    /// not printed.
    pub(super) fn request(host: &str, error: &reqwest::Error) -> Self {
        let chain: Vec<_> = links(error).collect();
        if let Some(tls) = chain.iter().find_map(|link| link.downcast_ref::<rustls::Error>()) {
            let failure = Self::unknown(format!("TLS: {tls}"));
            return if matches!(tls, rustls::Error::InvalidCertificate(_)) { failure.permanent() } else { failure };
        }
        let last = chain.last().copied();
        if chain.iter().any(|link| link.to_string() == "dns error")
            && let Some(last) = last
        {
            return Self::lookup(host, last);
        }
        if let Some(io) = chain.iter().find_map(|link| link.downcast_ref::<io::Error>())
            && io.get_ref().is_none()
        {
            return Self::io(io);
        }
        let mut texts: Vec<_> = chain.iter().skip(1).map(ToString::to_string).collect();
        // A link that says only what its cause says.
        texts.dedup();
        Self::unknown(if texts.is_empty() { "the request failed".to_owned() } else { texts.join(": ") })
    }

    /// Returns how the driver classifies it. A delay that a server asks for is bounded by `max_hint`, because a longer
    /// one would end the wait.
    pub(super) fn outcome(&self, fail_fast: bool, max_hint: Option<Duration>) -> Outcome {
        if fail_fast && self.lasts == Lasting::Permanent {
            return Outcome::Permanent;
        }
        let hint = self.retry_after.map(|after| ServerHint::AtLeast(max_hint.map_or(after, |most| after.min(most))));
        Outcome::Failed { kind: FailureKind::Transient, hint }
    }
}
