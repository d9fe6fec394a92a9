//! The options of curl by whether they take a value. A command with any other option counts as unknown.

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
pub(super) fn takes_value(name: &str) -> Option<bool> {
    let is_in = |list: &str| list.split_ascii_whitespace().any(|option| option == name);
    if is_in(WITH_VALUE) { Some(true) } else { is_in(FLAGS).then_some(false) }
}

/// Short options with a value, the rest of the word or the next one.
pub(super) const SHORT_WITH_VALUE: &[u8] = b"EKCbcdDFPHmoxUQreXYytzTuAw";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

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
        let help = Command::new("curl").args(["--help", "all"]).output().unwrap();
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
