//! Builds the book with mdBook's library.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mdbook_driver::MDBook;
use mdbook_driver::book::{Book, BookItem};
use mdbook_driver::errors::Error;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};
use tracing_subscriber::filter::LevelFilter;

use super::pages::{docs, links, root};

pub(super) struct Built {
    pub(super) directory: PathBuf,
    /// What mdBook logs above the level of information.
    pub(super) warnings: String,
}

/// Builds the book into `target/book`, and leaves it there.
pub(super) fn build() -> Built {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("book");
    tracing::subscriber::with_default(subscriber, || {
        let mut book = MDBook::load(docs()).expect("the book is read");
        book.config.build.build_dir.clone_from(&directory);
        book.with_preprocessor(Sources { repository: repository() });
        book.build().unwrap_or_else(|error| panic!("{error:#}"));
    });
    let warnings = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    Built { directory, warnings }
}

/// Returns the address of the repository, which is empty before the first release.
fn repository() -> String {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    manifest["workspace"]["package"]["repository"].as_str().unwrap().to_owned()
}

/// Turns links to files outside of the book into links to the repository, or into their paths while it has no address.
struct Sources {
    repository: String,
}

impl Sources {
    /// Returns the text with other links, and adds those that lead nowhere to `dead`.
    fn rewrite(&self, page: &Path, text: &str, dead: &mut Vec<String>) -> String {
        let mut out = text.to_owned();
        for (range, link) in links(text).into_iter().rev() {
            let Some(path) = outside(page, &link) else { continue };
            if !root().join(path.split('#').next().unwrap_or_default()).exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
            let words = words(&text[range.clone()]);
            let instead = match self.repository.as_str() {
                "" => format!("{words} (`{path}`)"),
                repository => format!("[{words}]({repository}/blob/HEAD/{path})"),
            };
            out.replace_range(range, &instead);
        }
        out
    }
}

/// Returns what a reader sees of `[words](path)`, `[words][name]` or `[words]`.
fn words(link: &str) -> &str {
    let end = link.rfind("](").or_else(|| link.rfind("][")).unwrap_or(link.len() - 1);
    link.get(1..end).unwrap_or_default()
}

/// Returns the path from the root of the repository, if the link leads out of `docs`.
fn outside(page: &Path, link: &str) -> Option<String> {
    let depth = page.components().count() - 1;
    let up = "../".repeat(depth + 1);
    link.strip_prefix(&up).filter(|path| !path.starts_with("../")).map(str::to_owned)
}

impl Preprocessor for Sources {
    fn name(&self) -> &'static str {
        "sources"
    }

    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book, Error> {
        let mut dead = Vec::new();
        book.for_each_mut(|item| {
            if let BookItem::Chapter(chapter) = item
                && let Some(page) = &chapter.source_path
            {
                chapter.content = self.rewrite(page, &chapter.content, &mut dead);
            }
        });
        if dead.is_empty() { Ok(book) } else { Err(Error::msg(format!("dead links: {}", dead.join(", ")))) }
    }
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
