//! The arguments, exit codes and log of GNU Wget 1.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;

use http::Method;

use super::arguments::{Arguments, OwnRetries, is_key, names_descriptor};
use super::response::{Response, ResponseReader, next_line};

/// Short options with a value, the rest of the word or the next one. `n` begins `-nv`, `-nc` and others.
const SHORT_WITH_VALUE: &[u8] = b"oeaitOTwQPUlARDIXBn";

/// Long options that matter here. Wget takes any unambiguous abbreviation of them.
const LONG: [(&str, Meaning); 15] = [
    ("post-data", Meaning::Post),
    ("post-file", Meaning::PostFile),
    ("method", Meaning::Method),
    ("header", Meaning::Header),
    ("tries", Meaning::Tries),
    ("output-file", Meaning::Conflict("-o (--output-file)")),
    ("append-output", Meaning::Conflict("-a (--append-output)")),
    ("background", Meaning::Background),
    ("server-response", Meaning::PrintsHeaders),
    ("execute", Meaning::Unknown),
    ("config", Meaning::Unknown),
    ("input-file", Meaning::File),
    ("body-data", Meaning::Other),
    ("body-file", Meaning::File),
    ("output-document", Meaning::Other),
];

#[derive(Clone, Copy, Debug)]
enum Meaning {
    Post,
    PostFile,
    File,
    Method,
    Header,
    Tries,
    Conflict(&'static str),
    Background,
    PrintsHeaders,
    Unknown,
    /// With a value that is no option.
    Other,
}

impl Meaning {
    fn has_value(self) -> bool {
        !matches!(self, Self::Background | Self::PrintsHeaders)
    }
}

/// Wget's own number of tries.
const DEFAULT_TRIES: &str = "20";

/// Maximum length of a line of the log in bytes: a progress bar is one line.
const MAX_LINE: usize = 1024 * 1024;

/// Reads the arguments like wget: short options may be combined, a long one may be abbreviated, and options may follow
/// addresses.
pub(super) fn parse(words: &[OsString]) -> Arguments {
    let mut method = Some(Method::GET);
    let mut is_unknown = false;
    let mut tries = DEFAULT_TRIES.to_owned();
    let (mut has_key, mut conflict, mut prints_headers) = (false, None, false);
    let (mut reads_stdin, mut reads_descriptor) = (false, false);
    let mut rest = words.iter().map(|word| word.as_bytes());
    while let Some(word) = rest.next() {
        let mut apply = |meaning, value: &[u8]| match meaning {
            Meaning::Post => method = Some(Method::POST),
            Meaning::PostFile | Meaning::File => {
                if matches!(meaning, Meaning::PostFile) {
                    method = Some(Method::POST);
                }
                reads_stdin |= is_stdin(value);
                reads_descriptor |= names_descriptor(value);
            }
            Meaning::Method if method != Some(Method::POST) => method = Method::from_bytes(value).ok(),
            Meaning::Header => has_key |= is_key(value),
            Meaning::Tries => tries = String::from_utf8_lossy(value).trim().to_owned(),
            Meaning::Conflict(option) => conflict = Some(option),
            Meaning::Background => conflict = Some("-b (--background)"),
            Meaning::PrintsHeaders => prints_headers = true,
            Meaning::Unknown => is_unknown = true,
            Meaning::Method | Meaning::Other => {}
        };
        match word {
            b"--" => break,
            [b'-', b'-', long @ ..] => {
                let (name, value) = long.split_at(long.iter().position(|&byte| byte == b'=').unwrap_or(long.len()));
                let meanings: Vec<_> = LONG
                    .into_iter()
                    .filter(|(full, _)| full.as_bytes().starts_with(name))
                    .map(|(_, meaning)| meaning)
                    .collect();
                let takes_next = value.is_empty() && meanings.iter().any(|meaning| meaning.has_value());
                let value = if takes_next { rest.next() } else { value.get(1..) };
                meanings.into_iter().for_each(|meaning| apply(meaning, value.unwrap_or_default()));
            }
            [b'-', short @ ..] if !short.is_empty() => {
                let with_value = short.iter().position(|letter| SHORT_WITH_VALUE.contains(letter));
                let (flags, option) = short.split_at(with_value.unwrap_or(short.len()));
                for letter in flags {
                    match letter {
                        b'S' => apply(Meaning::PrintsHeaders, b""),
                        b'b' => apply(Meaning::Background, b""),
                        _ => {}
                    }
                }
                if let Some((letter, value)) = option.split_first() {
                    let value = if value.is_empty() { rest.next().unwrap_or_default() } else { value };
                    match letter {
                        b'o' => apply(Meaning::Conflict("-o (--output-file)"), value),
                        b'a' => apply(Meaning::Conflict("-a (--append-output)"), value),
                        b'e' => apply(Meaning::Unknown, value),
                        b'i' => apply(Meaning::File, value),
                        b't' => apply(Meaning::Tries, value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let setting = match &*tries {
        "1" => None,
        DEFAULT_TRIES => Some("20 tries by default".to_owned()),
        tries => Some(format!("--tries={tries}")),
    };
    let own_retries = setting.map(|setting| OwnRetries { setting, remedy: "add --tries=1" });
    // Options are allowed everywhere, so they are added in front.
    Arguments {
        method: if is_unknown { None } else { method },
        has_key,
        reads_stdin,
        reads_descriptor,
        is_single: false,
        own_retries,
        conflict,
        prints_headers,
        options_end: 0,
    }
}

fn is_stdin(file: &[u8]) -> bool {
    matches!(file, b"-" | b"/dev/stdin" | b"/dev/fd/0")
}

/// Returns whether wget failed for a reason that may go away: a failure of the network.
pub(super) fn is_transient(code: u8) -> bool {
    code == 4
}

/// Passes a log of wget on, as it is without `-S`, or as it is if `keep_headers`. Returns the last response.
///
/// Headers are indented by two spaces, and end at a line that is not. Without them, wget writes the status after
/// "awaiting response... ".
pub(crate) fn relay_log(mut log: impl BufRead, keep_headers: bool, mut to: impl Write) -> io::Result<Option<Response>> {
    let mut reader = ResponseReader::default();
    let mut in_block = false;
    // The last line that was written; its newline is written before the next one.
    let mut last: Option<Vec<u8>> = None;
    let mut line = Vec::new();
    while next_line(&mut log, &mut line, MAX_LINE)? {
        let indented = line.strip_prefix(b"  ");
        let status_line = indented.filter(|header| header.starts_with(b"HTTP/"));
        in_block = status_line.is_some() || (in_block && indented.is_some());
        let is_header = in_block && indented.is_some_and(|header| reader.read(header));
        if !in_block {
            reader.end_block();
        }
        if keep_headers || !is_header {
            if last.is_some() {
                to.write_all(b"\n")?;
            }
            to.write_all(&line)?;
            last = Some(line.clone());
        } else if let Some(at) = status_line.and_then(|line| line.iter().position(|&byte| byte == b' '))
            && last.take_if(|last| last.ends_with(b" ")).is_some()
        {
            to.write_all(&line[2 + at + 1..])?;
            last = Some(Vec::new());
        }
    }
    if last.is_some() {
        to.write_all(b"\n")?;
    }
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Arguments {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn the_method_is_that_which_wget_uses() {
        for (line, want) in [
            ("http://h/", "GET"),
            ("-qO- http://h/", "GET"),
            ("--post-data=x http://h/", "POST"),
            ("http://h/ --post-file file", "POST"),
            ("--post-d x http://h/", "POST"),
            ("--method=PUT --body-data=x http://h/", "PUT"),
            ("--method DELETE http://h/", "DELETE"),
            ("--meth=PATCH http://h/", "PATCH"),
            ("--post-data=x --method=GET http://h/", "POST"),
            ("-nv -U --post-data=x http://h/", "GET"),
            ("-- --post-data=x", "GET"),
            ("-e post_data=x http://h/", "?"),
            ("--config=file http://h/", "?"),
        ] {
            let method = read(line).method;
            assert_eq!(method.as_ref().map_or("?", Method::as_str), want, "{line}");
        }
        assert!(read("--header='Idempotency-Key: 7' http://h/").has_key);
        assert!(read("--header 'Idempotency-Key: 7' http://h/").has_key);
    }

    #[test]
    fn options_that_stagger_needs_are_found() {
        for (line, want) in [
            ("-o log http://h/", Some("-o (--output-file)")),
            ("-qolog http://h/", Some("-o (--output-file)")),
            ("--append-output=log http://h/", Some("-a (--append-output)")),
            ("-qb http://h/", Some("-b (--background)")),
            ("-O file --output-document=file http://h/", None),
        ] {
            assert_eq!(read(line).conflict, want, "{line}");
        }
        assert_eq!(read("-t1 http://h/").own_retries, None);
        assert_eq!(read("--tries 1 http://h/").own_retries, None);
        assert_eq!(read("-t 3 http://h/").own_retries.unwrap().setting, "--tries=3");
        assert!(read("-qi -").reads_stdin && read("--post-file=- http://h/").reads_stdin);
        assert!(!read("-qO- http://h/").reads_stdin);
        assert!(read("-qSO- http://h/").prints_headers && !read("-qO- http://h/").prints_headers);
    }

    #[test]
    fn the_log_is_passed_on_without_headers_and_the_last_response_is_read() {
        let log = "--2026-11-22--  http://h/\nHTTP request sent, awaiting response... \n\
                   \x20 HTTP/1.1 302 Found\n  Location: /b\n\
                   Location: /b [following]\n  not a header: 1\n  HTTP/1.1 503 Busy\n  Retry-After: 2\n  no colon\n\
                   ERROR 503: Busy.\n  Retry-After: 9\n\n";
        let mut out = Vec::new();
        let response = relay_log(log.as_bytes(), false, &mut out).unwrap().unwrap();
        assert_eq!((response.status.unwrap().as_u16(), response.hops), (503, 2));
        assert_eq!(response.headers.get_all("retry-after").iter().collect::<Vec<_>>(), ["2"]);
        let kept = "--2026-11-22--  http://h/\nHTTP request sent, awaiting response... 302 Found\n\
                    Location: /b [following]\n  not a header: 1\n\
                    ERROR 503: Busy.\n  Retry-After: 9\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), kept);
        let mut all = Vec::new();
        relay_log(log.as_bytes(), true, &mut all).unwrap();
        assert_eq!(String::from_utf8(all).unwrap(), log);
    }
}
