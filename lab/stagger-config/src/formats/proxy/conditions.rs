//! The conditions on which Envoy, and what is built on it, retries a request.

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
