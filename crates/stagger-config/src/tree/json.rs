use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{Member, Node, Value};
use crate::error::ReadError;
use crate::position::{Position, Positions};

/// Comments and trailing commas, which .NET and editors accept, and nothing else that is not JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses JSON, with comments and trailing commas. The values may be several lines of one object each, as collectors write them.
pub(crate) fn json(text: &str) -> Result<Node, ReadError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let position = Position::new(error.line_display(), error.column_display());
        ReadError::syntax("JSON", position, &error.kind().to_string())
    })?;
    let value = parsed.value.ok_or_else(|| ReadError::syntax("JSON", Position::START, "the file is empty"))?;
    Ok(node(value, &mut Positions::of(text)))
}

/// Converts a value. The parser limits the depth.
fn node(value: ast::Value<'_>, positions: &mut Positions<'_>) -> Node {
    let range = value.range();
    // In the order of the text: the end of what contains others is known after them.
    let start = positions.find(range.start);
    let scalar = |text: &str, is_quoted| Value::Scalar { text: text.to_owned(), is_quoted };
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::StringLit(literal) => scalar(&literal.value, true),
        ast::Value::NumberLit(literal) => scalar(literal.value, false),
        ast::Value::BooleanLit(literal) => scalar(if literal.value { "true" } else { "false" }, false),
        ast::Value::Array(array) => {
            Value::List(array.elements.into_iter().map(|element| node(element, positions)).collect())
        }
        ast::Value::Object(object) => Value::Map(
            object
                .properties
                .into_iter()
                .map(|property| {
                    let range = property.name.range();
                    let key_span = positions.span(range.start, range.end);
                    Member { key: property.name.into_string(), key_span, node: node(property.value, positions) }
                })
                .collect(),
        ),
    };
    Node { span: crate::position::Span::new(start, positions.find(range.end)), value }
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
    }
}
