//! Values of a file with their places, whatever its syntax.

mod blocks;
mod json;
pub(crate) mod placeholders;
mod properties;
mod yaml;

use std::collections::HashMap;

use serde_json::{Number, Value as Json};

use crate::position::{Position, ReadError, Span};

pub(crate) use blocks::{Directive, directives};
pub(crate) use json::json;
pub(crate) use properties::{Assignment, assignments, properties, without_dots};
pub(crate) use yaml::yaml;

/// Largest text that is read, in bytes: many times the largest configuration that people write.
const MAX_BYTES: usize = 64 << 20;

/// Returns the text without a byte order mark, if it is not too long to be read.
pub(crate) fn checked(text: &str) -> Result<&str, ReadError> {
    if text.len() > MAX_BYTES {
        let message = format!("the file has more than {} MiB; pass the part with the retries", MAX_BYTES >> 20);
        return Err(ReadError::new(Position::START, message));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 200;

/// Number of values that the aliases of a YAML file may copy in all: more is an attack, not a configuration.
const MAX_COPIES: usize = 200_000;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
    /// What stands in the file if it is a placeholder: the value is its default, or [`Value::Unknown`].
    pub(crate) placeholder: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    /// A text, a number or a truth value. What was quoted is a text.
    Scalar {
        text: String,
        is_quoted: bool,
    },
    List(Vec<Node>),
    Map(Vec<Member>),
    /// A text with a placeholder that has no default.
    Unknown,
}

/// A member of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) const fn new(span: Span, value: Value) -> Self {
        Self { span, value, placeholder: None }
    }

    /// Returns the number of values in this one, itself included.
    fn size(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Unknown | Value::Scalar { .. } => 0,
            Value::List(items) => items.iter().map(Self::size).sum(),
            Value::Map(members) => members.iter().map(|member| member.node.size()).sum(),
        }
    }

    /// Returns the member with exactly this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.member(name).map(|member| &member.node)
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        // The last one counts, as for most parsers that accept duplicates.
        self.members().iter().rev().find(|member| member.key == name)
    }

    /// Returns the value without its places.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null | Value::Unknown => Json::Null,
            Value::Scalar { text, is_quoted: true } => Json::String(text.clone()),
            Value::Scalar { text, is_quoted: false } => match &**text {
                "true" => Json::Bool(true),
                "false" => Json::Bool(false),
                _ => match text.parse().ok().and_then(Number::from_f64) {
                    Some(number) => Json::Number(number),
                    None => Json::String(text.clone()),
                },
            },
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(members) => members.iter().map(|member| (member.key.clone(), member.node.to_json())).collect(),
        }
    }

    /// Returns the member at the end of a path of names.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// Returns the members by name, for mappings whose names and number the author of a file chooses.
    pub(crate) fn index(&self) -> HashMap<&str, &Member> {
        self.members().iter().map(|member| (&*member.key, member)).collect()
    }

    /// Returns the text of a member.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    /// Returns the text at the end of a path of names.
    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.text()
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns whether the value is `null`, which counts as absent everywhere.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn members(&self) -> &[Member] {
        match &self.value {
            Value::Map(members) => members,
            _ => &[],
        }
    }
}
