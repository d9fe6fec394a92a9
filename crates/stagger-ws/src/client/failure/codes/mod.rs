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
//! | 1012 service restart | reconnect after 5 to 30 s, or as the [`ReconnectAdvice`](crate::ReconnectAdvice) in the reason says |
//! | 1013 try again later | reconnect after 30 to 120 s, or as the advice in the reason says |
//! | 1002, 1003, 1007, 1008, 1009, 1010 | fatal: the same bytes would fail again |
//! | 1015 | fatal |
//! | 3000 unauthorized, 3003 forbidden | reconnect with fresh credentials, once; then fatal |
//!
//! Sources: RFC 6455, section 7.4.1; the IANA registry "WebSocket Close Code Number"; for 1012 and 1013, the messages
//! on the hybi list that the registry refers to.

pub(in crate::client) mod presets;
pub(in crate::client) mod table;

pub use presets::{centrifugo, discord, graphql_ws, pusher, rfc6455};
pub use table::{CloseAction, CloseCodes};
