//! The pages that the book consists of and those that mdBook wrote, with their links and anchors.

use core::ops::Range;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns the root of the workspace.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

pub(super) fn docs() -> PathBuf {
    root().join("docs")
}

/// Returns the pages of the summary, relative to `docs`.
pub(super) fn of_summary() -> Vec<String> {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    links(&summary).into_iter().map(|(_, link)| link).collect()
}

/// Returns the pages that link to others and are read on a forge or in a registry.
pub(super) fn outside() -> Vec<PathBuf> {
    let root = root();
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    for house in ["crates", "fleet", "lab", "program"] {
        let crates = fs::read_dir(root.join(house)).unwrap().map(|entry| entry.unwrap().path().join("README.md"));
        pages.extend(crates.filter(|readme| readme.is_file()));
    }
    pages
}

/// Returns all files below a directory with this extension.
pub(super) fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the links and pictures of a page, each with its place in the text.
pub(super) fn links(text: &str) -> Vec<(Range<usize>, String)> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some((range, dest_url.into_string())),
        _ => None,
    });
    links.collect()
}

/// Returns the anchors of a page's headings, as forges name them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let (mut anchors, mut heading) = (BTreeSet::new(), None);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => heading = heading.map(|heading| heading + &text),
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
                anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
            }
            _ => {}
        }
    }
    anchors
}

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
