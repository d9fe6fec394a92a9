//! Every command line of this program that the README or a page of `docs` shows can be parsed.

use core::iter;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::error::ErrorKind;

use crate::cli::Cli;

#[path = "../tests/cli/markdown.rs"]
mod markdown;

/// Returns the commands of a page that a reader could type: the lines of shell blocks, and code in the prose.
fn lines(page: &str) -> Vec<String> {
    let (mut lines, mut block) = (Vec::new(), None::<(String, String)>);
    for line in page.lines() {
        match (&mut block, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => block = Some((language.to_owned(), String::new())),
            (Some((language, text)), Some(_)) => {
                match language.as_str() {
                    "sh" => lines.extend(commands(text)),
                    "console" => {
                        lines.extend(text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned))
                    }
                    _ => {}
                }
                block = None;
            }
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) => lines.extend(line.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|"))),
        }
    }
    lines.retain(|line| line.contains("stagger "));
    lines
}

/// Returns the commands of a script: a line that ends with a backslash, or in the middle of a quotation, goes on.
fn commands(script: &str) -> Vec<String> {
    let (mut commands, mut command) = (Vec::new(), String::new());
    for line in script.replace("\\\n", " ").lines() {
        command += line;
        if shlex::split(&command).is_some() {
            commands.push(core::mem::take(&mut command));
        } else {
            command.push(' ');
        }
    }
    commands
}

/// Returns the command lines of stagger in a command of a shell, with the name of the program.
fn of_stagger(command: &str) -> Vec<Vec<OsString>> {
    let Some(words) = shlex::split(command) else { return Vec::new() };
    let is_end = |word: &str| matches!(word, "|" | "||" | "&" | "&&" | ";" | ">" | ">>" | "<" | "<<<" | "#");
    let starts = (0..words.len()).filter(|&at| {
        let before = at.checked_sub(1).map(|before| words[before].as_str());
        let begins =
            before.is_none_or(|before| is_end(before) || before.contains('=') || ["exec", "do"].contains(&before));
        begins && words[at].split('=').next_back().is_some_and(|word| word.trim_start_matches("$(") == "stagger")
    });
    let line = |start: usize| {
        let rest = words[start + 1..].iter().take_while(|word| !is_end(word)).map(|word| word.trim_end_matches(';'));
        iter::once("stagger").chain(rest).map(OsString::from).collect()
    };
    starts.map(line).collect()
}

/// Returns what is wrong with a command line. The text of a page may name a part of one: without its command or the
/// value of its last flag, with `...`, or with a name in capitals in the place of a value.
fn problem(words: &[OsString]) -> Option<String> {
    let error = Cli::parse(words).err()?;
    let placeholder = |word: &OsString| {
        word.to_str().is_some_and(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '|'))
    };
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion
        | ErrorKind::MissingRequiredArgument => None,
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if words.iter().any(placeholder) => None,
        ErrorKind::InvalidValue if words.last().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-")) => None,
        _ if words.iter().any(|word| word == "…" || word == "...") => None,
        _ => Some(error.to_string()),
    }
}

#[test]
fn every_command_line_on_a_page_can_be_parsed() {
    // A package of this crate alone has no pages.
    if !Path::new(markdown::PROJECT).join("docs").is_dir() {
        return;
    }
    let (mut parsed, mut wrong) = (0, Vec::new());
    for path in markdown::pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        for line in lines(&page) {
            for words in of_stagger(&line) {
                parsed += 1;
                wrong.extend(problem(&words).map(|problem| format!("{}: {line}\n{problem}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 120, "{parsed} command lines");
}

#[test]
fn a_wrong_command_line_is_found_in_every_form() {
    let wrong = |page: &str| {
        let lines = lines(page).into_iter().flat_map(|line| of_stagger(&line));
        lines.filter(|words| problem(words).is_some()).count()
    };
    for page in [
        "```sh\nstagger plan --bogus\n```\n",
        "```sh\nsome | stagger check \\\n  --bogus -\n```\n",
        "```sh\nA=1 stagger check 'a\n b' --bogus\n```\n",
        "```console\n$ stagger plan --bogus\nexponential\n```\n",
        "| `stagger plan --bogus` | a table |\n",
        "Some `stagger simulate nothing -x` of prose.\n",
        "```sh\nout=$(stagger run --bogus -- true)\n```\n",
    ] {
        assert_eq!(wrong(page), 1, "{page}");
    }
    for page in ["`stagger run --http`", "`stagger check --explain CODE`", "```text\nstagger plan --bogus\n```\n"] {
        assert_eq!(wrong(page), 0, "{page}");
    }
}
