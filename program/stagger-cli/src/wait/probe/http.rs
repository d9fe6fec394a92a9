use core::time::Duration;
use std::env;
use std::time::SystemTime;

use regex::bytes::Regex;
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy as Redirects;
use reqwest::{Certificate, Client, ClientBuilder, Method, Proxy, Response, StatusCode, Url};
use stagger::{Outcome, ServerHint};
use stagger_http::hint::server_hint;
use stagger_http::{Idempotency, status};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::short;

use super::proxy::Proxies;
use crate::wait::failure::Failure;
use crate::wait::settings::HttpSettings;
use crate::wait::target::Target;

/// The most bytes of a body that are searched.
const MOST_BODY: usize = 1024 * 1024;

const MOST_REDIRECTS: usize = 10;

#[derive(Debug)]
pub(super) struct HttpProbe {
    client: Client,
    url: Url,
    settings: HttpSettings,
    proxies: Proxies,
}

impl HttpProbe {
    pub(super) fn new(url: &Url, settings: &HttpSettings) -> Result<Self, CliError> {
        let proxies = Proxies::new(|name| env::var(name).ok());
        if let Some(name) = proxies.invalid(url) {
            return Err(CliError::usage(format_args!(
                "{name} is not the address of a proxy; write http://HOST:PORT, https://HOST:PORT or socks5h://HOST:PORT"
            )));
        }
        let of_request = proxies.clone();
        let mut client = Client::builder()
            .proxy(Proxy::custom(move |url| of_request.of(url).map(|proxy| proxy.url().clone())))
            // `ask` follows them.
            .redirect(Redirects::none())
            .http1_only()
            // Each attempt connects anew: an open connection says nothing about new clients.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("stagger/", env!("CARGO_PKG_VERSION")))
            .danger_accept_invalid_certs(settings.insecure);
        let roots = match &settings.roots {
            Some(roots) => roots.clone(),
            None if is_secure(url, &proxies) && !settings.insecure => system_roots()?,
            // A container without certificates of the system must be able to ask an http:// URL.
            None if settings.location => system_roots().unwrap_or_default(),
            None => Vec::new(),
        };
        client = roots.into_iter().fold(client, ClientBuilder::add_root_certificate);
        let client = client.build().map_err(|error| {
            let failure = Failure::request(url.host_str().unwrap_or_default(), &error);
            CliError::usage(format_args!("cannot prepare {}: {}", Target::Http(url.clone()), failure.reason))
        })?;
        Ok(Self { client, url: url.clone(), settings: settings.clone(), proxies })
    }

    /// Returns the failure of an attempt without an answer.
    pub(super) fn no_answer(&self, limit: Duration) -> Failure {
        let failure = Failure::no_answer(limit);
        match self.proxies.of(&self.url) {
            Some(proxy) => Failure { reason: format!("{}, through {proxy}", failure.reason), ..failure },
            None => failure,
        }
    }

    /// Sends the request, follows redirects if that is wanted, and judges the last response. Headers of the user's, in
    /// any of which there may be credentials, are sent to the origin of the first request only.
    pub(super) async fn ask(&self) -> Result<(), Failure> {
        let method = if self.settings.head { Method::HEAD } else { Method::GET };
        let (mut url, mut headers) = (self.url.clone(), self.settings.headers.clone());
        let failed = |url: &Url, error: &reqwest::Error| match self.proxies.of(url) {
            Some(proxy) => proxy.failure(url, error),
            None => Failure::request(url.host_str().unwrap_or_default(), error),
        };
        let mut redirects = 0;
        let response = loop {
            let request = self.client.request(method.clone(), url.clone()).headers(headers.clone());
            let response = request.send().await.map_err(|error| failed(&url, &error))?;
            let target = if self.settings.location { redirect_target(&response) } else { None };
            let Some(target) = target else { break response };
            if redirects == MOST_REDIRECTS {
                return Err(Failure::new(format!("more than {MOST_REDIRECTS} redirects")).permanent());
            }
            redirects += 1;
            if target.origin() != url.origin() {
                headers.clear();
            }
            url = target;
        };
        if !self.settings.status.contains(response.status().as_u16()) {
            let failure = wrong_status(response.status(), response.headers());
            return Err(match self.proxies.of(&url) {
                Some(proxy) => proxy.answered(&url, response.status(), failure),
                None => failure,
            });
        }
        match &self.settings.body {
            Some(wanted) if !matches(response, wanted).await.map_err(|error| failed(&url, &error))? => {
                Err(Failure::new("the body does not match"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns where a response redirects to; `None` if it does not, or not to a server.
fn redirect_target(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = response.url().join(location).ok()?;
    if matches!(target.scheme(), "http" | "https") { Some(target) } else { None }
}

/// Returns the certificates that the system trusts.
fn system_roots() -> Result<Vec<Certificate>, CliError> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found.certs.iter().filter_map(|der| Certificate::from_der(der).ok()).collect();
    if !roots.is_empty() {
        return Ok(roots);
    }
    let reason = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
    Err(CliError::usage(format_args!(
        "found no certificates that the system trusts{reason}; install them (ca-certificates), or set SSL_CERT_FILE \
         or --cacert"
    )))
}

/// Returns whether TLS is spoken with the server or with the proxy.
fn is_secure(url: &Url, proxies: &Proxies) -> bool {
    url.scheme() == "https" || proxies.of(url).is_some_and(|proxy| proxy.is_secure())
}

fn wrong_status(status: StatusCode, headers: &HeaderMap<HeaderValue>) -> Failure {
    let hint = server_hint(headers, SystemTime::now);
    let text = match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    };
    let mut failure = Failure::new(text);
    if let Some(ServerHint::AtLeast(after) | ServerHint::Reserved(after)) = hint {
        failure.reason += &format!(", retry after {}", short(after));
        failure.retry_after = Some(after);
    }
    // A redirect is a success elsewhere; here, it is what the server answers every time.
    let permanent =
        matches!(status::outcome(status, Idempotency::ByMethod, hint), Outcome::Permanent | Outcome::Success);
    if permanent { failure.permanent() } else { failure }
}

/// Reads the body, as far as it is searched, and returns whether it matches.
async fn matches(mut response: Response, wanted: &Regex) -> Result<bool, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < MOST_BODY
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk[..chunk.len().min(MOST_BODY - body.len())]);
    }
    Ok(wanted.is_match(&body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::failure::Lasting;

    #[test]
    fn a_status_says_whether_it_lasts_and_when_to_return() {
        for (status, retry_after, reason, lasts, after) in [
            (503, None, "503 Service Unavailable", Lasting::Passing, None),
            (503, Some("2"), "503 Service Unavailable, retry after 2s", Lasting::Passing, Some(2)),
            (429, Some("x"), "429 Too Many Requests", Lasting::Passing, None),
            (404, None, "404 Not Found", Lasting::Permanent, None),
            (302, None, "302 Found", Lasting::Permanent, None),
            (599, None, "599", Lasting::Passing, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = retry_after {
                headers.insert("retry-after", HeaderValue::from_static(value));
            }
            let failure = wrong_status(StatusCode::from_u16(status).unwrap(), &headers);
            assert_eq!((&*failure.reason, failure.lasts), (reason, lasts), "{status}");
            assert_eq!(failure.retry_after, after.map(Duration::from_secs), "{status}");
        }
    }
}
