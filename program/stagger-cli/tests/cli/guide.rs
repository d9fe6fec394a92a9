//! Checks that the outputs on the README and on every page of `docs` are what their commands print.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{env, fs, thread};

use crate::markdown::{self, PROJECT};
use crate::support::{Files, see, stagger};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
const SIMULATE_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/simulate.md");

/// Files, and what `check` prints about them, in the form of a page.
const TRANSCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/golden/check");

const FENCE: &str = "```console\n";

/// Returns the page with the current output of each command, and the number of commands; their files are written to
/// `directory`.
fn regenerate(page: &str, directory: &Path) -> (String, usize) {
    let mut parts = page.split(FENCE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut commands = 0;
    for part in parts {
        let (block, rest) = part.split_once("\n```").expect("each block ends");
        let command = command_of(block);
        out += &format!("{FENCE}{command}\n{}```{rest}", print(&command.replace("\\\n", " "), directory));
        commands += 1;
    }
    (out, commands)
}

/// Returns the command that a block begins with: a line, and those behind it while they end with a backslash.
fn command_of(block: &str) -> String {
    let lines: Vec<_> = block.lines().collect();
    let more = lines.iter().take_while(|line| line.ends_with('\\')).count();
    lines[..=more].join("\n")
}

/// Runs a line like `$ stagger plan -n 6` with 100 columns and returns its output.
fn print(line: &str, directory: &Path) -> String {
    let command = line.strip_prefix("$ stagger ").unwrap_or_else(|| panic!("not a command: {line:?}"));
    run(command, directory)
}

/// Runs the program with the arguments that a shell would make of these words, and returns its output.
fn run(words: &str, directory: &Path) -> String {
    let arguments = shlex::split(words).unwrap_or_else(|| panic!("{words} is no line of a shell"));
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

/// Slow for a test, because it runs what readers run.
#[test]
fn outputs_on_the_simulate_page_match_their_commands() {
    assert_outputs_match(SIMULATE_PAGE, 4);
}

/// A transcript for each system, with a file as people have it and its fixed form, and two of policies and deployments.
#[test]
fn check_prints_what_its_transcripts_have_and_finds_nothing_in_fixed_files() {
    let pages: Vec<_> = fs::read_dir(TRANSCRIPTS).expect("transcripts").map(|page| page.unwrap().path()).collect();
    assert_eq!(pages.len(), 18);
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

/// Pages whose tests are above, because they take long or say more.
const OF_THEIR_OWN: [&str; 1] = ["simulate.md"];

/// No page is named here, so that a new one needs nothing to be compared.
#[test]
fn outputs_on_all_other_pages_match_their_commands() {
    let has_own = |path: &Path| path.file_name().is_some_and(|name| OF_THEIR_OWN.iter().any(|own| name == *own));
    let pages: Vec<_> = markdown::pages().into_iter().filter(|path| !has_own(path)).collect();
    let pages: Vec<_> = pages.iter().map(|path| path.to_str().expect("a path in UTF-8")).collect();
    let with: Vec<_> = pages.iter().filter(|path| fs::read_to_string(path).unwrap().contains(FENCE)).collect();
    assert!(with.len() > 5, "{with:?}");
    thread::scope(|scope| {
        for path in with {
            scope.spawn(|| assert_outputs_match(path, 1));
        }
    });
}

/// A block of code: its language, its text, and what stands between it and the block before.
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    pub(crate) text: &'a str,
    pub(crate) before: &'a str,
}

pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let parts: Vec<_> = page.split("\n```").collect();
    let code = parts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    code.map(|(before, code)| {
        let (language, text) = code.split_once('\n').unwrap_or((code, ""));
        Block { language, text, before }
    })
    .collect()
}

/// A sample that looks like the output of a command, and is not compared, says in the source why.
#[test]
fn a_sample_behind_a_command_is_compared_or_says_why_not() {
    let says_why = |before: &str| {
        before.trim_end().lines().next_back().is_some_and(|line| line.starts_with("<!-- not compared: "))
    };
    let (mut samples, mut unmarked) = (0, Vec::new());
    for path in markdown::pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        let blocks = blocks(&page);
        for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.language == "text") {
            let follows = at > 0
                && blocks[at - 1].language == "sh"
                && block.before.lines().all(|line| line.is_empty() || line.starts_with("<!-- "));
            if !follows && !block.text.starts_with("$ ") {
                continue;
            }
            samples += 1;
            if !says_why(block.before) {
                unmarked.push(format!("{}: {}", path.display(), block.text.lines().next().unwrap_or_default()));
            }
        }
    }
    assert!(unmarked.is_empty(), "{unmarked:#?}");
    assert!(samples > 2, "{samples}");
}

/// What a reader may type to learn the delays or the faults of a policy does what it says: it ends with 0, or with 1 if
/// there are findings.
#[test]
fn commands_that_plan_and_check_policies_run_as_they_are_written() {
    let mut ran = BTreeSet::new();
    for path in markdown::pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        let of_blocks = blocks(&page).into_iter().filter(|block| block.language == "sh");
        let lines = of_blocks.flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>());
        let prose =
            page.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2));
        for line in lines.chain(prose.map(str::to_owned)) {
            let Some(words) = line.strip_prefix("stagger ").and_then(shlex::split) else { continue };
            // Files, placeholders and the rest of a pipe are not there.
            let needs_more = words.iter().any(|word| {
                word.contains(['@', '/', '|', '…', '<', '>'])
                    || (word.contains('.') && !word.contains(['=', ' ']) && word != "socket.io")
                    || ["-", "--log", "--traces", "FILE", "CODE", "NAME", "POLICY"].contains(&word.as_str())
            });
            if needs_more || !matches!(words[0].as_str(), "plan" | "check") || words.len() < 2 {
                continue;
            }
            let files = Files::new();
            let seen = see(stagger(&words).current_dir(files.path(".")));
            assert!(matches!(seen.status.code(), Some(0 | 1)), "{}: {line}: {seen:#?}", path.display());
            ran.insert(line);
        }
    }
    assert!(ran.len() > 8, "{ran:#?}");
}

/// Writes the files of a page: blocks behind a line that ends with a name, such as "`virtualservice.yaml`:".
pub(crate) fn write_files(page: &str, files: &Files) {
    for part in page.split("`:\n\n```").skip(1) {
        let (block, _) = part.split_once("\n```").expect("each block ends");
        let (language, text) = block.split_once('\n').expect("each block has a language");
        if ["js", "rust", "sh", "ts"].contains(&language) {
            continue;
        }
        let before = &page[..part.as_ptr() as usize - page.as_ptr() as usize];
        let name = before.rsplit('`').nth(4).expect("each file has a name");
        let path = files.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
        files.write(name, format!("{text}\n"));
    }
}

/// Runs the commands of a page. After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli guide`.
fn assert_outputs_match(path: &str, at_least: usize) {
    let read = || fs::read_to_string(path).expect("the page is read");
    let (page, files) = (read(), Files::new());
    write_files(&page, &files);
    // What lies in the repository, as seen from its root and from the guide.
    for (name, place) in [("examples", format!("{PROJECT}/examples")), ("traces", format!("{GUIDE}/traces"))] {
        symlink(place, files.path(name)).expect("a link");
    }
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
        let help = see(&mut stagger([name, "--help-all"])).stdout;
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

#[test]
fn the_first_command_of_the_readme_makes_coffee_and_leaves_nothing() {
    let words = "run -d 300ms -n 8 -- examples/flaky.sh";
    let readme = fs::read_to_string(Path::new(PROJECT).join("README.md")).unwrap();
    assert!(readme.contains(&format!("```sh\nstagger {words}\n```")));
    let files = Files::new();
    let seen = see(stagger(words.split(' ')).current_dir(PROJECT).env("TMPDIR", files.path(".")));
    seen.exits(0).says("the water has 20 °C, coffee needs 95 °C");
    assert!(seen.stdout.ends_with("'------'\n"), "{seen:?}");
    assert_eq!(fs::read_dir(files.path(".")).unwrap().count(), 0);
}
