use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

use serde::Deserialize;

use crate::Advice;

/// What a close code means for the connection that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnClose {
    /// There is none: it ended as it should.
    End,
    /// There is none: it would end in the same way.
    Fatal,
    /// Spread, then backoff.
    Reconnect,
    /// The same, but the connection does not count as healthy, however long it lived.
    Broken,
    /// With fresh credentials, once; then fatal.
    Refresh,
    /// Anywhere between these two points from now on, drawn uniformly.
    Within {
        /// Not before this.
        from: Duration,
        /// Not after this.
        to: Duration,
    },
}

/// A table of close codes. The first one is [`rfc6455`](super::rfc6455); what is added later counts more.
///
/// ```
/// use stagger_ws::codes::{self, OnClose};
///
/// let codes = codes::rfc6455().fatal(4401).refresh(4403);
/// assert_eq!(codes.meaning(4401, ""), OnClose::Fatal);
/// assert_eq!(codes.meaning(4402, ""), OnClose::Reconnect);
/// ```
#[derive(Clone, Debug)]
pub struct Codes {
    /// Shared by all clients that do not change them.
    rows: Arc<Vec<(RangeInclusive<u16>, OnClose)>>,
    reason: Reason,
}

/// What is read out of the text of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// [`Advice`], for codes that mean to come back.
    Stagger,
    /// Centrifugo's `{"reason": …, "reconnect": …}`, which overrules the code.
    Centrifugo,
}

impl Codes {
    pub(super) fn new(reason: Reason) -> Self {
        Self { rows: Arc::default(), reason }
    }

    /// Nothing more is tried after this code.
    #[must_use]
    pub fn fatal(self, code: u16) -> Self {
        self.on(code..=code, OnClose::Fatal)
    }

    /// After this code it is connected again: spread, then backoff.
    #[must_use]
    pub fn reconnect(self, code: u16) -> Self {
        self.on(code..=code, OnClose::Reconnect)
    }

    /// After this code the request is asked for again with the refusal, once; then it is fatal.
    #[must_use]
    pub fn refresh(self, code: u16) -> Self {
        self.on(code..=code, OnClose::Refresh)
    }

    /// After one of these codes, this.
    #[must_use]
    pub fn on(mut self, codes: RangeInclusive<u16>, then: OnClose) -> Self {
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
    pub fn meaning(&self, code: u16, reason: &str) -> OnClose {
        let row = self.rows.iter().rev().find(|(codes, _)| codes.contains(&code));
        let meaning = row.map_or(OnClose::Reconnect, |&(_, meaning)| meaning);
        match (self.reason, meaning) {
            (Reason::Stagger, OnClose::End | OnClose::Fatal | OnClose::Refresh) => meaning,
            (Reason::Stagger, _) => advised(reason).unwrap_or(meaning),
            (Reason::Centrifugo, _) => match serde_json::from_str(reason) {
                Ok(Centrifugo { reconnect: false }) => OnClose::Fatal,
                Ok(Centrifugo { reconnect: true }) if meaning == OnClose::Fatal => OnClose::Reconnect,
                _ => meaning,
            },
        }
    }
}

fn advised(reason: &str) -> Option<OnClose> {
    let Advice { retry_after, spread } = Advice::from_reason(reason)?;
    Some(OnClose::Within { from: retry_after, to: retry_after.saturating_add(spread) })
}

#[derive(Deserialize)]
struct Centrifugo {
    reconnect: bool,
}
