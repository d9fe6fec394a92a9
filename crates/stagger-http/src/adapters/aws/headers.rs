use std::time::SystemTime;

use aws_smithy_runtime_api::http::Headers;
use http::{HeaderMap, HeaderName, HeaderValue};
use stagger::ServerHint;

use crate::hint;

/// Returns the server hint of a response, whose headers are in the SDK's own type.
pub(super) fn server_hint(headers: &Headers) -> Option<ServerHint> {
    let pairs = headers
        .iter()
        .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?)));
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name, value);
    }
    hint::server_hint(&map, SystemTime::now)
}
