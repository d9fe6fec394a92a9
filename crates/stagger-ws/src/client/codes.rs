//! The meaning of close codes: registered codes, and presets for protocols with private codes.
//!
//! The meaning of codes from 4000 on depends on the protocol: Centrifugo reconnects after 4401, graphql-ws does not.
//! They have no special meaning unless you choose a preset: [`graphql_ws`], [`centrifugo`], [`pusher`], [`discord`].
//!
//! | code | action in [`rfc6455`] |
//! |---|---|
//! | 1000 | normal end, no error; change it with [`CloseCodes::reconnect`] |
//! | 1001, 1005, 1014, and all codes not listed | reconnect: spread, then backoff |
//! | 1011 | reconnect; the connection does not count as healthy, however long it was up |
//! | 1012 service restart | reconnect after 5 to 30 s, or as the [advice](crate::ReconnectAdvice) in the reason says |
//! | 1013 try again later | reconnect after 30 to 120 s, or as the advice in the reason says |
//! | 1002, 1003, 1007, 1008, 1009, 1010 | fatal: the same bytes would fail again |
//! | 1015 | fatal |
//! | 3000 unauthorized, 3003 forbidden | reconnect with fresh credentials, once per healthy connection; then fatal |
//!
//! Sources: RFC 6455, section 7.4.1; the IANA registry "WebSocket Close Code Number"; for 1012 and 1013, the messages
//! on the hybi list that the registry refers to.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::{Arc, LazyLock};

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
    /// Reconnects with fresh credentials, once; then fatal. After a healthy connection, once again: its credentials had
    /// been accepted, and have expired.
    Reauthenticate,
    /// Reconnects at a time drawn uniformly from this interval, measured from the close.
    ReconnectWithin {
        /// The minimum wait.
        from: Duration,
        /// The maximum wait.
        to: Duration,
    },
}

/// A table of close codes. Start with [`rfc6455`](rfc6455) and change it; later entries take precedence.
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
enum Reason {
    /// [`ReconnectAdvice`], for codes that reconnect.
    Stagger,
    /// Centrifugo's `{"reason": …, "reconnect": …}`, which takes precedence over the code.
    Centrifugo,
}

impl CloseCodes {
    fn new(reason: Reason) -> Self {
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

    pub(super) fn shrink(&mut self) {
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

/// Returns the registered codes. Private codes have no special meaning; see the [table](self).
#[must_use]
pub fn rfc6455() -> CloseCodes {
    static CODES: LazyLock<CloseCodes> = LazyLock::new(|| {
        waiting(CloseCodes::new(Reason::Stagger))
            .on(1000..=1000, CloseAction::End)
            .on(1002..=1003, CloseAction::Fatal)
            .on(1007..=1010, CloseAction::Fatal)
            .on(1011..=1011, CloseAction::ReconnectUnhealthy)
            .on(1015..=1015, CloseAction::Fatal)
            .on(3000..=3000, CloseAction::Reauthenticate)
            .on(3003..=3003, CloseAction::Reauthenticate)
    });
    CODES.clone()
}

/// Adds the waits for 1012 and 1013 from the messages that the registry refers to.
fn waiting(codes: CloseCodes) -> CloseCodes {
    let within =
        |from, to| CloseAction::ReconnectWithin { from: Duration::from_secs(from), to: Duration::from_secs(to) };
    codes.on(1012..=1012, within(5, 30)).on(1013..=1013, within(30, 120))
}

/// Returns the codes of the protocol `graphql-transport-ws`, as the client of the package graphql-ws 6 handles them.
/// Fatal: all codes below 2000 except 1000, 1001, 1005, 1006, 1012, 1013 and 1014; and 4004, 4005, 4400, 4401, 4406,
/// 4409, 4429 and 4500.
///
/// Source: `shouldRetryConnectOrThrow` in <https://github.com/enisdenjo/graphql-ws/blob/master/src/client.ts>. Differs
/// from it in: 1012 and 1013 wait as in [`rfc6455`].
#[must_use]
pub fn graphql_ws() -> CloseCodes {
    let codes = rfc6455().on(1000..=1001, CloseAction::Reconnect).on(1011..=1011, CloseAction::Fatal).fatal(1004);
    let codes = codes.on(1016..=1999, CloseAction::Fatal);
    [4004, 4005, 4400, 4401, 4406, 4409, 4429, 4500].into_iter().fold(codes, CloseCodes::fatal)
}

/// Returns the codes of Centrifugo. Below 3000, only 1009 is fatal; 3000 to 3499 and 4000 to 4499 reconnect; 3500 to
/// 3999 and 4500 to 4999 are fatal. A reason `{"reason": …, "reconnect": …}` takes precedence over the code.
///
/// Source: <https://centrifugal.dev/docs/server/codes> and `onClose` in
/// <https://github.com/centrifugal/centrifuge-js/blob/master/src/centrifuge.ts>. Differs from it in: 1012 and 1013 wait
/// as in [`rfc6455`].
#[must_use]
pub fn centrifugo() -> CloseCodes {
    waiting(CloseCodes::new(Reason::Centrifugo))
        .fatal(1009)
        .on(3500..=3999, CloseAction::Fatal)
        .on(4500..=4999, CloseAction::Fatal)
}

/// Returns the codes of Pusher Channels. 4000 to 4099 are fatal; 4100 to 4299 reconnect; from 4300 on they are fatal.
///
/// Source: <https://pusher.com/docs/channels/library_auth_reference/pusher-websockets-protocol>, "Connection closure".
/// Differs from it in: after 4200 to 4299 clients reconnect with a spread. The protocol says "immediately", but all
/// clients receive the code at once.
#[must_use]
pub fn pusher() -> CloseCodes {
    rfc6455().on(4000..=4099, CloseAction::Fatal).on(4300..=4999, CloseAction::Fatal)
}

/// Returns the codes of Discord's gateway. 4004 and 4010 to 4014 are fatal; all other codes reconnect, including 1000
/// and 1001.
///
/// Source: <https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes>.
/// Starting a new session (after 4007 and 4009) is up to the application.
#[must_use]
pub fn discord() -> CloseCodes {
    rfc6455().on(1000..=1001, CloseAction::Reconnect).fatal(4004).on(4010..=4014, CloseAction::Fatal)
}

#[cfg(test)]
mod tests {
    use CloseAction::{End, Fatal, Reauthenticate, Reconnect, ReconnectUnhealthy};

    use super::*;

    const fn within(from: u64, to: u64) -> CloseAction {
        CloseAction::ReconnectWithin { from: Duration::from_secs(from), to: Duration::from_secs(to) }
    }

    #[test]
    fn each_preset_means_what_its_source_says() {
        for (name, codes, rows) in [
            (
                "rfc6455",
                rfc6455(),
                &[
                    (End, &[1000][..]),
                    (Reconnect, &[1001, 1005, 1014, 3008, 4000, 4401, 4999]),
                    (ReconnectUnhealthy, &[1011]),
                    (Fatal, &[1002, 1003, 1007, 1008, 1009, 1010, 1015]),
                    (within(5, 30), &[1012]),
                    (within(30, 120), &[1013]),
                    (Reauthenticate, &[3000, 3003]),
                ][..],
            ),
            (
                "graphql_ws",
                graphql_ws(),
                &[
                    (Reconnect, &[1000, 1005, 4403, 4408, 4499, 4504]),
                    (Fatal, &[1008, 1011, 4400, 4401, 4429, 4500]),
                    (within(5, 30), &[1012]),
                ],
            ),
            (
                "centrifugo",
                centrifugo(),
                &[(Reconnect, &[1000, 1008, 3000, 3499, 4401]), (Fatal, &[1009, 3500, 3999, 4500])],
            ),
            ("pusher", pusher(), &[(End, &[1000]), (Reconnect, &[4100, 4200]), (Fatal, &[4001, 4301])]),
            ("discord", discord(), &[(Reconnect, &[1000, 4000, 4009]), (Fatal, &[4004, 4010, 4014])]),
        ] {
            for (want, listed) in rows {
                for &code in *listed {
                    assert_eq!(codes.action(code, ""), *want, "{name} {code}");
                }
            }
        }
    }

    #[test]
    fn advice_applies_only_to_codes_that_reconnect() {
        let reason = r#"{"retry_after_ms":1000,"spread_ms":2000}"#;
        for (code, want) in
            [(1012, within(1, 3)), (1013, within(1, 3)), (1001, within(1, 3)), (1008, Fatal), (1000, End)]
        {
            assert_eq!(rfc6455().action(code, reason), want, "{code}");
        }
    }

    #[test]
    fn the_reason_of_centrifugo_takes_precedence_over_the_code() {
        let codes = centrifugo();
        assert_eq!(codes.action(3500, r#"{"reason":"x","reconnect":true}"#), Reconnect);
        assert_eq!(codes.action(3000, r#"{"reason":"x","reconnect":false}"#), Fatal);
        assert_eq!(codes.action(3000, "not json"), Reconnect);
    }

    #[test]
    fn later_entries_take_precedence() {
        let codes = rfc6455().fatal(4401).reconnect(1000).reconnect(4401);
        assert_eq!([codes.action(4401, ""), codes.action(1000, "")], [Reconnect, Reconnect]);
    }
}
