use core::fmt;
use core::num::NonZeroI32;
use std::path::PathBuf;

use reqwest::Url;
use stagger_terminal::output::outside::path_shown;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Tcp {
        /// A name or an address; an IPv6 address without its brackets.
        host: String,
        port: u16,
    },
    /// A Unix socket.
    Socket(PathBuf),
    Http(Url),
    File(PathBuf),
    /// The end of a process.
    Process(NonZeroI32),
    /// A command of /bin/sh.
    Command(String),
}

/// Schemes that users type because a client of theirs has such URLs.
const NO_CLIENT: &str = "has no client here; write tcp://HOST:PORT to wait for its port";

impl Target {
    /// Parses a target; the error says what is wrong and what to write.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let problem = |what: &str| Err(format!("`{}`: {what}", redacted(text)));
        let Some((scheme, rest)) = text.split_once(':') else {
            return problem(
                "a target is HOST:PORT, http://..., https://..., unix:PATH, file:PATH, pid:N or cmd:COMMAND",
            );
        };
        // RFC 3986 §3.1: upper case is the same scheme. What no `/` follows may be a host of this name, and its port.
        let scheme = if rest.starts_with('/') { scheme.to_ascii_lowercase() } else { scheme.to_owned() };
        match &*scheme {
            "http" | "https" if rest.starts_with("//") => match Url::parse(text) {
                Ok(url) if url.has_host() => Ok(Self::Http(url)),
                Ok(_) => problem("the URL has no host"),
                Err(error) => problem(&error.to_string()),
            },
            "tcp" if rest.starts_with("//") => host_and_port(&rest[2..]).or_else(problem),
            "unix" => path(rest).map(Self::Socket).or_else(problem),
            "file" => path(rest).map(Self::File).or_else(problem),
            "pid" => match rest.parse() {
                Ok(pid) if NonZeroI32::get(pid) > 0 => Ok(Self::Process(pid)),
                _ => problem("a process is a positive number, as in pid:123"),
            },
            "cmd" if rest.trim().is_empty() => problem("the command is empty"),
            "cmd" => Ok(Self::Command(rest.to_owned())),
            _ if rest.starts_with("//") => problem(&format!("{scheme}:// {NO_CLIENT}")),
            _ => host_and_port(text).or_else(problem),
        }
    }
}

impl Target {
    /// Says what is true of a target while the first attempt has not ended.
    pub(super) const fn unanswered(&self) -> &'static str {
        match self {
            // The end would have been noticed at once.
            Self::Process(_) => "is running",
            Self::Command(_) => "the command has not ended",
            _ => "no answer yet",
        }
    }
}

fn host_and_port(text: &str) -> Result<Target, &'static str> {
    const PORT: &str = "a port is a number from 1 to 65535, as in localhost:8080";
    let (host, port) =
        text.trim_end_matches('/').rsplit_once(':').ok_or("the port is missing, as in localhost:8080")?;
    let port = port.parse().ok().filter(|&port| port > 0).ok_or(PORT)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if bare.is_none() && host.contains(':') {
        return Err("an IPv6 address needs brackets, as in [::1]:8080");
    }
    let host = bare.unwrap_or(host);
    if host.is_empty() {
        return Err("the host is missing, as in localhost:8080");
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control() || "/@?#[]".contains(c)) {
        return Err("a host is a name or an address, as in localhost:8080");
    }
    Ok(Target::Tcp { host: host.to_owned(), port })
}

/// Parses the path of a target; `unix:///run/x` and `file:///run/x` are accepted as well.
fn path(text: &str) -> Result<PathBuf, &'static str> {
    let text = if text.starts_with("///") { &text[2..] } else { text };
    if text.is_empty() || text.contains('\0') { Err("the path is missing") } else { Ok(PathBuf::from(text)) }
}

/// Returns a target that cannot be parsed without what may be a password: the part before an `@`, and a query.
fn redacted(text: &str) -> String {
    let (start, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, after)| after);
    let shown = rest.split(['?', '#']).next().unwrap_or_default();
    format!("{start}{shown}")
}

/// As in the log: without user, password, query and fragment.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Socket(path) => write!(f, "unix:{}", path_shown(path)),
            Self::Http(url) => {
                write!(f, "{}://{}", url.scheme(), url.host_str().unwrap_or_default())?;
                if let Some(port) = url.port() {
                    write!(f, ":{port}")?;
                }
                write!(f, "{}{}", url.path(), if url.query().is_some() { "?..." } else { "" })
            }
            Self::File(path) => write!(f, "file:{}", path_shown(path)),
            Self::Process(pid) => write!(f, "pid:{pid}"),
            Self::Command(command) => write!(f, "cmd:{}", command.trim().replace(['\n', '\r', '\t'], " ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_printed_as_they_are_typed() {
        for (text, want) in [
            ("db:5432", "db:5432"),
            ("tcp://db:5432", "db:5432"),
            ("tcp://db:5432/", "db:5432"),
            ("[::1]:80", "[::1]:80"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("unix:///run/x.sock", "unix:/run/x.sock"),
            ("file:a b", "file:a b"),
            ("pid:123", "pid:123"),
            ("cmd:pg_isready -q", "cmd:pg_isready -q"),
            ("https://h/health", "https://h/health"),
            ("http://h:8080", "http://h:8080/"),
            ("HTTP://H/", "http://h/"),
            ("Tcp://db:5432", "db:5432"),
            ("FILE:///run/x", "file:/run/x"),
            ("Unix:/run/x", "unix:/run/x"),
            ("FILE:80", "FILE:80"),
        ] {
            assert_eq!(Target::parse(text).map(|target| target.to_string()).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn passwords_and_queries_are_not_printed() {
        let target = Target::parse("https://user:secret@h/x?token=secret#secret").unwrap();
        assert_eq!(target.to_string(), "https://h/x?...");
        for text in ["https://user:secret@h:99999/?token=secret", "postgres://user:secret@h/x?k=secret", "u:secret@h:1"]
        {
            let error = Target::parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_wrong_target_says_what_to_write() {
        for (text, want) in [
            ("db", "a target is HOST:PORT"),
            ("db:", "from 1 to 65535"),
            ("db:0", "from 1 to 65535"),
            ("db:65536", "from 1 to 65535"),
            ("db:http", "from 1 to 65535"),
            (":80", "the host is missing"),
            ("::1:80", "needs brackets"),
            ("a b:80", "a host is a name"),
            ("tcp://db", "the port is missing"),
            ("redis://db:6379", "write tcp://HOST:PORT"),
            ("http://h:99999/", "invalid port"),
            ("http://", "host"),
            ("unix:", "the path is missing"),
            ("pid:0", "a positive number"),
            ("pid:-1", "a positive number"),
            ("cmd: ", "the command is empty"),
        ] {
            let error = Target::parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
