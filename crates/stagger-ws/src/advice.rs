use core::time::Duration;

use serde::{Deserialize, Serialize};

/// The most that a close frame has room for, beside its code: RFC 6455, section 5.5.
const MAX_REASON: usize = 123;

/// When a server that closes a connection wants its client back: not before `retry_after`, and then anywhere within
/// `spread`.
///
/// It travels as the reason of a close frame with code 1012 or 1013, as JSON of at most 123 bytes:
/// `{"retry_after_ms":8000,"spread_ms":20000}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Not before this has passed since the close.
    pub retry_after: Duration,
    /// How far beyond that the clients are spread, uniformly.
    pub spread: Duration,
}

/// What is on the wire. Fields that are not known are left alone, so that a server may say more.
#[derive(Serialize, Deserialize)]
struct Wire {
    retry_after_ms: u64,
    #[serde(default)]
    spread_ms: u64,
}

impl Advice {
    /// The reason of a close frame that says this: never more than 123 bytes. Parts of a millisecond are rounded up.
    #[must_use]
    pub fn to_reason(self) -> String {
        let wire = Wire { retry_after_ms: millis(self.retry_after), spread_ms: millis(self.spread) };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// What the reason of a close frame says, if it is such advice; `None` for any other text.
    #[must_use]
    pub fn from_reason(reason: &str) -> Option<Self> {
        if reason.len() > MAX_REASON {
            return None;
        }
        let wire: Wire = serde_json::from_str(reason).ok()?;
        Some(Self {
            retry_after: Duration::from_millis(wire.retry_after_ms),
            spread: Duration::from_millis(wire.spread_ms),
        })
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
