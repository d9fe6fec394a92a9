use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};

use super::{MAX_DEPTH, Member, Node, Value};
use crate::position::{Position, Positions, ReadError, Span};

/// Comments and trailing commas, which .NET and editors accept.
const OPTIONS: ParseOptions =
    ParseOptions { allow_comments: true, allow_loose_object_property_names: false, allow_trailing_commas: true };

/// Parses JSON, with comments and trailing commas. The values may be several lines of one object each, as collectors
/// write them.
pub(crate) fn json(text: &str) -> Result<Node, ReadError> {
    check_nesting(text)?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let position = Position::new(error.line_display(), error.column_display());
        ReadError::syntax("JSON", position, &error.kind().to_string())
    })?;
    let value = parsed.value.ok_or_else(|| ReadError::syntax("JSON", Position::START, "the file is empty"))?;
    Converter { text, positions: Positions::of(text) }.node(value)
}

/// Refuses what the parser does not: values that are nested too deep for its stack, and texts in single quotes.
fn check_nesting(text: &str) -> Result<(), ReadError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    let refused = |at, problem: &str| Err(ReadError::syntax("JSON", Positions::of(text).find(at), problem));
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_text(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let inside = &text[at + 2..];
                at += 2 + inside.find("*/").map_or(inside.len(), |end| end + 1);
            }
            b'\'' => return refused(at, "a text is within double quotes"),
            b'[' | b'{' if depth == MAX_DEPTH => return refused(at, "values are nested too deep; flatten them"),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Returns where the text that begins here ends: at its last quote.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// Converts values, whose depth has been checked.
struct Converter<'a> {
    text: &'a str,
    positions: Positions<'a>,
}

impl Converter<'_> {
    fn node(&mut self, value: ast::Value<'_>) -> Result<Node, ReadError> {
        let range = value.range();
        // In the order of the text: the end of what contains others is known after them.
        let start = self.positions.find(range.start);
        let scalar = |text: &str, is_quoted| Value::Scalar { text: text.to_owned(), is_quoted };
        let value = match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::StringLit(literal) => scalar(&literal.value, true),
            ast::Value::NumberLit(literal) => scalar(literal.value, false),
            ast::Value::BooleanLit(literal) => scalar(if literal.value { "true" } else { "false" }, false),
            ast::Value::Array(array) => {
                let mut before = None;
                let items = array.elements.into_iter().map(|element| {
                    self.check_comma(&mut before, element.range())?;
                    self.node(element)
                });
                Value::List(items.collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => {
                let mut before = None;
                let members = object.properties.into_iter().map(|property| {
                    self.check_comma(&mut before, property.range)?;
                    let range = property.name.range();
                    let key_span = self.positions.span(range.start, range.end);
                    Ok(Member { key: property.name.into_string(), key_span, node: self.node(property.value)? })
                });
                Value::Map(members.collect::<Result<_, _>>()?)
            }
        };
        Ok(Node::new(Span::new(start, self.positions.find(range.end)), value))
    }

    /// Refuses an element without a comma between it and the one before, which the parser does not.
    fn check_comma(&mut self, before: &mut Option<usize>, range: Range) -> Result<(), ReadError> {
        let between = before.replace(range.end).and_then(|end| Some((end, self.text.get(end..range.start)?)));
        match between {
            Some((end, between)) if !between.contains(',') => {
                Err(ReadError::syntax("JSON", self.positions.find(end), "a comma is missing"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places_and_comments_are_skipped() {
        let root = json("{ // the first\n  \"a\": [1, \"two\", null,],\n}").unwrap();
        let list = root.get("a").unwrap();
        assert_eq!((list.span.start, list.span.end), (Position::new(2, 8), Position::new(2, 25)));
        let texts: Vec<_> = list.items().iter().map(Node::text).collect();
        assert_eq!(texts, [Some("1"), Some("two"), None]);
        assert_eq!(list.items()[1].value, Value::Scalar { text: "two".to_owned(), is_quoted: true });
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, place) in [("", "1:1"), ("{\n  \"a\": }", "2:8"), ("{a: 1}", "1:2"), ("[1 2]", "1:3")] {
            let error = json(text).unwrap_err();
            assert_eq!(error.position().to_string(), place, "{text}: {error}");
        }
        assert!(json(&"[".repeat(100_000)).is_err());
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(json(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(json(&deep(MAX_DEPTH + 1)).unwrap_err().position().to_string(), "1:201");
        assert_eq!(json("{\"a\": 'b'}").unwrap_err().position().to_string(), "1:7");
        // Neither of these is outside of a text or a comment.
        assert!(json("[\"\\\"'[[\", /* '[ */ 1, // it's\n 2]").is_ok());
    }
}
