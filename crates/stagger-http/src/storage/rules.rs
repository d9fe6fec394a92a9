use http::{HeaderMap, Method, Uri, header};

/// Returns whether a request writes only if its target is in a certain state. Once it has been processed, its repetition fails,
/// and says of the caller's own write that somebody else was first.
pub(crate) fn is_conditional_write(method: &Method, headers: &HeaderMap) -> bool {
    // The last one is Google's.
    let conditions = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE];
    let is_conditional = |headers: &HeaderMap| {
        conditions.iter().any(|name| headers.contains_key(name)) || headers.contains_key("x-goog-if-generation-match")
    };
    !method.is_safe() && is_conditional(headers)
}

/// Returns whether a request is one of the POSTs of S3 that may run twice: it begins an upload in parts, of which one without
/// parts may stay behind, completes one, whose parts are the same, or deletes a list of objects.
pub(crate) fn is_idempotent_post(method: &Method, uri: &Uri) -> bool {
    let names = uri.query().unwrap_or("").split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    *method == Method::POST && names.into_iter().any(|name| matches!(name, "uploads" | "uploadId" | "delete"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_conditional_by_its_headers_and_a_read_never_is() {
        for (method, name, want) in [
            (Method::PUT, "if-none-match", true),
            (Method::PUT, "if-match", true),
            (Method::DELETE, "if-unmodified-since", true),
            (Method::POST, "x-goog-if-generation-match", true),
            (Method::PUT, "content-type", false),
            (Method::GET, "if-none-match", false),
            (Method::HEAD, "if-match", false),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), "*".parse().unwrap())]);
            assert_eq!(is_conditional_write(&method, &headers), want, "{method} {name}");
        }
    }

    #[test]
    fn the_posts_of_uploads_in_parts_and_of_deletions_are_idempotent() {
        for (method, uri, want) in [
            (Method::POST, "http://s3.example/bucket/key?uploads", true),
            (Method::POST, "http://s3.example/bucket/key?uploads=", true),
            (Method::POST, "http://s3.example/bucket/key?x-id=A&uploadId=7", true),
            (Method::POST, "http://s3.example/bucket?delete", true),
            (Method::POST, "http://s3.example/bucket/key?select&select-type=2", false),
            (Method::POST, "http://s3.example/uploads", false),
            (Method::POST, "http://s3.example/?notuploads", false),
            (Method::PATCH, "http://s3.example/bucket/key?uploads", false),
        ] {
            assert_eq!(is_idempotent_post(&method, &uri.parse().unwrap()), want, "{method} {uri}");
        }
    }
}
