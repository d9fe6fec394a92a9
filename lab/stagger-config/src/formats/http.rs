//! What of HTTP several systems have in common: the methods that a route is for, and the conditions on which Envoy, and
//! what is built on it, retries a request.

use crate::tree::Node;

/// Methods whose requests may be repeated: RFC 9110, section 9.2.2.
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

pub(crate) fn is_idempotent(method: &str) -> bool {
    IDEMPOTENT.iter().any(|known| known.eq_ignore_ascii_case(method.trim()))
}

/// Returns whether all of a route's conditions, one of which must hold, admit idempotent methods only. `methods` reads
/// those that a condition admits, if it names any.
pub(crate) fn are_idempotent<'a>(conditions: &'a [Node], methods: impl Fn(&'a Node) -> Option<&'a Node>) -> bool {
    !conditions.is_empty() && conditions.iter().all(|condition| methods(condition).is_some_and(admits_idempotent))
}

/// Returns whether a condition for a text, such as `GET`, `{exact: GET}` or `{regex: GET|HEAD}`, admits idempotent
/// methods only.
pub(crate) fn admits_idempotent(condition: &Node) -> bool {
    let named = |names: &[&str]| names.iter().find_map(|name| condition.get(name));
    if let Some(exact) = condition.text() {
        return is_idempotent(exact);
    }
    if let Some(exact) = named(&["exact", "exact_match", "exactMatch"])
        && let Some(exact) = exact.text()
    {
        return is_idempotent(exact);
    }
    let inner = ["string_match", "stringMatch", "safe_regex", "safeRegex", "safe_regex_match", "safeRegexMatch"];
    if let Some(inner) = named(&inner) {
        return admits_idempotent(inner);
    }
    let Some(regex) = condition.text_of("regex") else { return false };
    let alternatives = regex.trim_start_matches(['^', '(']).trim_end_matches(['$', ')']);
    alternatives.split('|').all(is_idempotent)
}

/// Conditions under which a server may have processed the request.
const AFTER_PROCESSING: [&str; 8] = [
    "5xx",
    "gateway-error",
    "reset",
    "retriable-status-codes",
    "http3-post-connect-failure",
    "deadline-exceeded",
    "internal",
    "retriable-headers",
];

/// Returns whether one of these conditions repeats a request that the server may have processed, whatever its method
/// is.
pub(crate) fn repeats_unsafe(conditions: &[&str]) -> bool {
    conditions.iter().any(|condition| {
        AFTER_PROCESSING.contains(condition) && *condition != "retriable-status-codes"
            // A status code of Istio or of a list: the server has answered, so it may have done the work.
            || condition.parse::<u16>().is_ok_and(|code| code >= 500)
    })
}
