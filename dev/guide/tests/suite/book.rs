//! Builds the book, and follows every link in it.
//!
//! The built book stays in `target/book`; `cargo xtask book` runs these tests for it.

mod build;
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use self::pages::Html;

/// One test, because the book is built once.
#[test]
fn the_built_book_has_no_warnings_and_no_dead_links_and_answers_newcomers() {
    let book = build::build();
    assert_eq!(book.warnings, "", "warnings of mdBook");
    let pages = pages::files(&book.directory, "html");
    let pages: BTreeMap<PathBuf, Html> = pages.into_iter().map(|path| (path.clone(), Html::read(&path))).collect();
    assert_nothing_is_loaded_from_the_network(&pages);
    assert_every_link_leads_somewhere(&book.directory, &pages);
    assert_the_search_finds_every_page(&book.directory);
    assert_the_search_answers_newcomers(&book.directory);
}

fn assert_nothing_is_loaded_from_the_network(pages: &BTreeMap<PathBuf, Html>) {
    for (page, html) in pages {
        let loaded: Vec<_> = html.loaded.iter().filter(|address| is_external(address)).collect();
        assert!(loaded.is_empty(), "{}: {loaded:?}", page.display());
    }
}

fn assert_every_link_leads_somewhere(book: &Path, pages: &BTreeMap<PathBuf, Html>) {
    let (mut dead, mut followed) = (BTreeSet::new(), 0);
    // The page that a server shows for a missing address is written for the root of a site.
    for (page, html) in pages.iter().filter(|(page, _)| !page.ends_with("404.html")) {
        for link in html.links.iter().filter(|link| !is_external(link)) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { normalized(&page.with_file_name(path)) };
            let is_there = match pages.get(&target) {
                Some(target) => fragment.is_empty() || target.ids.contains(fragment),
                None => target.is_file() && fragment.is_empty(),
            };
            if !is_there {
                dead.insert(format!("{}: {link}", page.strip_prefix(book).unwrap().display()));
            }
            followed += 1;
        }
    }
    assert!(followed > 1_000, "{followed} links");
    assert!(dead.is_empty(), "dead links:\n{}", dead.into_iter().collect::<Vec<_>>().join("\n"));
}

fn assert_the_search_finds_every_page(book: &Path) {
    let is_index = |path: &PathBuf| path.to_string_lossy().contains("searchindex");
    let index = pages::files(book, "js").into_iter().find(is_index).expect("an index");
    let index = fs::read_to_string(index).unwrap();
    for page in pages::of_summary() {
        let address = page.replace(".md", ".html#");
        assert!(index.contains(&address), "{page} cannot be found by searching");
    }
}

/// What newcomers ask, what they type, at first and if that did not help, and where the answer is.
const QUESTIONS: [(&str, &[&str], &str); 17] = [
    ("How do I add jitter?", &["add jitter"], "guide/faq.html#how-do-i-add-jitter"),
    ("Does it work with axios?", &["axios"], "guide/browsers.html#axios"),
    ("Is there a circuit breaker?", &["circuit breaker"], "guide/guards.html#circuit-breakers-and-other-guards"),
    ("How often should it retry?", &["how many attempts"], "guide/choosing.html#how-many-attempts"),
    ("Why do all clients come back at once?", &["thundering herd", "spread"], "guide/choosing.html#spread"),
    ("Why is my POST not retried?", &["post not retried"], "guide/faq.html#why-is-a-post-not-retried"),
    ("How do I use it behind SQS?", &["lambda"], "guide/queues.html#sqs-and-lambda"),
    ("How do I test this?", &["testing", "testing retries"], "guide/testing.html#testing-code-that-retries"),
    (
        "How do I stop the retries now?",
        &["disable retries"],
        "guide/faq.html#how-do-i-stop-or-disable-retries-during-an-outage",
    ),
    ("Does it obey Retry-After?", &["Retry-After", "hints"], "guide/http.html#retry-after-and-other-hints"),
    ("How do I test without sleeping?", &["test without sleeping"], "guide/faq.html#how-do-i-test-without-sleeping"),
    ("How do I share a budget?", &["share a budget"], "guide/faq.html#how-do-i-share-a-budget"),
    ("I come from tenacity.", &["tenacity"], "guide/from-tenacity.html#migrating-from-tenacity-python"),
    ("What does exit code 124 mean?", &["exit code"], "reference/exit-codes.html#exit-codes"),
    ("Do I need a budget or a breaker?", &["budget or breaker", "which budget"], "guide/guards.html#which-budget"),
    (
        "How do I start with a warm cache?",
        &["warm cache", "warm up"],
        "guide/pools.html#a-warm-up-before-the-first-request",
    ),
    ("What are all the settings?", &["settings", "policy language"], "reference/policy.html#the-policy-language"),
];

/// Runs the book's own search. Each answer must be among the first three results of one of two tries.
fn assert_the_search_answers_newcomers(book: &Path) {
    let queries = QUESTIONS.iter().flat_map(|(_, queries, _)| *queries);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/book/search.js");
    let ran = Command::new("node").arg(script).arg(book).args(queries).output();
    let ran = ran.expect("node: run `cargo xtask ci --only packages`");
    let found = String::from_utf8(ran.stdout).expect("text");
    let mut found = found.lines();
    for (question, queries, answer) in QUESTIONS {
        assert!(queries.len() <= 2, "{question}");
        let results: Vec<_> = found.by_ref().take(queries.len()).collect();
        let is_found = results.iter().any(|line| line.split(' ').any(|address| address == answer));
        assert!(is_found, "{question} {queries:?}: {results:#?}");
    }
}

#[test]
fn the_summary_has_every_page_once() {
    let listed = pages::of_summary();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), unique.len(), "a page is listed twice");
    let docs = pages::docs();
    let written = pages::files(&docs, "md").into_iter().map(|path| {
        let path = path.strip_prefix(&docs).unwrap().to_str().unwrap();
        path.replace('\\', "/")
    });
    let written: BTreeSet<_> = written.filter(|path| path != "SUMMARY.md" && !path.starts_with("packages/")).collect();
    assert_eq!(unique, written);
}

#[test]
fn every_page_with_rust_code_is_a_doc_test() {
    const LIBRARY: &str = include_str!("../../src/lib.rs");
    for page in pages::of_summary() {
        let text = fs::read_to_string(pages::docs().join(&page)).unwrap();
        let is_run = LIBRARY.contains(&format!("docs/{page}\""));
        assert!(is_run || !text.contains("\n```rust"), "{page} has Rust code that is not run: add it to lib.rs");
    }
}

/// Languages of the blocks on the pages; one without a language would be compiled as Rust.
#[test]
fn every_block_of_code_has_a_language() {
    for page in pages::of_summary() {
        let text = fs::read_to_string(pages::docs().join(&page)).unwrap();
        let mut is_open = false;
        for (number, line) in text.lines().enumerate() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                is_open = !is_open;
                assert!(!is_open || !language.is_empty(), "{page}:{}: a block without a language", number + 1);
            }
        }
        assert!(!is_open, "{page}: a block without an end");
    }
}

#[test]
fn links_of_the_pages_outside_of_the_book_lead_somewhere() {
    let mut dead = Vec::new();
    for page in pages::outside() {
        let text = fs::read_to_string(&page).unwrap();
        for link in pages::links(&text).into_iter().map(|(_, link)| link).filter(|link| !is_external(link)) {
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.with_file_name(path) };
            let has_anchor = || pages::anchors(&fs::read_to_string(&target).unwrap()).contains(fragment);
            if !target.exists() || !(fragment.is_empty() || has_anchor()) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

fn is_external(link: &str) -> bool {
    ["http:", "https:", "mailto:", "data:", "javascript:"].iter().any(|scheme| link.starts_with(scheme))
}

/// Returns the path without `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            out.pop();
        } else {
            out.push(component);
        }
    }
    out
}
