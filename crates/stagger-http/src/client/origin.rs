use core::fmt;

#[cfg(any(feature = "tower", test))]
use http::{HeaderMap, Uri, header};

/// The origin of a request: its scheme, host and port, in one form for all ways to write them. Budgets and breakers are kept
/// by it.
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

    /// Returns the origin of a request to this URI. If only its path is there, as on a connection that is already open, the
    /// host is that of the header `Host`.
    #[cfg(any(feature = "tower", test))]
    pub(crate) fn of(uri: &'r Uri, headers: &'r HeaderMap) -> Self {
        let scheme = uri.scheme_str().unwrap_or("");
        if let Some(host) = uri.host() {
            return Self::new(scheme, host, uri.port_u16());
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
        match host.rsplit_once(':').map(|(name, port)| (name, port.parse())) {
            Some((name, Ok(port))) => Self::new(scheme, name, Some(port)),
            _ => Self::new(scheme, host, None),
        }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lower = |f: &mut fmt::Formatter<'_>, text: &str| {
            text.chars().try_for_each(|c| fmt::Write::write_char(f, c.to_ascii_lowercase()))
        };
        lower(f, self.scheme)?;
        f.write_str("://")?;
        lower(f, self.host)?;
        let standard = match self.scheme {
            scheme if scheme.eq_ignore_ascii_case("http") => Some(80),
            scheme if scheme.eq_ignore_ascii_case("https") => Some(443),
            _ => None,
        };
        self.port.or(standard).map_or(Ok(()), |port| write!(f, ":{port}"))
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
        Origin::of(&uri.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn an_origin_is_scheme_host_and_port_however_they_are_written() {
        for (uri, host, want) in [
            ("http://up.example/a?b", None, "http://up.example:80"),
            ("HTTP://me:pw@UP.example:80/", None, "http://up.example:80"),
            ("http://up.example/", Some("other.example"), "http://up.example:80"),
            ("https://up.example/", None, "https://up.example:443"),
            ("http://up.example:8080/", None, "http://up.example:8080"),
            ("http://[::1]:8080/", None, "http://[::1]:8080"),
            ("/path", Some("up.example:8080"), "://up.example:8080"),
            ("/path", Some("[::1]"), "://[::1]"),
            ("/path", None, "://"),
        ] {
            assert_eq!(origin(uri, host), want, "{uri} {host:?}");
        }
    }
}
