use http::request::Parts;
use http::{HeaderMap, Method, header};

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

/// Returns whether a request may run twice although its method is not idempotent by RFC 9110.
///
/// - POST to S3: begins an upload in parts, of which one without parts may stay behind; completes one, whose parts are the same;
///   deletes a list of objects.
/// - WebDAV: PROPFIND, MKCOL, whose repetition finds the collection, and COPY if it overwrites (RFC 4918).
pub(crate) fn is_idempotent(head: &Parts) -> bool {
    match head.method.as_str() {
        "POST" => {
            let mut names = head.uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split('=').next());
            names.any(|name| matches!(name, "uploads" | "uploadId" | "delete"))
        }
        "PROPFIND" | "MKCOL" => true,
        "COPY" => head.headers.get("overwrite").is_none_or(|overwrite| overwrite == "T"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

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
    fn uploads_in_parts_deletions_and_most_of_webdav_may_run_twice() {
        for (method, uri, overwrite, want) in [
            ("POST", "http://s3.example/bucket/key?uploads", "", true),
            ("POST", "http://s3.example/bucket/key?uploads=", "", true),
            ("POST", "http://s3.example/bucket/key?x-id=A&uploadId=7", "", true),
            ("POST", "http://s3.example/bucket?delete", "", true),
            ("POST", "http://s3.example/bucket/key?select&select-type=2", "", false),
            ("POST", "http://s3.example/uploads", "", false),
            ("POST", "http://s3.example/?notuploads", "", false),
            ("PATCH", "http://s3.example/bucket/key?uploads", "", false),
            ("PROPFIND", "http://dav.example/", "", true),
            ("MKCOL", "http://dav.example/a/", "", true),
            ("COPY", "http://dav.example/a", "T", true),
            ("COPY", "http://dav.example/a", "F", false),
            ("MOVE", "http://dav.example/a", "T", false),
        ] {
            let mut request = Request::builder().method(method).uri(uri);
            if !overwrite.is_empty() {
                request = request.header("overwrite", overwrite);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(is_idempotent(&head), want, "{method} {uri} {overwrite}");
        }
    }
}
