use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

use serde::Deserialize;

use crate::ReconnectAdvice;

/// What a close code means for the connection that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseAction {
    /// There is none: it ended as it should.
    End,
    /// There is none: it would end in the same way.
    Fatal,
    /// Spread, then backoff.
    Reconnect,
    /// The same, but the connection does not count as healthy, however long it lived.
    ReconnectUnhealthy,
    /// With fresh credentials, once; then fatal.
    Reauthenticate,
    /// Anywhere between these two points from now on, drawn uniformly.
    ReconnectWithin {
        /// Not before this.
        from: Duration,
        /// Not after this.
        to: Duration,
    },
}

/// A table of close codes. The first one is [`rfc6455`](super::rfc6455); what is added later counts more.
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
    /// Shared by all clients that do not change them.
    rows: Arc<Vec<(RangeInclusive<u16>, CloseAction)>>,
    reason: Reason,
}

/// What is read out of the text of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// [`ReconnectAdvice`], for codes that mean to come back.
    Stagger,
    /// Centrifugo's `{"reason": …, "reconnect": …}`, which overrules the code.
    Centrifugo,
}

impl CloseCodes {
    pub(super) fn new(reason: Reason) -> Self {
        Self { rows: Arc::default(), reason }
    }

    /// Nothing more is tried after this code.
    #[must_use]
    pub fn fatal(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Fatal)
    }

    /// After this code it is connected again: spread, then backoff.
    #[must_use]
    pub fn reconnect(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Reconnect)
    }

    /// After this code the request is asked for again with the refusal, once; then it is fatal.
    #[must_use]
    pub fn reauthenticate(self, code: u16) -> Self {
        self.on(code..=code, CloseAction::Reauthenticate)
    }

    /// After one of these codes, this.
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

    /// What this close frame means.
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
