//! What the codes of close frames mean: for everyone, and for protocols that have codes of their own.
//!
//! CloseCodes from 4000 on mean what a protocol wants them to mean: to Centrifugo 4401 says "come back", to graphql-ws "never".
//! So none of them has a meaning here unless one of these is chosen: [`graphql_ws`], [`centrifugo`], [`pusher`],
//! [`discord`].
//!
//! | code | by [`rfc6455`] |
//! |---|---|
//! | 1000 | the end, and no error; [`CloseCodes::reconnect`] changes that |
//! | 1001, 1005, 1014, and what is not named here | reconnect: spread, then backoff |
//! | 1011 | reconnect; however long the connection lived, it does not count as healthy |
//! | 1012 service restart | reconnect after 5 to 30 s, or as the reason's [`ReconnectAdvice`](crate::ReconnectAdvice) says |
//! | 1013 try again later | reconnect after 30 to 120 s, or as the reason's advice says |
//! | 1002, 1003, 1007, 1008, 1009, 1010 | fatal: the same bytes will fail again |
//! | 1015 | fatal |
//! | 3000 unauthorized, 3003 forbidden | ask for fresh credentials, once; then fatal |
//!
//! Sources: RFC 6455, section 7.4.1; the IANA registry "WebSocket Close Code Number"; for 1012 and 1013 the messages of
//! the hybi list that it points to.

mod presets;
mod table;

pub use presets::{centrifugo, discord, graphql_ws, pusher, rfc6455};
pub use table::{CloseAction, CloseCodes};
