use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

use serde::Deserialize;

use crate::advice::ReconnectAdvice;

/// How the client reacts to a close code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseAction {
    /// Does not reconnect: a normal end.
    End,
    /// Does not reconnect: the connection would be closed again.
    Fatal,
    /// Reconnects after the spread, then with backoff.
    Reconnect,
    /// Reconnects after the spread plus the backoff, which continues: the connection does not count as healthy, however
    /// long it was up.
    ReconnectUnhealthy,
    /// Reconnects with fresh credentials, once; then fatal.
    Reauthenticate,
    /// Reconnects at a time drawn uniformly from this interval, measured from the close.
    ReconnectWithin {
        /// The minimum wait.
        from: Duration,
        /// The maximum wait.
        to: Duration,
    },
}

/// A table of close codes. Start with [`rfc6455`](super::rfc6455) and change it; later entries take precedence.
///
/// ```
/// use stagger_ws::codes::{self, CloseAction};
///
/// let codes = codes::rfc6455().fatal(4401).reauthenticate(4403);
/// assert_eq!(codes.action(4401, ""), CloseAction::Fatal);
/// assert_eq!(codes.action(4402, ""), CloseAction::Reconnect);
/// ```
#[derive(Clone, Debug)]
pub struct CloseCodes {
    /// Shared by all clients that use the same table.
    rows: Arc<Vec<(RangeInclusive<u16>, CloseAction)>>,
    reason: Reason,
}

/// What is read from the close reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// [`ReconnectAdvice`], for codes that reconnect.
    Stagger,
    /// Centrifugo's `{"reason": …, "reconnect": …}`, which takes precedence over the code.
    Centrifugo,
}

impl CloseCodes {
    pub(super) fn new(reason: Reason) -> Self {
        Self { rows: Arc::default(), reason }
    }

    /// Makes a code fatal: the client does not reconnect.
    #[must_use]
    pub fn fatal(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Fatal)
    }

    /// Makes the client reconnect after this code: spread, then backoff.
    #[must_use]
    pub fn reconnect(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Reconnect)
    }

    /// Makes the client reconnect with fresh credentials after this code, once; then the code is fatal.
    #[must_use]
    pub fn reauthenticate(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Reauthenticate)
    }

    /// Sets the action for a range of codes.
    #[must_use]
    pub fn on(mut self, codes: RangeInclusive<u16>, then: CloseAction) -> Self {
        Arc::make_mut(&mut self.rows).push((codes, then));
        self
    }

    pub(in crate::client) fn shrink(&mut self) {
        if let Some(rows) = Arc::get_mut(&mut self.rows) {
            rows.shrink_to_fit();
        }
    }

    /// Returns the action for a close frame with this code and reason.
    #[must_use]
    pub fn action(&self, code: u16, reason: &str) -> CloseAction {
        let row = self.rows.iter().rev().find(|(codes, _)| codes.contains(&code));
        let meaning = row.map_or(CloseAction::Reconnect, |&(_, meaning)| meaning);
        match (self.reason, meaning) {
            (Reason::Stagger, CloseAction::End | CloseAction::Fatal | CloseAction::Reauthenticate) => meaning,
            (Reason::Stagger, _) => advised(reason).unwrap_or(meaning),
            (Reason::Centrifugo, _) => match serde_json::from_str(reason) {
                Ok(Centrifugo { reconnect: false }) => CloseAction::Fatal,
                Ok(Centrifugo { reconnect: true }) if meaning == CloseAction::Fatal => CloseAction::Reconnect,
                _ => meaning,
            },
        }
    }
}

fn advised(reason: &str) -> Option<CloseAction> {
    let ReconnectAdvice { retry_after, spread } = ReconnectAdvice::from_reason(reason)?;
    Some(CloseAction::ReconnectWithin { from: retry_after, to: retry_after.saturating_add(spread) })
}

#[derive(Deserialize)]
struct Centrifugo {
    reconnect: bool,
}
