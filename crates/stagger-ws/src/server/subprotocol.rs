//! The selection of a subprotocol: RFC 6455, section 4.2.2.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use super::rejection::returned_token::offered_protocols;

/// Returns the first of these subprotocols that the client offers.
pub(super) fn select(spoken: &[Arc<str>], headers: &HeaderMap) -> Option<Arc<str>> {
    spoken.iter().find(|name| offered_protocols(headers).any(|offered| offered == &***name)).cloned()
}

/// Returns the value of the response's header for a selected subprotocol.
pub(super) fn header_value(selected: Option<&Arc<str>>) -> Option<HeaderValue> {
    // A token is a valid value.
    selected.and_then(|name| HeaderValue::from_str(name).ok())
}

/// Returns whether this is a token of HTTP: RFC 9110, section 5.6.2.
pub(super) fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_order_decides_and_names_are_compared_whole() {
        let spoken: Vec<Arc<str>> = ["chat.v2".into(), "chat.v1".into()].into();
        for (offered, want) in [
            (&["chat.v1, chat.v2"][..], Some("chat.v2")),
            (&["chat.v1"], Some("chat.v1")),
            (&["mail", "x,chat.v1"], Some("chat.v1")),
            (&["chat.v", "chat.v22", "CHAT.V1"], None),
            (&[""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for offered in offered {
                headers.append("sec-websocket-protocol", offered.parse().unwrap());
            }
            assert_eq!(select(&spoken, &headers).as_deref(), want, "{offered:?}");
        }
    }

    #[test]
    fn only_tokens_are_names() {
        assert!(["chat", "graphql-transport-ws", "v1.chat", "a!#$%&'*+-.^_`|~9"].iter().all(|name| is_token(name)));
        assert!(!["", "a b", "a,b", "a/b", "a\n", "ä", "a;q=1"].iter().any(|name| is_token(name)));
    }
}
