//! What is said about a file that no reader accepts: the error of the format that its name or its text says, and not
//! that of the syntax that was tried last.

use std::path::Path;

use serde::de::IgnoredAny;
use stagger_config::{Format, ReadError};
use stagger_lint::config::ConfigFile;

use super::read::ending;

/// Returns the place and the error, as `LINE:COLUMN: error`. `format` is the one that the user has named.
pub(super) fn refusal(path: &Path, text: &str, format: Option<Format>, error: &ReadError) -> String {
    let placed = |error: &ReadError| format!("{}: {error}", error.position());
    let said = error.to_string();
    // What a reader says about its own format stands.
    let is_guess = said.starts_with("not valid YAML") || said.starts_with(UNKNOWN);
    if format.is_some() || !is_guess {
        return placed(error);
    }
    if let Some(error) = nginx(path, text) {
        return placed(&error);
    }
    match ending(path) {
        "json" => json(text).unwrap_or_else(|| placed(error)),
        "toml" => toml(text),
        "service" | "mount" | "swap" | "socket" | "timer" => {
            format!("1:1: not a unit of systemd: it has no section such as [Service]; {}", name_it())
        }
        "cfg" => format!(
            "1:1: not a configuration of HAProxy: it has no section such as `defaults` or `backend NAME`; {}",
            name_it()
        ),
        "properties" => {
            format!("1:1: no property here is one that is known to be about retries; {}", name_it())
        }
        "yaml" | "yml" | "jsonc" | "" => placed(error),
        // Not YAML, by its name.
        _ => format!("1:1: {UNKNOWN}; {}", name_it()),
    }
}

/// How the error of a file begins that no reader takes for its own.
const UNKNOWN: &str = "not a configuration that is known here";

fn name_it() -> String {
    let names: Vec<_> = Format::all().map(Format::name).collect();
    format!("name its format: {}", names.join(", "))
}

/// Returns the error of the reader for nginx, if a file looks like one of nginx.
pub(super) fn nginx(path: &Path, text: &str) -> Option<ReadError> {
    let is_nginx = match ending(path) {
        "nginx" => true,
        "conf" | "" => has_marks_of_nginx(text),
        _ => false,
    };
    if is_nginx { ConfigFile::read("", text, Some(Format::Nginx)).err() } else { None }
}

/// Returns whether a line opens a block of nginx, and another is a directive of its, or opens a block, too.
fn has_marks_of_nginx(text: &str) -> bool {
    const BLOCKS: [&str; 6] = ["http", "server", "upstream", "location", "events", "stream"];
    const DIRECTIVES: [&str; 7] =
        ["listen", "server_name", "proxy_", "fastcgi_", "grpc_pass", "worker_processes", "include"];
    let mut marks = 0;
    let mut blocks = 0;
    for line in text.lines() {
        for part in line.split_inclusive(['{', ';']).map(str::trim) {
            let first = part.split_whitespace().next().unwrap_or_default();
            let opens = part.ends_with('{') && BLOCKS.contains(&first.trim_end_matches('{'));
            let is_directive = DIRECTIVES.iter().any(|name| first.starts_with(name));
            blocks += usize::from(opens);
            marks += usize::from(opens || is_directive);
        }
    }
    blocks > 0 && marks > 1
}

/// Returns the error of JSON, if it is none: YAML has mappings like those of JSON, and takes more.
fn json(text: &str) -> Option<String> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    Some(format!("{}:{}: not valid JSON: {message}", error.line().max(1), error.column().max(1)))
}

fn toml(text: &str) -> String {
    match text.parse::<toml::Table>() {
        Ok(_) => {
            "1:1: a TOML file is read as a system of services, and this one has not two of the tables users, tier \
                  and edge"
                .to_owned()
        }
        Err(error) => {
            let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            format!("{line}:{column}: not valid TOML: {}", error.message().replace('\n', " "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> String {
        let error = ConfigFile::read(name, text, None).unwrap_err();
        refusal(Path::new(name), text, None, &error)
    }

    #[test]
    fn the_error_is_that_of_the_format_which_the_name_or_the_text_says() {
        const BROKEN: &str = "server {\n\tlisten 80;\n\tlocation / {\n\t\tproxy_pass http://a\n\t}\n}\n";
        for (name, text, want) in [
            ("a.conf", BROKEN, "5:2: not valid nginx configuration: unexpected `}`"),
            ("-", BROKEN, "5:2: not valid nginx"),
            ("a.nginx", "events {", "1:9: not valid nginx"),
            ("a.conf", "upstream a { server b:1; }\nserver { listen 'x", "2:17: not valid nginx"),
            ("a.conf", "a:\n\tb: 1\n", "1:1: not a configuration that is known here"),
            ("a.json", "\"a\": 1}", "1:4: not valid JSON: trailing characters"),
            ("a.json", "{\"a\": }", "1:7: not valid JSON"),
            ("a.toml", "x = [\n", "not valid TOML: "),
            ("a.toml", "x = 1\n", "1:1: a TOML file is read as a system of services"),
            ("a.service", "Restart=always\n", "1:1: not a unit of systemd"),
            ("a.cfg", "defaults:\n\tretries 3\n", "1:1: not a configuration of HAProxy"),
            ("a.properties", "a=b\nc\n\t: d", "1:1: no property here"),
            ("a.hcl", "retry {\n\tmax = 3\n}\n", "1:1: not a configuration that is known here"),
            ("a.yaml", "a:\n\tb: 1\n", "not valid YAML"),
        ] {
            let said = said(name, text);
            assert!(said.contains(want), "{name}: {said}");
            assert!(name.ends_with("yaml") || !said.contains("YAML"), "{name}: {said}");
        }
        // A format that the user has named says its own.
        let error = ConfigFile::read("", "a:\n\tb: 1\n", Some(Format::Istio)).unwrap_err();
        let said = refusal(Path::new("a.conf"), "a:\n\tb: 1\n", Some(Format::Istio), &error);
        assert!(said.contains("not valid YAML"), "{said}");
    }
}
