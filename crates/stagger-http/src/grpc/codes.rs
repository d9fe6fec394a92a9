use core::fmt;

use stagger::{FailureKind, Outcome};

/// A set of gRPC status codes: the retryable codes of a policy, or the non-fatal codes of a hedged call.
///
/// ```
/// use stagger::Outcome;
/// use stagger_http::grpc::Codes;
///
/// let codes = Codes::new(&[14, 10]);
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
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// `UNAVAILABLE` only: the server cannot be reached or is shutting down. The right set for most methods.
    pub const UNAVAILABLE: Self = Self::new(&[14]);

    /// Creates a set of these codes. Range 0 to 16; other numbers are not gRPC codes and are ignored.
    #[must_use]
    pub const fn new(codes: &[u32]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < codes.len() {
            if (codes[at] as usize) < NAMES.len() {
                set |= 1 << codes[at];
            }
            at += 1;
        }
        Self(set)
    }

    /// Returns whether the set contains `code`.
    #[must_use]
    pub const fn contains(self, code: u32) -> bool {
        code < u32::BITS && self.0 >> code & 1 == 1
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the numbers of the codes, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |&code| self.contains(code))
    }

    /// Returns the names of the codes, in the order of their numbers.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().filter_map(|code| NAMES.get(code as usize).copied())
    }

    /// Returns the number of the code with this name, ignoring case, or `None` if gRPC has no such code.
    #[must_use]
    pub fn code_from_name(name: &str) -> Option<u32> {
        (0_u32..).zip(NAMES).find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(code, _)| code)
    }

    /// Classifies a status with these codes as the retryable ones: a code in the set is transient (`RESOURCE_EXHAUSTED`:
    /// throttled), any other is permanent, and 0 is a success.
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
