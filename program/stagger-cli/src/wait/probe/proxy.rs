//! Which proxy a request goes through: the variables that curl obeys, read as it reads them (`libcurl-env(3)`, and
//! `lib/noproxy.c` of curl 8), and what went wrong there.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io::{self, ErrorKind};

use reqwest::{StatusCode, Url};
use stagger::classify::links;

use crate::wait::failure::{Failure, Proof};

/// The proxies of the environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Proxies {
    http: Option<Variable>,
    https: Option<Variable>,
    /// `no_proxy`: the hosts that are asked directly.
    exceptions: String,
}

/// A variable that names a proxy.
#[derive(Clone, Debug)]
struct Variable {
    name: &'static str,
    /// `None` if it cannot be read.
    proxy: Option<Proxy>,
}

/// The address of a proxy. It is shown without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proxy(Url);

impl Proxies {
    /// Reads the variables. `HTTP_PROXY` is none of them: a web server that runs a program by CGI makes it from the
    /// header `Proxy` of a request, so anybody could choose it (httpoxy). An empty variable is one that is not set.
    pub(super) fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|&name| {
                let text = variable(name).filter(|text| !text.is_empty())?;
                Some(Variable { name, proxy: Proxy::parse(&text) })
            })
        };
        let exceptions =
            ["no_proxy", "NO_PROXY"].iter().find_map(|name| variable(name).filter(|text| !text.is_empty()));
        Self {
            http: first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: exceptions.unwrap_or_default(),
        }
    }

    fn variable(&self, url: &Url) -> Option<&Variable> {
        let variable = if url.scheme() == "https" { &self.https } else { &self.http };
        variable.as_ref().filter(|_| !is_exception(url, &self.exceptions))
    }

    /// Returns the proxy for a URL; `None` if it is asked directly.
    pub(super) fn of(&self, url: &Url) -> Option<&Proxy> {
        self.variable(url)?.proxy.as_ref()
    }

    /// Returns the variable for a URL if it cannot be read. Its value may have a password, and is not shown.
    pub(super) fn invalid(&self, url: &Url) -> Option<&'static str> {
        let variable = self.variable(url)?;
        if variable.proxy.is_none() { Some(variable.name) } else { None }
    }
}

impl Proxy {
    /// Parses an address as curl does: without a scheme it is one of HTTP, and without a port its port is 1080.
    fn parse(text: &str) -> Option<Self> {
        const PORT: u16 = 1080;
        const TLS_PORT: u16 = 443;
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = match &*scheme.to_ascii_lowercase() {
            "http" => "http",
            "https" => "https",
            "socks" | "socks4" => "socks4",
            "socks4a" => "socks4a",
            "socks5" => "socks5",
            "socks5h" => "socks5h",
            _ => return None,
        };
        let mut url = Url::parse(&format!("{scheme}://{rest}")).ok().filter(Url::has_host)?;
        // The parser leaves out a port that is that of the scheme.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let has_port = host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':');
        if !has_port {
            url.set_port(Some(if scheme == "https" { TLS_PORT } else { PORT })).ok()?;
        }
        Some(Self(url))
    }

    pub(super) const fn url(&self) -> &Url {
        &self.0
    }

    /// Returns whether TLS is spoken with it.
    pub(super) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    fn is_socks(&self) -> bool {
        self.0.scheme().starts_with("socks")
    }

    /// Says of a request that failed what is the proxy's doing, or that it went through the proxy. Nothing of it proves
    /// anything about the target.
    pub(super) fn failure(&self, target: &Url, error: &reqwest::Error) -> Failure {
        let host = target.host_str().unwrap_or_default();
        let chain: Vec<_> = links(error).map(|link| (link, link.to_string())).collect();
        let has = |part: &str| chain.iter().any(|(_, text)| text.contains(part));
        // Of the connector: its types are not public.
        if has("tunnel error: proxy authorization required") {
            return Failure::unknown(format!("{self} asks for credentials (407)")).permanent();
        }
        if has("tunnel error: unsuccessful") {
            return Failure::unknown(format!("{self} refused to connect to {host}"));
        }
        if has("tunnel error: unexpected end of file") {
            return Failure::unknown(format!("{self} closed the connection when asked to connect to {host}"));
        }
        let last = chain.last().map_or("", |(_, text)| text);
        // Which of these is done here, and which there, is a matter of the scheme.
        if has("error resolving for socks proxy")
            && let Some((error, _)) = chain.last()
        {
            return Failure { proof: Proof::Unknown, ..Failure::lookup(host, *error) };
        }
        if let Some(problem) = last.strip_prefix("SOCKS error: ") {
            return Failure::unknown(match problem {
                "failed to create underlying connection" => format!("cannot reach {self}"),
                "io error during SOCKS handshake" => format!("{self} broke off, or speaks no SOCKS"),
                _ => format!("{self} does not connect to {host}: {problem}"),
            });
        }
        let io = chain.iter().find_map(|(link, _)| link.downcast_ref::<io::Error>());
        // The only connection that is made is that to the proxy.
        let is_refused = io.is_some_and(|error| {
            matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::TimedOut
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::AddrNotAvailable
            )
        });
        let failure = Failure::request(self.0.host_str().unwrap_or_default(), error);
        let failure = Failure { proof: Proof::Unknown, ..failure };
        let is_unreachable =
            is_refused || has("dns error") || has("tunnel error: failed to create underlying connection");
        let reason = if error.is_connect() && is_unreachable {
            format!("cannot reach {self}: {}", failure.reason)
        } else {
            format!("{}, through {self}", failure.reason)
        };
        Failure { reason, ..failure }
    }

    /// Says that a response came through the proxy, which may have made it itself, unless it forwards what it cannot
    /// read.
    pub(super) fn answered(&self, target: &Url, status: StatusCode, failure: Failure) -> Failure {
        if target.scheme() == "https" || self.is_socks() {
            return failure;
        }
        let reason = match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => format!("{self} asks for credentials: {}", failure.reason),
            _ => format!("{}, through {self}", failure.reason),
        };
        // What proxies answer themselves.
        let proof = match status.as_u16() {
            403 | 407 | 502..=504 => Proof::Unknown,
            _ => failure.proof,
        };
        Failure { reason, proof, ..failure }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.0.port_or_known_default().unwrap_or_default();
        write!(f, "the proxy {}:{port}", self.0.host_str().unwrap_or_default())
    }
}

/// Returns whether `no_proxy` has the host of a URL: the list is one asterisk, or has the name, a domain above it, the
/// address, or a network with it.
fn is_exception(url: &Url, exceptions: &str) -> bool {
    if exceptions == "*" {
        return true;
    }
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = bare.parse().ok();
    let mut exceptions = exceptions.split([',', ' ', '\t']).filter(|exception| !exception.is_empty());
    exceptions.any(|exception| match address {
        Some(address) => is_in_network(address, exception),
        None => is_in_domain(bare, exception),
    })
}

/// Returns whether a name is this one, or below it. Dots at its start, and at the end of both, mean nothing.
fn is_in_domain(name: &str, domain: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let Some(at) = name.len().checked_sub(domain.len()) else { return false };
    // Bytes, because either may have any characters.
    let (above, tail) = name.as_bytes().split_at(at);
    tail.eq_ignore_ascii_case(domain.as_bytes()) && !domain.is_empty() && matches!(above.last(), None | Some(b'.'))
}

/// Returns whether an address is this one, or in this network, as in `10.0.0.0/8`.
fn is_in_network(address: IpAddr, network: &str) -> bool {
    let (network, bits) = match network.split_once('/') {
        Some((network, bits)) => (network, bits.parse().unwrap_or(u32::MAX)),
        None => (network, 0),
    };
    let network = network.trim_start_matches('[').trim_end_matches(']');
    // No bits are all bits.
    let differs = |bits: u32, all: u32, difference: u128| match bits {
        0 => difference != 0,
        bits if bits > all => true,
        bits => difference >> (all - bits) != 0,
    };
    match address {
        IpAddr::V4(address) => network
            .parse::<Ipv4Addr>()
            .is_ok_and(|network| !differs(bits, Ipv4Addr::BITS, u128::from(address.to_bits() ^ network.to_bits()))),
        IpAddr::V6(address) => network
            .parse::<Ipv6Addr>()
            .is_ok_and(|network| !differs(bits, Ipv6Addr::BITS, address.to_bits() ^ network.to_bits())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let lookup = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        Proxies::new(lookup).of(&Url::parse(url).unwrap()).map(|proxy| proxy.url().to_string())
    }

    #[test]
    fn the_variables_are_those_of_curl() {
        const HTTP: &str = "http://h/";
        const HTTPS: &str = "https://h/";
        for (variables, url, want) in [
            (&[("http_proxy", "http://p:1")][..], HTTP, Some("http://p:1/")),
            (&[("http_proxy", "http://p:1")], HTTPS, None),
            (&[("HTTP_PROXY", "http://p:1")], HTTP, None),
            (&[("HTTP_PROXY", "http://p:1"), ("ALL_PROXY", "q:2")], HTTP, Some("http://q:2/")),
            (&[("HTTPS_PROXY", "http://p:1")], HTTPS, Some("http://p:1/")),
            (&[("HTTPS_PROXY", "http://p:1"), ("https_proxy", "q:2")], HTTPS, Some("http://q:2/")),
            (&[("https_proxy", ""), ("HTTPS_PROXY", "q:2")], HTTPS, Some("http://q:2/")),
            (&[("all_proxy", "socks5h://p"), ("ALL_PROXY", "q:2")], HTTPS, Some("socks5h://p:1080")),
            (&[("all_proxy", "SOCKS5://p:9"), ("http_proxy", "q:2")], HTTP, Some("http://q:2/")),
            (&[("http_proxy", "p")], HTTP, Some("http://p:1080/")),
            (&[("http_proxy", "p:80")], HTTP, Some("http://p/")),
            (&[("http_proxy", "u:p@ss@[::1]")], HTTP, Some("http://u:p%40ss@[::1]:1080/")),
            (&[("http_proxy", "https://p")], HTTP, Some("https://p/")),
            (&[("http_proxy", "p:1"), ("no_proxy", ""), ("NO_PROXY", "h")], HTTP, None),
            (&[("http_proxy", "p:1"), ("no_proxy", "i"), ("NO_PROXY", "h")], HTTP, Some("http://p:1/")),
        ] {
            assert_eq!(proxy(variables, url).as_deref(), want, "{variables:?} {url}");
        }
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named_without_its_value() {
        for value in ["ftp://p:1", "http://", "p:99999"] {
            let proxies = Proxies::new(|name| (name == "http_proxy").then(|| value.to_owned()));
            assert_eq!(proxies.invalid(&Url::parse("http://h/").unwrap()), Some("http_proxy"), "{value}");
            assert_eq!(proxies.invalid(&Url::parse("https://h/").unwrap()), None);
        }
    }

    #[test]
    fn no_proxy_has_names_domains_addresses_and_networks() {
        for (exceptions, url, want) in [
            ("*", "http://h/", true),
            ("a,*", "http://h/", false),
            ("example.com", "http://example.com/", true),
            ("example.com", "http://www.EXAMPLE.com./", true),
            (".example.com", "http://example.com/", true),
            ("example.com.", "http://www.example.com/", true),
            ("example.com", "http://nonexample.com/", false),
            ("www.example.com", "http://example.com/", false),
            ("a, example.com", "http://example.com/", true),
            ("a example.com", "http://example.com/", true),
            ("example.com:80", "http://example.com/", false),
            (".", "http://h/", false),
            ("localhost", "http://127.0.0.1/", false),
            ("127.0.0.1", "http://127.0.0.1/", true),
            ("127.0.0.1", "http://127.0.0.11/", false),
            ("192.168.0.0/16", "http://192.168.9.9/", true),
            ("192.168.0.0/16", "http://192.169.9.9/", false),
            ("192.168.0.0/33", "http://192.168.0.0/", false),
            ("10.0.0.1/x", "http://10.0.0.1/", false),
            ("::1", "http://[::1]/", true),
            ("[::1]", "http://[::1]/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe80::1]/", false),
        ] {
            assert_eq!(is_exception(&Url::parse(url).unwrap(), exceptions), want, "{exceptions} {url}");
        }
    }
}
