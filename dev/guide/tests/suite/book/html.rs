//! Finds links and anchors in a page that mdBook wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What is checked of a page.
#[derive(Debug, Default)]
pub(super) struct Html {
    /// The values of `href` and `src`.
    pub(super) links: BTreeSet<String>,
    /// Those that a browser loads with the page.
    pub(super) loaded: BTreeSet<String>,
    pub(super) ids: BTreeSet<String>,
}

impl Html {
    pub(super) fn read(path: &Path) -> Self {
        let mut html = Self::default();
        for tag in fs::read_to_string(path).unwrap().split('<').skip(1) {
            if !tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
                continue;
            }
            let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            for (key, value) in attributes(tag) {
                match key {
                    "id" => _ = html.ids.insert(value),
                    "href" | "src" => {
                        if name != "a" {
                            html.loaded.insert(value.clone());
                        }
                        html.links.insert(value);
                    }
                    _ => {}
                }
            }
        }
        html
    }
}

/// Returns the attributes in front of the `>` that ends the tag.
fn attributes(tag: &str) -> impl Iterator<Item = (&str, String)> {
    let mut rest = tag;
    core::iter::from_fn(move || {
        let (before, after) = rest.split_once("=\"")?;
        if before.contains('>') {
            return None;
        }
        let (value, next) = after.split_once('"')?;
        rest = next;
        let key = before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        Some((key, value.replace("&amp;", "&")))
    })
}
