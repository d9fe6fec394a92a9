//! Which system a file is for, by its content.

use super::object::{self, Object};
use super::{
    aws, azure, compose, dotnet, envoy, github, gitlab, grpc, haproxy, nginx, resilience4j, spring_gateway,
    spring_retry, step_functions, systemd,
};
use crate::entry::Entry;
use crate::format::Format;
use crate::position::{Position, ReadError};
use crate::tree::placeholders::{self, Syntax};
use crate::tree::{Node, checked, directives, json, properties, without_dots, yaml};

/// Reads a text, of a format that is known or not.
pub(crate) fn read(text: &str, format: Option<Format>) -> Result<Vec<Entry>, ReadError> {
    let mut entries = read_any(text, format)?;
    for entry in &mut entries {
        entry.settings.normalize();
        entry.remarks.sort_by_key(|remark| remark.span);
    }
    Ok(entries)
}

fn read_any(text: &str, format: Option<Format>) -> Result<Vec<Entry>, ReadError> {
    let text = checked(text)?;
    match format {
        Some(Format::Systemd) => return Ok(systemd::read(text)),
        Some(Format::Haproxy) => return Ok(haproxy::read(text)),
        Some(Format::Nginx) => return Ok(nginx::read(&directives(text)?)),
        Some(Format::Aws) => return Ok(aws::read(text)),
        Some(spring) if SPRING.contains(&spring) && !looks_like_yaml(text) => {
            return Ok(application(properties(text), format).unwrap_or_default());
        }
        _ => {}
    }
    let documents = match documents(text) {
        Ok(documents) => documents,
        Err(error) => {
            let error = annotated(text).unwrap_or(error);
            return other_syntaxes(text, format).unwrap_or(Err(error));
        }
    };
    let mut entries = Vec::new();
    let mut is_known = false;
    let has_placeholders = placeholders::may_have(text);
    for document in &documents {
        // Spring has another syntax, and fills in what it reads itself.
        let mut filled = None;
        if has_placeholders {
            placeholders::fill(filled.insert(document.clone()), Syntax::Shell);
        }
        is_known |= read_document(filled.as_ref().unwrap_or(document), format, &mut entries)
            || read_application(document, format, &mut entries);
    }
    if is_known {
        return Ok(entries);
    }
    match other_syntaxes(text, format) {
        Some(found) => found,
        None => Err(unknown(text, format)),
    }
}

/// Returns the error for source code of Java or Kotlin whose annotations set retries, with the place of the first.
fn annotated(text: &str) -> Option<ReadError> {
    const ANNOTATIONS: [&str; 2] = ["@Retryable", "@Retry("];
    let is_annotated = |line: &&str| ANNOTATIONS.iter().any(|name| line.trim_start().starts_with(name));
    let at = text.lines().position(|line| is_annotated(&line))?;
    let (before, _) = text.lines().nth(at)?.split_once('@')?;
    let found = Position::new(at + 1, before.chars().count() + 1);
    let message = "retries that annotations set in source code are not read; check the properties of the application \
                   instead, or the policy: `stagger check 'constant base=1s jitter=none max-attempts=3'` is the \
                   default of @Retryable";
    Some(ReadError::new(found, message))
}

fn unknown(text: &str, format: Option<Format>) -> ReadError {
    if let Some(error) = annotated(text) {
        return error;
    }
    let names: Vec<_> = Format::all().map(Format::name).collect();
    let message = match format {
        Some(format) => {
            format!("nothing here is read by {format}; leave the format out, or name another: {}", names.join(", "))
        }
        None => format!("not a configuration that is known here; name its format: {}", names.join(", ")),
    };
    ReadError::new(Position::START, message)
}

/// JSON begins with a brace or a bracket; anything else is tried as YAML.
fn documents(text: &str) -> Result<Vec<Node>, ReadError> {
    let start = text.trim_start();
    let is_json = start.starts_with('{') && !start.starts_with("{{")
        || start.starts_with('[') && !start.lines().next().is_some_and(is_section);
    if !is_json {
        return yaml(text);
    }
    // YAML has flow mappings as well.
    match json(text) {
        Ok(document) => Ok(vec![document]),
        Err(error) => yaml(text).map_err(|_| error),
    }
}

/// Returns whether a line is `[Section]` of a unit.
fn is_section(line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix('[') else { return false };
    let Some(name) = rest.strip_suffix(']') else { return false };
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '-')
}

fn looks_like_yaml(text: &str) -> bool {
    match yaml(text) {
        Ok(documents) => documents.iter().any(|document| !document.members().is_empty()),
        Err(_) => false,
    }
}

/// Returns whether a file is read as this format: it is the one that was named, or none was.
fn is_wanted(named: Option<Format>, candidate: Format) -> bool {
    match named {
        Some(named) => named == candidate,
        None => true,
    }
}

/// Formats whose files are neither JSON nor YAML.
fn other_syntaxes(text: &str, format: Option<Format>) -> Option<Result<Vec<Entry>, ReadError>> {
    let is_wanted = |candidate| is_wanted(format, candidate);
    if is_wanted(Format::Systemd) && systemd::is_unit(text) {
        return Some(Ok(systemd::read(text)));
    }
    if is_wanted(Format::Haproxy) && haproxy::is_haproxy(text) {
        return Some(Ok(haproxy::read(text)));
    }
    if is_wanted(Format::Nginx)
        && let Ok(found) = directives(text)
        && nginx::is_nginx(&found)
    {
        return Some(Ok(nginx::read(&found)));
    }
    if is_wanted(Format::Aws) && aws::is_aws(text) {
        return Some(Ok(aws::read(text)));
    }
    application(properties(text), format).map(Ok)
}

/// What an application of Spring configures in one file.
const SPRING: [Format; 3] = [Format::Resilience4j, Format::SpringRetry, Format::SpringGateway];

/// Reads the properties of an application of Spring, in the order of the file; `None` if nothing there retries.
fn application(mut root: Node, format: Option<Format>) -> Option<Vec<Entry>> {
    let is_wanted = |candidate| is_wanted(format, candidate);
    placeholders::fill(&mut root, Syntax::Spring);
    let root = &root;
    let mut found = None;
    let mut add = |is_present: bool, entries: fn(&Node) -> Vec<Entry>| {
        if is_present {
            found.get_or_insert_with(Vec::new).extend(entries(root));
        }
    };
    add(is_wanted(Format::Resilience4j) && resilience4j::is_application(root), resilience4j::read);
    add(is_wanted(Format::SpringRetry) && spring_retry::is_application(root), spring_retry::read);
    add(is_wanted(Format::SpringGateway) && spring_gateway::is_application(root), spring_gateway::read);
    if let Some(entries) = &mut found {
        entries.sort_by_key(|entry| entry.span);
    }
    found
}

/// Reads one document. Returns whether it is of a known format, also if it has no entries.
fn read_document(document: &Node, format: Option<Format>, entries: &mut Vec<Entry>) -> bool {
    let is_wanted = |candidate| is_wanted(format, candidate);
    let objects = Object::all_of(document);
    if !objects.is_empty() {
        let before = entries.len();
        objects.iter().for_each(|object| object::read(object, entries));
        if let Some(format) = format {
            let mut at = 0;
            entries.retain(|entry| {
                at += 1;
                at <= before || entry.format == format
            });
        }
        return true;
    }
    if is_wanted(Format::Grpc) && grpc::is_service_config(document) {
        entries.extend(grpc::read(document));
    } else if is_wanted(Format::StepFunctions) && step_functions::is_state_machine(document) {
        entries.extend(step_functions::read(document));
    } else if is_wanted(Format::Compose) && compose::is_compose(document) {
        entries.extend(compose::read(document));
    } else if is_wanted(Format::Envoy) && (envoy::has_policy(document) || envoy::is_bootstrap(document)) {
        entries.extend(envoy::read(document));
    } else if is_wanted(Format::AzureFunctions) && azure::is_functions(document) {
        entries.extend(azure::read(document));
        if is_wanted(Format::ServiceBus) {
            entries.extend(azure::read_clients(document));
        }
    } else if is_wanted(Format::GitHub) && github::is_workflow(document) {
        entries.extend(github::read(document));
    } else if is_wanted(Format::GitLab) && gitlab::is_pipeline(document) {
        entries.extend(gitlab::read(document));
    } else if let Some(found) = strategies(document, format) {
        entries.extend(found);
    } else {
        return false;
    }
    true
}

/// Reads a document as one of an application of Spring. Returns whether it is.
fn read_application(document: &Node, format: Option<Format>, entries: &mut Vec<Entry>) -> bool {
    let Some(found) = application(without_dots(document), format) else { return false };
    entries.extend(found);
    true
}

/// Reads the sections of an application of .NET, in the order of the file; `None` if there are none.
fn strategies(document: &Node, format: Option<Format>) -> Option<Vec<Entry>> {
    let is_wanted = |candidate| is_wanted(format, candidate);
    let handlers = is_wanted(Format::DotNet) && dotnet::has_section(document);
    let strategies = is_wanted(Format::Polly) && dotnet::has_strategy(document);
    let clients = is_wanted(Format::ServiceBus) && azure::has_options(document);
    let mut found = if handlers { dotnet::read(document) } else { Vec::new() };
    if strategies {
        found.extend(dotnet::read_polly(document));
    }
    if clients {
        found.extend(azure::read_clients(document));
    }
    found.sort_by_key(|entry| entry.span);
    if handlers || strategies || clients { Some(found) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_or_unknown_is_refused_with_a_way_out() {
        let error = read(&" ".repeat((64 << 20) + 1), None).unwrap_err().to_string();
        assert!(error.contains("64 MiB"), "{error}");
        for text in ["", "hello", "{}", "[]", "a: 1\n"] {
            let error = read(text, None).unwrap_err().to_string();
            assert!(error.contains("istio") || error.contains("not valid"), "{text}: {error}");
        }
    }
}
