use core::fmt;

use stagger::{FailureKind, Outcome};

/// A set of gRPC's status codes: those that a policy retries, or those that do not end a hedged call.
///
/// ```
/// use stagger::Outcome;
/// use stagger_http::grpc::Codes;
///
/// let codes = Codes::of(&[14, 10]);
/// assert_eq!(codes.outcome(14), Outcome::TRANSIENT);
/// assert_eq!(codes.outcome(4), Outcome::Permanent);
/// assert_eq!(codes.to_string(), "ABORTED, UNAVAILABLE");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Codes(u32);

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Codes {
    /// None.
    pub const NONE: Self = Self(0);
    /// `UNAVAILABLE` alone: the server could not be reached, or is going away. What most methods should retry.
    pub const UNAVAILABLE: Self = Self::of(&[14]);

    /// These. Range 0 to 16; gRPC has no others, and they are left out.
    #[must_use]
    pub const fn of(codes: &[u32]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < codes.len() {
            if (codes[at] as usize) < NAMES.len() {
                set |= 1 << codes[at];
            }
            at += 1;
        }
        Self(set)
    }

    /// Whether this one is among them.
    #[must_use]
    pub const fn contains(self, code: u32) -> bool {
        code < u32::BITS && self.0 >> code & 1 == 1
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, from the smallest.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |&code| self.contains(code))
    }

    /// Their names, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().filter_map(|code| NAMES.get(code as usize).copied())
    }

    /// The number of a code by its name, in capitals or not. `None` if gRPC has none such.
    #[must_use]
    pub fn number(name: &str) -> Option<u32> {
        (0_u32..).zip(NAMES).find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(code, _)| code)
    }

    /// What a status means if these are retried: they are transient, `RESOURCE_EXHAUSTED` throttled, and what is not among
    /// them is permanent. 0 is a success.
    #[must_use]
    pub const fn outcome(self, code: u32) -> Outcome {
        const RESOURCE_EXHAUSTED: u32 = 8;
        match code {
            0 => Outcome::Success,
            _ if !self.contains(code) => Outcome::Permanent,
            RESOURCE_EXHAUSTED => Outcome::Failed { kind: FailureKind::Throttled, hint: None },
            _ => Outcome::TRANSIENT,
        }
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
