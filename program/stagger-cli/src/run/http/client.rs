use core::fmt;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use http::Method;
use stagger_http::Idempotency;
use stagger_terminal::output::error::CliError;

use super::arguments::{Arguments, OwnRetries};
use super::{curl, wget};

/// The HTTP client of `--http`, with what its arguments say about its request.
#[derive(Debug)]
pub(crate) struct HttpClient {
    kind: ClientKind,
    arguments: Arguments,
    idempotency: Idempotency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKind {
    Curl,
    Wget,
}

impl HttpClient {
    /// Recognizes the client by the file name of the program, and reads its request from its arguments.
    pub(crate) fn recognize(command: &[OsString], declared_idempotent: bool) -> Result<Self, CliError> {
        let program = command.first().map_or(OsStr::new(""), |word| Path::new(word).file_name().unwrap_or(word));
        let rest = command.get(1..).unwrap_or_default();
        let (kind, arguments) = match program.as_encoded_bytes() {
            b"curl" => (ClientKind::Curl, curl::parse(rest)),
            b"wget" => (ClientKind::Wget, wget::parse(rest)),
            b"http" | b"https" | b"xh" | b"xhs" => {
                return Err(refused(
                    "HTTPie prints the headers of a response only among its output; use curl or wget, or leave out \
                     --http and \
                 write --retry-on 1,2,5 with its --check-status",
                ));
            }
            _ => {
                return Err(refused(&format!(
                    "`{}` is not curl or wget; in a script, leave out --http and write curl -D \"$STAGGER_ADVICE\"",
                    program.to_string_lossy()
                )));
            }
        };
        if let Some(option) = arguments.conflict {
            return Err(refused(&format!("{kind} cannot be given {option}, which --http needs; remove one of them")));
        }
        if arguments.reads_descriptor {
            return Err(refused(&format!(
                "{kind} reads a part of its request from a pipe, which only the first attempt gets; use a file or \
                 standard \
                 input"
            )));
        }
        let idempotency = match arguments.idempotency() {
            Idempotency::OnlyIfUnsent if declared_idempotent => Idempotency::Declared,
            idempotency => idempotency,
        };
        Ok(Self { kind, arguments, idempotency })
    }

    /// Returns the command with the options that make the client write the headers of its responses to `file`.
    pub(crate) fn with_header_file(&self, command: &[OsString], file: &Path) -> Vec<OsString> {
        let mut words = command.to_vec();
        let at = (1 + self.arguments.options_end).min(words.len());
        let options = self.added_options().iter().map(OsString::from).chain([file.into()]);
        words.splice(at..at, options);
        words
    }

    fn added_options(&self) -> &'static [&'static str] {
        match self.kind {
            ClientKind::Curl => &["-D"],
            ClientKind::Wget => &["-S", "-o"],
        }
    }

    pub(super) fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    /// Returns whether the client writes a log instead of header blocks, which must be passed on.
    pub(crate) fn writes_log(&self) -> bool {
        self.kind == ClientKind::Wget
    }

    /// Returns whether headers are to be left in the log.
    pub(crate) fn prints_headers(&self) -> bool {
        self.arguments.prints_headers
    }

    /// Returns whether this exit code, without a response, means that another attempt can succeed.
    pub(super) fn is_transient(&self, code: u8) -> bool {
        match self.kind {
            ClientKind::Curl => curl::is_transient(code),
            ClientKind::Wget => wget::is_transient(code),
        }
    }

    /// Returns whether this exit code, without a response, proves that the request was not sent.
    pub(super) fn proves_not_sent(&self, code: u8) -> bool {
        // An earlier request of the same client may have been sent.
        let is_only_request = self.arguments.is_single && self.arguments.own_retries.is_none();
        is_only_request && self.kind == ClientKind::Curl && curl::means_not_sent(code)
    }

    /// Returns the name of a client that reads a part of its request from standard input.
    pub(crate) fn reads_stdin(&self) -> Option<&'static str> {
        if self.arguments.reads_stdin { Some(self.kind.name()) } else { None }
    }

    /// Returns a note for a client that retries by itself.
    pub(crate) fn retries_note(&self) -> Option<String> {
        let OwnRetries { setting, remedy } = self.arguments.own_retries.as_ref()?;
        let kind = self.kind;
        Some(format!(
            "{kind} retries by itself ({setting}), so its retries multiply with those of stagger; {remedy}, or leave \
             retrying to {kind} with -n 1"
        ))
    }

    /// Describes what is added to the command, and what is known of the request.
    pub(crate) fn description(&self) -> String {
        let method = self.arguments.method.as_ref().map_or("unknown method", Method::as_str);
        let reason = match self.idempotency {
            Idempotency::OnlyIfUnsent => "it is not idempotent, and is repeated only if it was never sent; add an \
                                          Idempotency-Key header, or --idempotent if it may be sent twice"
                .to_owned(),
            idempotency => idempotency.to_string(),
        };
        format!("--http: added {} FILE to {}; {method}: {reason}", self.added_options().join(" "), self.kind)
    }
}

impl ClientKind {
    fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Wget => "wget",
        }
    }
}

fn refused(reason: &str) -> CliError {
    CliError::usage(format_args!("--http: {reason}"))
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
