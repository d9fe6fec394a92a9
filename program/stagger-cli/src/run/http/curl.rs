//! The arguments and exit codes of curl.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use http::Method;

use super::arguments::{Arguments, OwnRetries, is_key, names_descriptor};

/// What the options say so far.
#[derive(Debug, Default)]
struct Request {
    /// The value of `-X`.
    method: Option<Vec<u8>>,
    sends_data: bool,
    uploads: bool,
    is_head: bool,
    is_get: bool,
    has_key: bool,
    /// Whether something else may determine the request: a config file, an unknown option, several groups of options.
    is_unknown: bool,
    /// Whether data may be sent before the connection is established.
    sends_early: bool,
    urls: usize,
    reads_stdin: bool,
    reads_descriptor: bool,
    own_retries: Option<String>,
    writes_headers: bool,
}

/// Reads the arguments like curl: short options may be combined, and a value is the rest of the word or the next one.
/// What is not known is a reason not to repeat the request.
pub(super) fn parse(words: &[OsString]) -> Arguments {
    let mut request = Request::default();
    let mut options_end = words.len();
    let mut rest = words.iter().map(|word| word.as_bytes()).enumerate();
    while let Some((at, word)) = rest.next() {
        match word {
            b"--" => {
                options_end = at;
                rest.by_ref().for_each(|(_, url)| request.url(url));
            }
            [b'-', b'-', name @ ..] => match core::str::from_utf8(name) {
                Ok(name) if takes_value(name) == Some(true) => {
                    request.option(name, rest.next().map(|(_, value)| value).unwrap_or_default());
                }
                name => request.flag(name.unwrap_or_default()),
            },
            [b'-', short @ ..] if !short.is_empty() => {
                let with_value = short.iter().position(|letter| SHORT_WITH_VALUE.contains(letter));
                let (flags, option) = short.split_at(with_value.unwrap_or(short.len()));
                flags.iter().for_each(|letter| request.flag(long_flag(*letter)));
                if let Some((letter, value)) = option.split_first() {
                    let mut next = || rest.next().map(|(_, value)| value).unwrap_or_default();
                    request.option(long_option(*letter), if value.is_empty() { next() } else { value });
                }
            }
            url => request.url(url),
        }
    }
    request.finish(options_end)
}

/// Returns the long name of a short option with a value, if it matters here.
fn long_option(letter: u8) -> &'static str {
    match letter {
        b'X' => "request",
        b'd' => "data",
        b'F' => "form",
        b'T' => "upload-file",
        b'H' => "header",
        b'K' => "config",
        b'D' => "dump-header",
        _ => "",
    }
}

/// Returns the long name of a short option without a value, if it matters here.
fn long_flag(letter: u8) -> &'static str {
    match letter {
        b'G' => "get",
        b'I' => "head",
        b':' => "next",
        _ => "silent",
    }
}

impl Request {
    fn option(&mut self, name: &str, value: &[u8]) {
        if READ_FILES.contains(&name) {
            self.reads_stdin |= reads_stdin(name, value);
            self.reads_descriptor |= names_descriptor(value);
        }
        match name {
            "request" => self.method = Some(value.to_vec()),
            "data" | "data-ascii" | "data-binary" | "data-raw" | "data-urlencode" | "json" | "form" | "form-string" => {
                self.sends_data = true;
            }
            "upload-file" => self.uploads = true,
            "header" => self.has_key |= is_key(value),
            "config" | "variable" => self.is_unknown = true,
            "dump-header" => self.writes_headers = true,
            "url" => self.url(value),
            // The last one counts; without any retries it is no matter.
            "retry" => {
                let times = String::from_utf8_lossy(value).trim().to_owned();
                self.own_retries = Some(times).filter(|times| !times.trim_start_matches('0').is_empty());
            }
            _ => {}
        }
    }

    fn flag(&mut self, name: &str) {
        match name {
            "get" => self.is_get = true,
            "head" => self.is_head = true,
            "tls-earlydata" | "tcp-fastopen" => self.sends_early = true,
            // Each group of options has a request of its own.
            "next" | "no-get" | "no-head" => self.is_unknown = true,
            name => {
                let is_flag = |name| takes_value(name) == Some(false);
                let is_known = is_flag(name) || name.strip_prefix("no-").is_some_and(is_flag);
                self.is_unknown |= !is_known;
            }
        }
    }

    fn url(&mut self, url: &[u8]) {
        // Curl expands {a,b} and [1-3], but an address in brackets is none of these, and `@` reads addresses from a
        // file.
        let is_range = |at: usize| url[at] == b'[' && !url[..at].ends_with(b"//") && !url[..at].ends_with(b"@");
        let is_expanded = url.contains(&b'{') || (0..url.len()).any(is_range);
        self.urls += if is_expanded || url.starts_with(b"@") { 2 } else { 1 };
    }

    fn finish(self, options_end: usize) -> Arguments {
        let by_body = match (self.is_get, self.sends_data, self.uploads) {
            _ if self.is_head => Method::HEAD,
            (true, ..) | (_, false, false) => Method::GET,
            (_, true, _) => Method::POST,
            (_, _, true) => Method::PUT,
        };
        let method = match &self.method {
            Some(method) => Method::from_bytes(method).ok(),
            None => Some(by_body),
        };
        Arguments {
            method: if self.is_unknown { None } else { method },
            has_key: self.has_key,
            reads_stdin: self.reads_stdin,
            reads_descriptor: self.reads_descriptor,
            is_single: self.urls == 1 && !self.is_unknown && !self.sends_early,
            own_retries: self
                .own_retries
                .map(|times| OwnRetries { setting: format!("--retry {times}"), remedy: "remove --retry" }),
            conflict: if self.writes_headers { Some("-D (--dump-header)") } else { None },
            prints_headers: false,
            options_end,
        }
    }
}

/// Options that may read a part of the request from a file.
const READ_FILES: [&str; 11] = [
    "config",
    "upload-file",
    "data",
    "data-ascii",
    "data-binary",
    "json",
    "header",
    "url",
    "data-urlencode",
    "variable",
    "form",
];

/// Returns whether one of [`READ_FILES`] reads standard input.
fn reads_stdin(name: &str, value: &[u8]) -> bool {
    let has = |part: &[u8]| value.windows(part.len()).any(|window| window == part);
    let by_name = match name {
        "config" => value == b"-",
        "upload-file" => matches!(value, b"-" | b"."),
        "data" | "data-ascii" | "data-binary" | "json" | "header" | "url" => value == b"@-",
        "data-urlencode" | "variable" => value.ends_with(b"@-"),
        // A form has a name before the file, and may have several files.
        _ => has(b"=@-") || has(b"=<-") || has(b",-"),
    };
    by_name || has(b"/dev/stdin") || has(b"/dev/fd/0")
}

/// Returns whether curl got no response for a reason that may go away: it could not connect, or the connection or the
/// protocol on it broke, or the time was up.
pub(super) fn is_transient(code: u8) -> bool {
    // 16, 92: HTTP/2. 18, 52, 55, 56: the connection broke. 28: time-out. 95, 96: HTTP/3.
    means_not_sent(code) || matches!(code, 16 | 18 | 28 | 52 | 55 | 56 | 92 | 95 | 96)
}

/// Returns whether curl ended before it could send a request.
pub(super) fn means_not_sent(code: u8) -> bool {
    // 5: the proxy was not found. 6: the host was not found. 7: no connection. 35: no TLS. 97: the proxy's handshake.
    matches!(code, 5 | 6 | 7 | 35 | 97)
}

/// Long options with a value.
const WITH_VALUE: &str = "
    abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config connect-timeout connect-to
    continue-at cookie cookie-jar create-file-mode crlfile curves data data-ascii data-binary data-raw data-urlencode
    delegation dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url dump-header ech egd-file engine
    etag-compare etag-save expect100-timeout form form-string ftp-account ftp-alternative-to-user ftp-method ftp-port
    ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip header hostpubmd5 hostpubsha256 hsts interface ip-tos
    ipfs-gateway json keepalive-cnt keepalive-time key key-type knownhosts krb libcurl limit-rate local-port
    login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time netrc-file noproxy oauth2-bearer output
    output-dir parallel-max parallel-max-host pass pinnedpubkey preproxy proto proto-default proto-redir proxy
    proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key
    proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype
    proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file range rate referer request
    request-target resolve retry retry-delay retry-max-time sasl-authzid service-name sigalgs socks4 socks4a socks5
    socks5-gssapi-service socks5-hostname speed-limit speed-time ssl-sessions stderr telnet-option tftp-blksize
    time-cond tls-max tls13-ciphers tlsauthtype tlspassword tlsuser trace trace-ascii trace-config unix-socket
    upload-file upload-flags url url-query user user-agent variable vlan-priority write-out";

/// Long options without a value.
const FLAGS: &str = "
    anyauth append basic ca-native cert-status compressed compressed-ssh create-dirs crlf digest disable disable-eprt
    disable-epsv disallow-username-in-url doh-cert-status doh-insecure dump-ca-embed fail fail-early fail-with-body
    false-start follow form-escape ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-control get
    globoff haproxy-protocol head help http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only
    ignore-content-length include insecure ipv4 ipv6 junk-session-cookies list-only location location-trusted
    mail-rcpt-allowfails manual metalink mptcp negotiate netrc netrc-optional next no-alpn no-buffer no-clobber
    no-keepalive no-npn no-progress-meter no-sessionid ntlm ntlm-wb out-null parallel parallel-immediate path-as-is
    post301 post302 post303 progress-bar proxy-anyauth proxy-basic proxy-ca-native proxy-digest proxy-http2
    proxy-insecure proxy-negotiate proxy-ntlm proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tlsv1 proxytunnel
    raw remote-header-name remote-name remote-name-all remote-time remove-on-error retry-all-errors retry-connrefused
    sasl-ir show-error silent skip-existing socks5-basic socks5-gssapi socks5-gssapi-nec ssl ssl-allow-beast
    ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort sslv2 sslv3 styled-output
    suppress-connect-headers tcp-fastopen tcp-nodelay tftp-no-options tls-earlydata tlsv1 tlsv1.0 tlsv1.1 tlsv1.2
    tlsv1.3 tr-encoding trace-ids trace-time use-ascii verbose version xattr";

/// Returns whether a long option takes a value; `None` for an unknown option.
fn takes_value(name: &str) -> Option<bool> {
    let is_in = |list: &str| list.split_ascii_whitespace().any(|option| option == name);
    if is_in(WITH_VALUE) {
        Some(true)
    } else if is_in(FLAGS) {
        Some(false)
    } else {
        None
    }
}

/// Short options with a value, the rest of the word or the next one.
pub(super) const SHORT_WITH_VALUE: &[u8] = b"EKCbcdDFPHmoxUQreXYytzTuAw";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn read(line: &str) -> Arguments {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn the_method_is_that_which_curl_uses() {
        for (line, want) in [
            ("http://h/", "GET"),
            ("-fsSL -o file --max-time 5 http://h/", "GET"),
            ("-sSXPOST http://h/", "POST"),
            ("-sSX POST http://h/", "POST"),
            ("--request DELETE -d x http://h/", "DELETE"),
            ("-X POST -X GET http://h/", "GET"),
            ("-dx http://h/", "POST"),
            ("--data-urlencode a=b http://h/", "POST"),
            ("--json {} http://h/", "POST"),
            ("-F a=b http://h/", "POST"),
            ("-T file http://h/", "PUT"),
            ("-T file -d x http://h/", "POST"),
            ("-I http://h/", "HEAD"),
            ("-sSI http://h/", "HEAD"),
            ("-G -d a=b http://h/", "GET"),
            ("-Gd a=b http://h/", "GET"),
            ("--get --data a=b http://h/", "GET"),
            // The value of an option is no option.
            ("-A -d http://h/", "GET"),
            ("-o -XPOST http://h/", "GET"),
            ("--user-agent --json http://h/", "GET"),
            ("-H -dx http://h/", "GET"),
            ("-fsSo/dev/null http://h/", "GET"),
            ("http://h/ -- -d", "GET"),
            ("--no-buffer --no-keepalive --no-compressed http://h/", "GET"),
            // Case matters.
            ("-X get http://h/", "get"),
            // Not told by the arguments.
            ("-K file http://h/", "?"),
            ("-sK- http://h/", "?"),
            ("http://h/ --next -d x http://h/", "?"),
            ("http://h/ -: -d x http://h/", "?"),
            ("--request=POST http://h/", "?"),
            ("--reques POST http://h/", "?"),
            ("--no-such-option http://h/", "?"),
            ("-G --no-get -d x http://h/", "?"),
            ("-X 'NO METHOD' http://h/", "?"),
        ] {
            let method = read(line).method;
            assert_eq!(method.as_ref().map_or("?", Method::as_str), want, "{line}");
        }
    }

    #[test]
    fn a_key_counts_if_curl_sends_it() {
        for (line, want) in [
            ("-H 'Idempotency-Key: 7' http://h/", true),
            ("-fsSH 'idempotency-key:7' http://h/", true),
            ("--header 'IDEMPOTENCY-KEY: \"7\"' http://h/", true),
            // Curl removes the header, or sends it without a value.
            ("-H 'Idempotency-Key:' http://h/", false),
            ("-H 'Idempotency-Key;' http://h/", false),
            ("-H @file http://h/", false),
            ("-A 'Idempotency-Key: 7' http://h/", false),
        ] {
            assert_eq!(read(line).has_key, want, "{line}");
        }
    }

    #[test]
    fn only_a_single_request_can_be_proven_not_to_be_sent() {
        for (line, want) in [
            ("http://h/", true),
            ("http://[::1]:80/", true),
            ("-- http://h/", true),
            ("--url http://h/", true),
            ("http://h/ http://h/", false),
            ("--url http://h/ http://h/", false),
            ("http://h/{a,b}", false),
            ("http://h/[1-3]", false),
            ("--url @list", false),
            ("--tls-earlydata https://h/", false),
            ("-K file", false),
            ("", false),
        ] {
            assert_eq!(read(line).is_single, want, "{line}");
        }
    }

    #[test]
    fn the_guide_lists_the_exit_codes_that_are_retried() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/run.md"));
        let listed = |codes: &[u8]| {
            let codes: Vec<_> = codes.iter().map(u8::to_string).collect();
            page.contains(&format!("| curl | {} |", codes.join(", ")))
        };
        let (unsent, sent): (Vec<u8>, Vec<u8>) =
            (0..=u8::MAX).filter(|&code| is_transient(code)).partition(|&code| means_not_sent(code));
        assert!(listed(&unsent), "{unsent:?}");
        assert!(listed(&sent), "{sent:?}");
        assert!(
            page.contains("| wget | 4 |")
                && (0..=u8::MAX).all(|code| super::super::wget::is_transient(code) == (code == 4))
        );
    }

    #[test]
    fn what_reads_standard_input_is_found() {
        for (line, want) in [
            ("-d @- http://h/", true),
            ("--data-urlencode a@- http://h/", true),
            ("-F 'a=@-;type=text/plain' http://h/", true),
            ("-F 'a=<-' http://h/", true),
            ("-T- http://h/", true),
            ("-T . http://h/", true),
            ("-T /dev/stdin http://h/", true),
            ("-sK - http://h/", true),
            ("-H @- http://h/", true),
            ("-d - http://h/", false),
            ("-d @file http://h/", false),
            ("--data-raw @- http://h/", false),
            ("-o - http://h/", false),
            ("-T file http://h/", false),
        ] {
            assert_eq!(read(line).reads_stdin, want, "{line}");
        }
        for (line, want) in [
            ("-T /dev/fd/63 http://h/", true),
            ("-d @/proc/self/fd/11 http://h/", true),
            ("-d @/dev/fd/0 http://h/", false),
            ("-o /dev/fd/63 http://h/", false),
        ] {
            assert_eq!(read(line).reads_descriptor, want, "{line}");
        }
    }

    #[test]
    fn options_are_added_before_the_end_of_options() {
        for (line, want) in [("-fsS http://h/", 2), ("-f -- http://h/", 1), ("-d -- http://h/", 3), ("", 0)] {
            assert_eq!(read(line).options_end, want, "{line}");
        }
    }

    #[test]
    fn options_that_stagger_needs_are_found() {
        for (line, want) in [
            ("-D - http://h/", true),
            ("-sSDfile http://h/", true),
            ("--dump-header f http://h/", true),
            ("-d -D http://h/", false),
        ] {
            assert_eq!(read(line).conflict.is_some(), want, "{line}");
        }
        for (line, want) in [
            ("--retry 3 http://h/", Some("--retry 3")),
            ("--retry 0 http://h/", None),
            ("--retry 3 --retry 0 http://h/", None),
            ("--retry-delay 3 http://h/", None),
        ] {
            assert_eq!(read(line).own_retries.map(|own| own.setting).as_deref(), want, "{line}");
        }
    }

    /// Returns the short and long name of an option in a line of the help text, and whether it takes a value.
    fn option(line: &str) -> Option<(Option<u8>, &str, bool)> {
        let (names, rest) = line.trim_start().split_once("--")?;
        let (name, rest) = rest.split_once(' ')?;
        let short = names.strip_prefix('-').map(|short| short.as_bytes()[0]);
        Some((short, name, rest.starts_with(['<', '[']) && name != "help"))
    }

    /// A newer curl may have more options.
    #[test]
    fn options_take_a_value_if_those_of_the_installed_curl_do() {
        let Ok(help) = Command::new("curl").args(["--help", "all"]).output() else {
            eprintln!("SKIPPED: curl is not installed");
            return;
        };
        let help = String::from_utf8(help.stdout).unwrap();
        let known = help.lines().skip(1).filter_map(option);
        let known: Vec<_> = known.filter(|(_, name, _)| takes_value(name).is_some()).collect();
        assert!(known.len() > 200, "{} options", known.len());
        for (short, name, has_value) in known {
            assert_eq!(takes_value(name), Some(has_value), "--{name}");
            if let Some(short) = short {
                assert_eq!(SHORT_WITH_VALUE.contains(&short), has_value, "-{}", char::from(short));
            }
        }
    }
}
