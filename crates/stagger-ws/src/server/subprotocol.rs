//! The subprotocols that a client offers, and the tokens of reservations that come back in them or in the query, since
//! a browser's page can set no header.

use std::sync::Arc;

use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, HeaderValue, Request, Uri};
use stagger::admission::ReservationToken;
use stagger_http::header::RESERVATION_TOKEN;

/// The prefix of a subprotocol that presents a reservation: `stagger-reservation.` and the token, 32 hexadecimal
/// digits.
///
/// `new WebSocket(url, ["chat", "stagger-reservation." + token])`. Unlike a query, it is in no access log.
pub const RESERVATION_PROTOCOL: &str = "stagger-reservation.";

/// The name of the parameter of the query that presents a reservation; its value is the token, 32 hexadecimal digits.
///
/// Proxies write queries to their access logs; a token is of use to a reader of the log only until its client returns.
/// [`RESERVATION_PROTOCOL`] avoids it.
pub const RESERVATION_PARAMETER: &str = "stagger-reservation";

/// Returns the token that the client presents in a subprotocol or in the query. Returns `None` if it is in the header
/// `stagger-reservation-token`, which takes precedence. If there are several, the first valid one counts.
pub(super) fn returned_token(uri: Option<&Uri>, headers: &HeaderMap) -> Option<ReservationToken> {
    if headers.contains_key(RESERVATION_TOKEN) {
        return None;
    }
    if let Some(token) = offered_protocols(headers).find_map(token_of_protocol) {
        return Some(token);
    }
    let parameters = uri?.query()?.split('&');
    parameters.filter_map(token_of_parameter).find_map(|token| token.parse().ok())
}

/// Returns the subprotocols that the client offers, in its order. Headers that are not ASCII are left out.
pub(super) fn offered_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

/// Returns the subprotocol for the response to a client that is closed: the first one that is not a token, or else the
/// first one. A browser drops a connection without showing its close if it offers subprotocols and gets none.
pub(super) fn protocol_for_close(headers: &HeaderMap) -> Option<HeaderValue> {
    let first = offered_protocols(headers).next();
    let application = offered_protocols(headers).find(|protocol| token_of_protocol(protocol).is_none());
    HeaderValue::from_str(application.or(first)?).ok()
}

/// Returns the subprotocol for the response to an admitted client if it offers nothing but a token, which only this
/// crate understands; all others are the application's.
pub(super) fn protocol_for_token(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut offered = offered_protocols(headers);
    let first = offered.next()?;
    if offered.next().is_some() {
        return None;
    }
    token_of_protocol(first)?;
    HeaderValue::from_str(first).ok()
}

/// Marks headers with a token as sensitive and removes it from the query, so that neither is in the log of a handler.
pub(super) fn redact<B>(request: &mut Request<B>) {
    for (name, value) in request.headers_mut() {
        let has_token = *name == RESERVATION_TOKEN
            || *name == SEC_WEBSOCKET_PROTOCOL
                && value.to_str().is_ok_and(|value| value.contains(RESERVATION_PROTOCOL));
        if has_token {
            value.set_sensitive(true);
        }
    }
    if let Some(uri) = without_token(request.uri()) {
        *request.uri_mut() = uri;
    }
}

/// Returns the URI without the parameter, if it has one.
fn without_token(uri: &Uri) -> Option<Uri> {
    let query = uri.query()?;
    if !query.split('&').any(|parameter| token_of_parameter(parameter).is_some()) {
        return None;
    }
    let others: Vec<_> = query.split('&').filter(|parameter| token_of_parameter(parameter).is_none()).collect();
    let separator = if others.is_empty() { "" } else { "?" };
    let mut parts = uri.clone().into_parts();
    // A part of a valid URI is valid.
    parts.path_and_query = Some(format!("{}{separator}{}", uri.path(), others.join("&")).parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn token_of_protocol(protocol: &str) -> Option<ReservationToken> {
    protocol.strip_prefix(RESERVATION_PROTOCOL)?.parse().ok()
}

fn token_of_parameter(parameter: &str) -> Option<&str> {
    parameter.strip_prefix(RESERVATION_PARAMETER)?.strip_prefix('=')
}

/// Returns the first of these subprotocols that the client offers.
pub(super) fn select(spoken: &[Arc<str>], headers: &HeaderMap) -> Option<Arc<str>> {
    spoken.iter().find(|name| offered_protocols(headers).any(|offered| offered == &***name)).cloned()
}

/// Returns the value of the response's header for a selected subprotocol.
pub(super) fn header_value(selected: Option<&Arc<str>>) -> Option<HeaderValue> {
    // A token is a valid value.
    HeaderValue::from_str(selected?).ok()
}

/// Returns whether this is a token of HTTP: RFC 9110, section 5.6.2.
pub(super) fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00000000000000010123456789abcdef";
    const TWO: &str = "00000000000000020123456789abcdef";

    fn request(uri: &str, fields: &[(&str, String)]) -> Request<()> {
        let request = Request::get(uri);
        fields.iter().fold(request, |request, (name, value)| request.header(*name, value)).body(()).unwrap()
    }

    #[test]
    fn a_token_is_found_in_a_subprotocol_or_else_in_the_query() {
        let protocol = |text: String| vec![("sec-websocket-protocol", text)];
        for (uri, fields, want) in [
            ("/", protocol(format!("chat, stagger-reservation.{ONE}")), Some(ONE)),
            ("/", protocol(format!("stagger-reservation.x,stagger-reservation.{ONE}")), Some(ONE)),
            ("/?a=b&stagger-reservation=00000000000000020123456789abcdef&c", vec![], Some(TWO)),
            (
                "/?stagger-reservation=00000000000000020123456789abcdef",
                protocol(format!("stagger-reservation.{ONE}")),
                Some(ONE),
            ),
            ("/?stagger-reservation=1", vec![], None),
            ("/?xstagger-reservation=00000000000000020123456789abcdef", vec![], None),
            ("/", protocol("chat".into()), None),
            // It is read by stagger-http.
            (
                "/?stagger-reservation=00000000000000020123456789abcdef",
                vec![("stagger-reservation-token", ONE.into())],
                None,
            ),
        ] {
            let request = request(uri, &fields);
            let found = returned_token(Some(request.uri()), request.headers());
            assert_eq!(found.map(|token| token.to_string()).as_deref(), want, "{uri} {fields:?}");
        }
    }

    #[test]
    fn a_client_that_is_closed_gets_its_own_protocol_and_an_admitted_one_only_a_token() {
        let token = format!("stagger-reservation.{ONE}");
        for (offered, for_close, for_token) in [
            (format!("{token}, chat, mail"), Some("chat"), None),
            (token.clone(), Some(&*token), Some(&*token)),
            ("chat".to_owned(), Some("chat"), None),
            (String::new(), None, None),
        ] {
            let request = request("/", &[("sec-websocket-protocol", offered.clone())]);
            let text = |value: Option<HeaderValue>| value.map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(text(protocol_for_close(request.headers())).as_deref(), for_close, "{offered}");
            assert_eq!(text(protocol_for_token(request.headers())).as_deref(), for_token, "{offered}");
        }
    }

    #[test]
    fn a_redacted_request_shows_no_token() {
        for (uri, want) in [
            (format!("/feed?stagger-reservation={ONE}"), "/feed"),
            (format!("/feed?a=1&stagger-reservation={ONE}&b"), "/feed?a=1&b"),
            ("/feed?a=1".to_owned(), "/feed?a=1"),
        ] {
            let fields = [
                ("sec-websocket-protocol", format!("stagger-reservation.{ONE}")),
                ("stagger-reservation-token", ONE.to_owned()),
            ];
            let mut request = request(&uri, &fields);
            redact(&mut request);
            assert_eq!(request.uri(), want);
            assert!(!format!("{request:?}").contains(ONE), "{request:?}");
            assert_eq!(request.headers()["stagger-reservation-token"], ONE);
        }
    }

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
