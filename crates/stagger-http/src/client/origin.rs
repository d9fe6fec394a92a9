use core::fmt;

#[cfg(any(feature = "tower", test))]
use http::{HeaderMap, Uri, header};

/// The origin of a request: its scheme, host and port, in one form for all ways to write them. It is the default
/// key of guards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'r> {
    scheme: &'r str,
    host: &'r str,
    port: Option<u16>,
}

impl<'r> Origin<'r> {
    /// Returns an origin of these parts. Without a port it has that of the scheme.
    pub(crate) const fn new(scheme: &'r str, host: &'r str, port: Option<u16>) -> Self {
        Self { scheme, host, port }
    }

    /// Returns the origin of a request to this URI. If only its path is there, as on a connection that is already open,
    /// the host is that of the header `Host`.
    #[cfg(any(feature = "tower", test))]
    fn of(uri: &'r Uri, headers: &'r HeaderMap) -> Self {
        let scheme = uri.scheme_str().unwrap_or("");
        let authority = match (uri.authority(), headers.get(header::HOST)) {
            (Some(authority), _) => authority.as_str(),
            (None, Some(host)) => host.to_str().unwrap_or(""),
            (None, None) => "",
        };
        // `Authority::host` and `port` search the text several times, by ways made for long ones.
        let split_at_last = |text: &'r str, byte| {
            let at = text.bytes().rposition(|found| found == byte)?;
            Some((&text[..at], &text[at + 1..]))
        };
        let address = match split_at_last(authority, b'@') {
            Some((_, address)) => address,
            None => authority,
        };
        let (host, port) = match split_at_last(address, b':') {
            Some((host, "")) => (host, None),
            // A colon within an address of IPv6 is not followed by a number alone.
            Some((host, port)) => match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => (address, None),
            },
            None => (address, None),
        };
        Self::new(scheme, host, port)
    }
}

/// The origin of a request, found when it is written: only a call whose guards are kept by origin needs it.
#[cfg(any(feature = "tower", test))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginOf<'r> {
    pub(crate) uri: &'r Uri,
    pub(crate) headers: &'r HeaderMap,
}

#[cfg(any(feature = "tower", test))]
impl fmt::Display for OriginOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Origin::of(self.uri, self.headers).fmt(f)
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Written at every call, and nearly always in lower case already.
        let lower = |f: &mut fmt::Formatter<'_>, text: &str| match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => f.write_str(&text.to_ascii_lowercase()),
            false => f.write_str(text),
        };
        lower(f, self.scheme)?;
        f.write_str("://")?;
        lower(f, self.host)?;
        let standard = match self.scheme {
            scheme if scheme.eq_ignore_ascii_case("http") => Some(80),
            scheme if scheme.eq_ignore_ascii_case("https") => Some(443),
            _ => None,
        };
        match self.port.or(standard) {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn origin(uri: &str, host: Option<&'static str>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, HeaderValue::from_static(host));
        }
        OriginOf { uri: &uri.parse().unwrap(), headers: &headers }.to_string()
    }

    #[test]
    fn an_origin_is_scheme_host_and_port_however_they_are_written() {
        for (uri, host, want) in [
            ("http://up.example/a?b", None, "http://up.example:80"),
            ("HTTP://me:pw@UP.example:80/", None, "http://up.example:80"),
            ("http://up.example/", Some("other.example"), "http://up.example:80"),
            ("https://up.example/", None, "https://up.example:443"),
            ("http://up.example:8080/", None, "http://up.example:8080"),
            ("http://up.example:/", None, "http://up.example:80"),
            ("http://me:8080@up.example/", None, "http://up.example:80"),
            ("http://[::1]:8080/", None, "http://[::1]:8080"),
            ("http://[::1]/", None, "http://[::1]:80"),
            ("/path", Some("up.example:8080"), "://up.example:8080"),
            ("/path", Some("[::1]"), "://[::1]"),
            ("/path", None, "://"),
        ] {
            assert_eq!(origin(uri, host), want, "{uri} {host:?}");
        }
    }
}
