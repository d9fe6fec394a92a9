//! The page of the guide whose figures are what commands print.

use std::path::Path;
use std::{env, fs};

use crate::support::{Files, see, stagger};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/numbers.md");

const FENCE: &str = "```console\n";

/// The page with what each of its commands prints now, and how many there are; files are written into this directory.
fn printed_anew(page: &str, directory: &Path) -> (String, usize) {
    let mut parts = page.split(FENCE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut commands = 0;
    for part in parts {
        let (block, rest) = part.split_once("\n```").expect("each block ends");
        let command = block.lines().next().expect("each block begins with its command");
        out += &format!("{FENCE}{command}\n{}```{rest}", print(command, directory));
        commands += 1;
    }
    (out, commands)
}

/// What a line like `$ stagger plan -n 6` prints on a page of 100 columns.
fn print(line: &str, directory: &Path) -> String {
    let words = line.strip_prefix("$ stagger ").unwrap_or_else(|| panic!("{line:?} is no command"));
    // Quotes are all that the page needs of a shell.
    let words = words.split('\'').enumerate().flat_map(|(part, text)| match part % 2 {
        0 => text.split_whitespace().collect(),
        _ => vec![text],
    });
    let seen = see(stagger(words).env("COLUMNS", "100").current_dir(directory));
    assert!(seen.stderr.is_empty() && matches!(seen.status.code(), Some(0 | 1)), "{line}: {seen:#?}");
    seen.stdout
}

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli guide`.
#[test]
fn every_figure_of_the_page_about_numbers_is_what_its_command_prints() {
    let page = fs::read_to_string(PAGE).unwrap();
    let files = Files::new();
    let (now, commands) = printed_anew(&page, &files.path("."));
    assert!(commands > 5, "{commands} commands");
    let pictures: Vec<_> = page.split("](").filter_map(|link| link.split_once(')')).map(|(path, _)| path).collect();
    let pictures: Vec<_> = pictures.into_iter().filter(|path| path.ends_with(".svg")).collect();
    assert!(!pictures.is_empty());
    let written = |path: &str| fs::read_to_string(files.path(path)).unwrap();
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(PAGE, &now).unwrap();
        pictures.iter().for_each(|path| fs::write(Path::new(GUIDE).join(path), written(path)).unwrap());
    }
    for path in pictures {
        assert!(fs::read_to_string(Path::new(GUIDE).join(path)).unwrap() == written(path), "{path} is another picture");
    }
    // Line by line, so that what differs is seen.
    let page = fs::read_to_string(PAGE).unwrap();
    for (at, (is, should)) in page.lines().zip(now.lines()).enumerate() {
        assert_eq!(is, should, "line {}", at + 1);
    }
    assert_eq!(page, now);
}

/// A figure outside of a block is one that nobody computes again: whole numbers in words are enough there.
#[test]
fn there_are_no_measured_figures_between_the_commands() {
    let page = fs::read_to_string(PAGE).unwrap();
    let prose = page.split("```").step_by(2).collect::<String>();
    // Settings in code, and tables of recommendations, are no measurements.
    let told = prose.split('`').step_by(2).collect::<String>();
    let told: Vec<_> = told.lines().filter(|line| !line.starts_with('|')).collect();
    for line in told {
        assert!(!line.contains(|c: char| c.is_ascii_digit()), "{line}");
    }
}
