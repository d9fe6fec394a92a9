//! Limits the type parameters of implementations and public types: users meet them in the errors of the compiler, and
//! readers in every bound.
//!
//! They are counted in the JSON of rustdoc, which has private implementations and those that macros expand to.

use core::fmt;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::Result;
use crate::rustdoc::Rustdoc;
use crate::workspace::{Workspace, text};

/// The most type and const parameters of an implementation.
const MOST_OF_IMPL: usize = 8;

/// The most type and const parameters of a public type.
const MOST_OF_TYPE: usize = 6;

/// What is counted, by the key of its kind in the JSON.
const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type_alias"];

/// Something with parameters. The order is that of the report: the first differing field decides.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parameters {
    /// Type and const parameters.
    types: usize,
    lifetimes: usize,
    /// `file:line: what it is`.
    place: String,
}

/// Counts the parameters in every published library, prints the widest, and returns a summary.
///
/// # Errors
///
/// If an implementation has more than [`MOST_OF_IMPL`], or a public type more than [`MOST_OF_TYPE`].
pub(crate) fn check() -> Result<String> {
    let (mut impls, mut types) = (BTreeSet::new(), BTreeSet::new());
    for package in Workspace::here()?.published().filter(|package| package.is_library()) {
        let rustdoc = Rustdoc::generate_private(package)?;
        impls.extend(rustdoc.items().filter_map(of_impl));
        types.extend(rustdoc.items().filter_map(of_public_type));
    }
    let checked = [("implementation", &impls, MOST_OF_IMPL), ("public type", &types, MOST_OF_TYPE)];
    let mut problems = Vec::new();
    let mut widest = Vec::new();
    for (what, all, most) in checked {
        let (shown, wide) = widest_of(all, most);
        shown.for_each(|parameters| println!("{parameters}"));
        if wide > 0 {
            problems.push(format!("{wide} {what}s with more than {most} type parameters"));
        }
        widest.push(format!("widest {what}: {}", all.last().map_or(0, |widest| widest.types)));
    }
    if problems.is_empty() { Ok(widest.join(", ")) } else { Err(problems.join(", ").into()) }
}

/// Returns those that exceed the limit, at least the widest one, the widest first; and how many exceed it.
fn widest_of(all: &BTreeSet<Parameters>, most: usize) -> (impl Iterator<Item = &Parameters>, usize) {
    let wide = all.iter().rev().take_while(|parameters| parameters.types > most).count();
    (all.iter().rev().take(wide.max(1)), wide)
}

/// Returns the parameters of an implementation that the library wrote, itself or through a macro.
fn of_impl(item: &Value) -> Option<Parameters> {
    let block = item["inner"].get("impl")?;
    // Rustdoc lists these at every type: auto traits, and implementations for all types.
    if block["is_synthetic"] == true || !block["blanket_impl"].is_null() {
        return None;
    }
    let target = text(&block["for"]["resolved_path"]["path"]);
    let target = if target.is_empty() { "a type".to_owned() } else { target };
    let name = block["trait"]["path"].as_str().map_or_else(|| target.clone(), |name| format!("{name} for {target}"));
    Parameters::read(item, &block["generics"], &format!("impl {name}"))
}

fn of_public_type(item: &Value) -> Option<Parameters> {
    let (kind, definition) = TYPES.iter().find_map(|kind| Some((kind, item["inner"].get(kind)?)))?;
    let name = text(&item["name"]);
    (item["visibility"] == "public")
        .then(|| Parameters::read(item, &definition["generics"], &format!("{kind} {name}")))
        .flatten()
}

impl Parameters {
    /// Counts the parameters of an item, if its source is in this workspace.
    fn read(item: &Value, generics: &Value, what: &str) -> Option<Self> {
        let file = item["span"]["filename"].as_str()?;
        // Paths in the workspace are relative to its root.
        if file.starts_with('/') {
            return None;
        }
        let line = item["span"]["begin"][0].as_u64()?;
        let place = format!("{file}:{line}: {what}");
        let mut counted = Self { types: 0, lifetimes: 0, place };
        for parameter in generics["params"].as_array().into_iter().flatten() {
            let kind = &parameter["kind"];
            // `impl Trait` in an argument is a synthetic type parameter.
            if kind.get("lifetime").is_some() {
                counted.lifetimes += 1;
            } else if kind["type"]["is_synthetic"] != true {
                counted.types += 1;
            }
        }
        Some(counted)
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { types, lifetimes, place } = self;
        write!(f, "{place}: {types} type parameters, {lifetimes} lifetimes")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn generics() -> Value {
        let ty = |name: &str| json!({ "name": name, "kind": { "type": { "is_synthetic": false } } });
        json!({ "params": [
            { "name": "'a", "kind": { "lifetime": { "outlives": [] } } },
            ty("T"),
            ty("U"),
            { "name": "N", "kind": { "const": { "type": {} } } },
            { "name": "impl Fn", "kind": { "type": { "is_synthetic": true } } },
        ] })
    }

    fn span() -> Value {
        json!({ "filename": "crates/a/src/lib.rs", "begin": [7, 1] })
    }

    #[test]
    fn types_and_consts_count_together_and_lifetimes_apart() {
        let target = json!({ "resolved_path": { "path": "Call" } });
        let block = json!({ "impl": { "generics": generics(), "trait": { "path": "Future" }, "for": target } });
        let counted = of_impl(&json!({ "inner": block, "span": span() })).unwrap();
        assert_eq!(counted.to_string(), "crates/a/src/lib.rs:7: impl Future for Call: 3 type parameters, 1 lifetimes");
    }

    #[test]
    fn implementations_of_the_compiler_and_of_other_crates_are_not_counted() {
        let item = |synthetic: bool, span: Value| {
            let block = json!({ "generics": generics(), "is_synthetic": synthetic, "for": {} });
            of_impl(&json!({ "inner": { "impl": block }, "span": span }))
        };
        assert!(item(false, span()).is_some());
        assert!(item(true, span()).is_none());
        let blanket = json!({ "generics": generics(), "blanket_impl": { "generic": "T" }, "for": {} });
        assert!(of_impl(&json!({ "inner": { "impl": blanket }, "span": span() })).is_none());
        assert!(item(false, Value::Null).is_none());
        assert!(item(false, json!({ "filename": "/registry/tracing/src/lib.rs", "begin": [1, 1] })).is_none());
    }

    #[test]
    fn only_public_types_are_counted() {
        let item = |visibility: &str| {
            let inner = json!({ "struct": { "generics": generics() } });
            of_public_type(&json!({ "inner": inner, "name": "S", "visibility": visibility, "span": span() }))
        };
        assert_eq!(item("public").map(|counted| counted.types), Some(3));
        assert_eq!(item("crate"), None);
    }

    #[test]
    fn the_widest_is_shown_even_within_the_limit() {
        let all: BTreeSet<_> =
            [3, 9, 8].map(|types| Parameters { types, lifetimes: 0, place: String::new() }).into_iter().collect();
        let widths = |most| {
            let (shown, wide) = widest_of(&all, most);
            (shown.map(|shown| shown.types).collect::<Vec<_>>(), wide)
        };
        assert_eq!(widths(9), (vec![9], 0));
        assert_eq!(widths(7), (vec![9, 8], 2));
    }
}
