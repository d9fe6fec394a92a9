//! Checks that the figures on the pages of the guide about numbers and simulations are what their commands print.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use crate::support::{Files, see, stagger};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/numbers.md");

const SIMULATE_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/simulate.md");
const RECIPES_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/recipes.md");

const CONFIG_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/check-config.md");

const CONFIG_PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configs");

const FENCE: &str = "```console\n";

/// Returns the page with the current output of each command, and the number of commands; their files are written to
/// `directory`.
fn regenerate(page: &str, directory: &Path) -> (String, usize) {
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

/// Runs a line like `$ stagger plan -n 6` with 100 columns and returns its output.
fn print(line: &str, directory: &Path) -> String {
    let command = line.strip_prefix("$ stagger ").unwrap_or_else(|| panic!("not a command: {line:?}"));
    run(command, directory)
}

/// Runs the program with the arguments that a shell would make of these words, and returns its output.
fn run(words: &str, directory: &Path) -> String {
    // Quotes are the only shell syntax on the pages.
    let arguments = words.split('\'').enumerate().flat_map(|(part, text)| match part % 2 {
        0 => text.split_whitespace().collect(),
        _ => vec![text],
    });
    let seen = see(stagger(arguments).env("COLUMNS", "100").current_dir(directory));
    assert!(seen.stderr.is_empty() && matches!(seen.status.code(), Some(0 | 1)), "{words}: {seen:#?}");
    seen.stdout
}

/// Returns the paths of a page's pictures.
fn pictures(page: &str) -> Vec<&str> {
    let links = page.split("](").filter_map(|link| link.split_once(')')).map(|(path, _)| path);
    links.filter(|path| path.ends_with(".svg")).collect()
}

/// Compares the pictures of the guide with those that the commands wrote, or replaces them.
fn assert_pictures_match(pictures: &[&str], written: impl Fn(&str) -> String) {
    for path in pictures {
        let picture = Path::new(GUIDE).join(path);
        if env::var_os("STAGGER_BLESS").is_some() {
            fs::create_dir_all(picture.parent().expect("a directory")).expect("it is made");
            fs::write(&picture, written(path)).expect("it is written");
        }
        let is = fs::read_to_string(picture).expect("it is read");
        assert!(is == written(path), "{path} differs from the output of its command");
    }
}

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli guide`.
#[test]
fn figures_on_the_numbers_page_match_their_commands() {
    let page = fs::read_to_string(PAGE).unwrap();
    let files = Files::new();
    let (now, commands) = regenerate(&page, &files.path("."));
    assert!(commands > 5, "{commands} commands");
    let pictures = pictures(&page);
    assert!(!pictures.is_empty());
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(PAGE, &now).unwrap();
    }
    assert_pictures_match(&pictures, |path| fs::read_to_string(files.path(path)).unwrap());
    // Line by line, for a readable difference.
    let page = fs::read_to_string(PAGE).unwrap();
    for (at, (is, should)) in page.lines().zip(now.lines()).enumerate() {
        assert_eq!(is, should, "line {}", at + 1);
    }
    assert_eq!(page, now);
}

/// Slow for a test, because it runs what readers run.
#[test]
fn outputs_on_the_simulate_page_match_their_commands() {
    assert_outputs_match(SIMULATE_PAGE, 6);
}

/// The files that the commands read are those of the page: a block of YAML, JSON or the like behind a line with its
/// name.
#[test]
fn outputs_on_the_page_about_configurations_match_their_commands() {
    assert_outputs_match(CONFIG_PAGE, 6);
}

/// One page for each system, with a file as people have it and its fixed form.
#[test]
fn outputs_on_the_pages_of_each_format_match_their_commands_and_fixed_files_have_no_findings() {
    let pages: Vec<_> = fs::read_dir(CONFIG_PAGES).expect("the pages").map(|page| page.unwrap().path()).collect();
    assert_eq!(pages.len(), 16);
    for path in pages {
        let path = path.to_str().expect("a path in UTF-8");
        assert_outputs_match(path, 1);
        let page = fs::read_to_string(path).expect("the page is read");
        for block in page.split(FENCE).skip(1).map(|part| part.split("\n```").next().unwrap_or_default()) {
            let command = block.lines().next().unwrap_or_default();
            assert_eq!(command.contains("fixed"), block.ends_with("\nno findings"), "{path}: {block}");
        }
    }
}

#[test]
fn outputs_on_the_other_pages_match_their_commands() {
    for (page, commands) in [("start", 2), ("consumers", 1), ("jitter", 5)] {
        assert_outputs_match(&format!("{GUIDE}/{page}.md"), commands);
    }
}

#[test]
fn outputs_on_the_recipes_page_match_their_commands() {
    assert_outputs_match(RECIPES_PAGE, 2);
}

/// Runs the commands of a page. After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli guide`.
/// Writes the files of a page: blocks behind a line such as "`virtualservice.yaml`:".
fn write_files(page: &str, files: &Files) {
    for part in page.split("`:\n\n```").skip(1) {
        let (block, _) = part.split_once("\n```").expect("each block ends");
        let (_, text) = block.split_once('\n').expect("each block has a language");
        let before = &page[..part.as_ptr() as usize - page.as_ptr() as usize];
        let name = before.rsplit('`').nth(4).expect("each file has a name");
        files.write(name, format!("{text}\n"));
    }
}

fn assert_outputs_match(path: &str, at_least: usize) {
    let read = || fs::read_to_string(path).expect("the page is read");
    let (page, files) = (read(), Files::new());
    write_files(&page, &files);
    let (now, commands) = regenerate(&page, &files.path("."));
    assert!(commands >= at_least, "{commands} commands");
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(path, &now).expect("the page is written");
    }
    let page = read();
    for (at, (is, should)) in page.lines().zip(now.lines()).enumerate() {
        assert_eq!(is, should, "{path}, line {}", at + 1);
    }
    assert_eq!(page, now);
}

/// The commands of this page write pictures, and what they print is not on it.
#[test]
fn pictures_of_the_concepts_are_those_of_their_commands() {
    let page = fs::read_to_string(format!("{GUIDE}/concepts.md")).unwrap();
    let files = Files::new();
    for block in page.split("```sh\nstagger ").skip(1) {
        let command = block.split("\n```").next().unwrap_or_default().replace("\\\n", " ");
        run(&command, &files.path("."));
    }
    let pictures = pictures(&page);
    assert_eq!(pictures.len(), 4);
    assert_pictures_match(&pictures, |path| {
        fs::read_to_string(files.path(path.trim_start_matches("concepts/"))).unwrap()
    });
}

/// Returns the numbers in a text.
fn numbers(text: &str) -> BTreeSet<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn exit_codes_on_their_page_are_those_of_each_help() {
    let page = fs::read_to_string(format!("{GUIDE}/../reference/exit-codes.md")).unwrap();
    let rows: Vec<Vec<_>> =
        page.lines().filter(|line| line.starts_with('|')).map(|row| row.split('|').collect()).collect();
    let (head, rows) = rows.split_first().expect("a table");
    for (column, name) in head.iter().enumerate().skip(2).filter(|(_, name)| !name.is_empty()) {
        let name = name.trim().trim_matches('`');
        let help = see(&mut stagger([name, "--help"])).stdout;
        let (_, help) = help.split_once("Exit status:").expect("each help has them");
        let mut in_help = numbers(help.split("\n\n").next().unwrap_or_default());
        // Codes of the command, which `run` and `wait` pass on.
        if matches!(name, "run" | "wait") {
            in_help.extend([1, 2]);
        }
        let on_page = rows.iter().filter(|row| !row[column].trim().trim_matches('-').is_empty());
        assert_eq!(on_page.flat_map(|row| numbers(row[1])).collect::<BTreeSet<_>>(), in_help, "{name}");
    }
}

/// Figures outside of a command block are not regenerated, so prose must not contain any.
#[test]
fn prose_contains_no_measured_figures() {
    let page = fs::read_to_string(PAGE).unwrap();
    let prose = page.split("```").step_by(2).collect::<String>();
    // Settings in code and tables of recommendations are not measurements.
    let lines = prose.split('`').step_by(2).collect::<String>();
    let lines: Vec<_> = lines.lines().filter(|line| !line.starts_with('|')).collect();
    for line in lines {
        assert!(!line.contains(|c: char| c.is_ascii_digit()), "{line}");
    }
}

#[test]
fn the_first_command_of_the_readme_makes_coffee_and_leaves_nothing() {
    let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let words = "run -d 300ms -n 8 -- examples/flaky.sh";
    let readme = fs::read_to_string(Path::new(project).join("README.md")).unwrap();
    assert!(readme.contains(&format!("```sh\nstagger {words}\n```")));
    let files = Files::new();
    let seen = see(stagger(words.split(' ')).current_dir(project).env("TMPDIR", files.path(".")));
    seen.exits(0).says("the water has 20 °C, coffee needs 95 °C");
    assert!(seen.stdout.ends_with("'------'\n"), "{seen:?}");
    assert_eq!(fs::read_dir(files.path(".")).unwrap().count(), 0);
}
