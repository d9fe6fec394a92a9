//! Values that a file does not state by itself: placeholders that its system, or a tool before it, fills in.
//!
//! A placeholder with a default, such as `${RETRIES:-3}`, has the default as its value, with a note that the
//! environment may say otherwise. One without is [`Value::Unknown`], of which nothing is concluded. This is done before
//! a file is read, so that all formats do the same.

use core::cell::Cell;

use super::{Node, Value};
use crate::entry::RemarkKind;
use crate::fields::shortened;

/// How the placeholders of a system are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `$NAME`, `${NAME}`, `${NAME:-default}` and its like, `$$` for a dollar: shells, Compose, and envsubst and Flux,
    /// which fill in files of any system.
    Shell,
    /// `${name}` and `${name:default}`; a name may be that of another property of the same file.
    Spring,
}

/// What a text is with its placeholders filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// It has none.
    Plain,
    /// All of them have defaults, with which the text is this.
    Default(String),
    /// One of them has none.
    Unknown,
}

/// Beginnings of what only a template engine, a pipeline or an expression language fills in.
const FOREIGN: [&str; 7] = ["{{", "{%", "<%", "$(", "$[[", "#{", "%("];

/// Defaults within defaults that are followed, and properties that refer to properties.
const MAX_DEPTH: usize = 8;
/// Properties that are looked up for one text, and the longest text that comes of it, so that a few lines that refer to
/// one another do not grow without bound.
const MAX_LOOKUPS: usize = 32;
const MAX_LENGTH: usize = 4_096;
/// Properties that are looked up for a whole file; those that are left are not known.
const MAX_LOOKUPS_OF_ALL: usize = 1_000;

/// Returns what is said of a placeholder.
pub(crate) fn said(placeholder: &str, is_known: bool) -> (RemarkKind, String) {
    let placeholder = shortened(placeholder);
    let text = if is_known {
        format!("`{placeholder}` is read with its default, which the environment may replace")
    } else {
        format!("`{placeholder}` is filled in elsewhere: the value is not known")
    };
    (RemarkKind::NotRead, text)
}

/// Returns whether a text may have a placeholder of whatever kind.
pub(crate) fn may_have(text: &str) -> bool {
    text.contains(['$', '@', '%']) || text.contains("{{") || text.contains("#{") || text.contains("__")
}

/// Fills in the placeholders of a document.
pub(crate) fn fill(document: &mut Node, syntax: Syntax) {
    if syntax == Syntax::Shell {
        return fill_node(document, syntax, &|_| None);
    }
    let raw = document.clone();
    // Each look-up passes over the names of the file.
    let left = Cell::new(MAX_LOOKUPS_OF_ALL);
    let property = |name: &str| {
        if left.replace(left.get().saturating_sub(1)) == 0 {
            return Some(FOREIGN[0]);
        }
        raw.text_at(&name.split('.').collect::<Vec<_>>())
    };
    fill_node(document, syntax, &property);
}

/// The parser limits the depth.
fn fill_node<'a>(node: &mut Node, syntax: Syntax, property: &dyn Fn(&str) -> Option<&'a str>) {
    match &mut node.value {
        Value::Null | Value::Unknown => {}
        Value::List(items) => items.iter_mut().for_each(|item| fill_node(item, syntax, property)),
        Value::Map(members) => members.iter_mut().for_each(|member| fill_node(&mut member.node, syntax, property)),
        Value::Scalar { text, .. } => {
            let value = match filled_with(text, syntax, property) {
                Filled::Plain => return,
                // What was a number before is one with its default.
                Filled::Default(text) => Value::Scalar { text, is_quoted: false },
                Filled::Unknown => Value::Unknown,
            };
            let written = core::mem::take(text);
            node.value = value;
            node.placeholder = Some(written.into_boxed_str());
        }
    }
}

/// Fills in the placeholders of a text.
pub(crate) fn filled(text: &str, syntax: Syntax) -> Filled {
    filled_with(text, syntax, &|_| None)
}

fn filled_with<'a>(text: &str, syntax: Syntax, property: &dyn Fn(&str) -> Option<&'a str>) -> Filled {
    if !may_have(text) {
        return Filled::Plain;
    }
    let mut filler = Filler { syntax, property, lookups: 0, has_placeholder: false };
    match filler.fill(text, 0) {
        Some(filled) if filler.has_placeholder => Filled::Default(filled),
        Some(_) => Filled::Plain,
        None => Filled::Unknown,
    }
}

struct Filler<'a, 'b> {
    syntax: Syntax,
    property: &'b dyn Fn(&str) -> Option<&'a str>,
    lookups: usize,
    has_placeholder: bool,
}

impl Filler<'_, '_> {
    /// Returns the text with its placeholders filled in, `None` if one of them has no default.
    fn fill(&mut self, text: &str, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH || is_token(text) {
            return None;
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if filled.len() > MAX_LENGTH && self.has_placeholder || FOREIGN.iter().any(|mark| rest.starts_with(mark)) {
                return None;
            }
            if let Some(inner) = rest.strip_prefix("${") {
                let end = end_of(inner)?;
                self.has_placeholder = true;
                filled += &self.variable(&inner[..end], depth)?;
                rest = &inner[end + 1..];
                continue;
            }
            if self.syntax == Syntax::Shell && first == '$' {
                let after = &rest[1..];
                if let Some(after) = after.strip_prefix('$') {
                    self.has_placeholder = true;
                    filled.push('$');
                    rest = after;
                    continue;
                }
                if after.starts_with(is_start_of_name) {
                    return None;
                }
            }
            filled.push(first);
            rest = &rest[first.len_utf8()..];
        }
        Some(filled)
    }

    /// Returns the value of what stands between `${` and `}`.
    fn variable(&mut self, inner: &str, depth: usize) -> Option<String> {
        match self.syntax {
            Syntax::Shell => {
                let name = inner.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
                if name.len() == inner.len() {
                    return None;
                }
                // `:?` and `?` stop with an error, `:+` and `+` say something only if there is a value.
                let default = [":-", "-", ":=", "="].iter().find_map(|operator| name.strip_prefix(operator))?;
                self.fill(default, depth + 1)
            }
            Syntax::Spring => {
                let (name, default) = match inner.split_once(':') {
                    Some((name, default)) => (name, Some(default)),
                    None => (inner, None),
                };
                if self.lookups < MAX_LOOKUPS
                    && let Some(other) = (self.property)(name)
                {
                    self.lookups += 1;
                    return self.fill(other, depth + 1);
                }
                self.fill(default?, depth + 1)
            }
        }
    }
}

fn is_start_of_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

/// Returns where the `}` is that belongs to the `${` before this text.
fn end_of(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns whether a text is a token that a build or a pipeline replaces as a whole: `@NAME@`, `%NAME%`, `__NAME__`.
fn is_token(text: &str) -> bool {
    ["@", "%", "__"].iter().any(|mark| {
        let inner = text.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
        inner.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_shells_have_the_defaults_in_them() {
        for (text, wanted) in [
            ("${X:-5}", Some("5")),
            ("${X-5}", Some("5")),
            ("${X:=5}", Some("5")),
            ("${X=5}s", Some("5s")),
            ("on-failure:${N:-3}", Some("on-failure:3")),
            ("${X:-${Y:-7}}", Some("7")),
            ("${X:-${Y}}", None),
            ("${X:-}", Some("")),
            ("$X", None),
            ("${X}", None),
            ("${X:?say it}", None),
            ("${X?}", None),
            ("${X:+5}", None),
            ("$$X", Some("$X")),
            ("${X", None),
            ("${}", None),
            ("${{ inputs.retries }}", None),
            ("{{ .Values.retries }}", None),
            ("{% $retries %}", None),
            ("<%= retries %>", None),
            ("$(RETRIES)", None),
            ("$[[ inputs.retries ]]", None),
            ("#{Retries}#", None),
            ("__RETRIES__", None),
            ("@retries@", None),
            ("%RETRIES%", None),
        ] {
            let wanted = wanted.map_or(Filled::Unknown, |text| Filled::Default(text.to_owned()));
            assert_eq!(filled(text, Syntax::Shell), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_placeholder_stays_as_it_is() {
        for text in ["5", "^/a$", "$.retries", "50%", "a@b", "__init__.py", "a_b", "$1", "é$"] {
            assert_eq!(filled(text, Syntax::Shell), Filled::Plain, "{text}");
        }
        assert_eq!(filled("$X", Syntax::Spring), Filled::Plain);
    }

    #[test]
    fn placeholders_of_spring_refer_to_properties_and_have_defaults_behind_a_colon() {
        let properties = [("retry.max", "4"), ("a", "${b}"), ("b", "${retry.max}"), ("loop", "${loop}")];
        let property = |name: &str| properties.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        for (text, wanted) in [
            ("${X:5}", Some("5")),
            ("${X:${Y:6}}", Some("6")),
            // Not the shell's: the default begins with a minus.
            ("${X:-5}", Some("-5")),
            ("${retry.max}", Some("4")),
            ("${retry.max:9}", Some("4")),
            ("${a}", Some("4")),
            ("${X:PT1M}", Some("PT1M")),
            ("${X}", None),
            ("${loop}", None),
            ("#{3 + 4}", None),
        ] {
            let wanted = wanted.map_or(Filled::Unknown, |text| Filled::Default(text.to_owned()));
            assert_eq!(filled_with(text, Syntax::Spring, &property), wanted, "{text}");
        }
    }

    #[test]
    fn a_file_with_too_many_references_has_values_that_are_not_known() {
        let lines: String = (0..2_000).map(|at| format!("a{at}=${{b:1}}\n")).collect();
        let mut root = crate::tree::properties(&lines);
        fill(&mut root, Syntax::Spring);
        assert_eq!(root.text_of("a0"), Some("1"));
        assert_eq!(root.get("a1999").unwrap().value, Value::Unknown);
    }

    #[test]
    fn properties_that_refer_to_many_others_do_not_grow_without_bound() {
        let many = "${a}".repeat(10_000);
        let property = |_: &str| Some(many.as_str());
        assert_eq!(filled_with("${a}", Syntax::Spring, &property), Filled::Unknown);
        let deep = format!("{}1{}", "${X:-".repeat(100), "}".repeat(100));
        assert_eq!(filled(&deep, Syntax::Shell), Filled::Unknown);
    }
}
