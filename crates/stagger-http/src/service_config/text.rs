//! Parses the text of a service config.

use core::str::FromStr;

use super::config::{ServiceConfig, ServiceConfigError};
use super::fields::ConfigFields;

/// Largest text that is read, in bytes: many times the largest config that people write.
const MAX_BYTES: usize = 64 << 20;

impl FromStr for ServiceConfig {
    type Err = ServiceConfigError;

    /// Parses a service config from JSON. Fields that do not concern retries are ignored, and so are comments and
    /// trailing commas.
    ///
    /// # Errors
    /// Returns an error if the text is not JSON, or is a config that gRPC rejects. It lists every problem, with its
    /// path and how to fix it.
    fn from_str(json: &str) -> Result<Self, ServiceConfigError> {
        if json.len() > MAX_BYTES {
            let text = format!("the config has more than {} MiB; pass the part with the retries", MAX_BYTES >> 20);
            return Err(ServiceConfigError::one(text));
        }
        let plain = plain_json(json.strip_prefix('\u{feff}').unwrap_or(json));
        let document = serde_json::from_str(&plain).map_err(|error| syntax(&plain, &error))?;
        ConfigFields::read(&document).to_config()
    }
}

fn syntax(text: &str, error: &serde_json::Error) -> ServiceConfigError {
    let (line, bytes) = (error.line(), error.column());
    let problem = error.to_string();
    let problem = problem.strip_suffix(&format!(" at line {line} column {bytes}")).unwrap_or(&problem);
    // A column is a number of characters, and not of bytes.
    let before = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let column = before.char_indices().filter(|(at, _)| *at < bytes).count().max(1);
    ServiceConfigError::one(format!("not valid JSON: {problem} at {line}:{column}"))
}

/// Replaces comments and trailing commas by spaces, so that everything else keeps its place.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The last character that is no space, and where it is if it is a comma that may be the last of its list.
    let (mut last, mut comma) = ('[', None);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let end = match next {
            '"' => end_of_string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |at| at + 4),
            _ => next.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        if token.starts_with("//") || token.starts_with("/*") {
            plain.extend(token.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
            continue;
        }
        if let (']' | '}', Some(at)) = (next, comma) {
            plain.replace_range(at..=at, " ");
        }
        if !next.is_whitespace() {
            let is_after_item = next == ',' && !matches!(last, '[' | '{' | ',' | ':');
            comma = if is_after_item { Some(plain.len()) } else { None };
            last = next;
        }
        plain.push_str(token);
    }
    plain
}

/// Returns the length of the string that begins here, with its quotes.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces() {
        for (text, want) in [
            ("{\"a\": [1, \"/*\\\"//\",], // ü\n}", "{\"a\": [1, \"/*\\\"//\" ]      \n}"),
            ("[1 /* [\n, */, /**/ ]", "[1     \n           ]"),
            ("[,]", "[,]"),
            ("[1,,]", "[1,,]"),
            ("{\"a\": ,}", "{\"a\": ,}"),
            ("/* ", "   "),
            ("\"a", "\"a"),
        ] {
            assert_eq!(plain_json(text), want, "{text}");
        }
    }

    #[test]
    fn a_syntax_error_has_its_line_and_column_in_characters() {
        for (text, place) in
            [("", "1:1"), ("{\n  \"ü\": }", "2:8"), ("{a: 1}", "1:2"), ("[1 2]", "1:4"), ("{} {}", "1:4")]
        {
            let error = text.parse::<ServiceConfig>().unwrap_err().to_string();
            assert!(error.starts_with("not valid JSON: ") && error.ends_with(&format!(" at {place}")), "{error}");
        }
        assert!("[".repeat(100_000).parse::<ServiceConfig>().unwrap_err().to_string().contains("recursion limit"));
    }
}
