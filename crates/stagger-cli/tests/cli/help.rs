//! Rules for the help texts and manual pages of all subcommands.

use crate::support::{said, stagger};

/// Words that leave the subject of a sentence open, and negations that have a plain form.
const AVOIDED: &str = r"(?i)\b(who|whoever|whom|nobody|somebody|everybody|is no|are no|is none)\b";

const MAX_COLUMNS: usize = 100;

/// Returns the arguments that select each subcommand, and none for stagger itself.
fn subcommands() -> Vec<Vec<String>> {
    let help = said(&mut stagger(["--help"]));
    let (_, list) = help.split_once("Commands:\n").expect("the help lists the subcommands");
    // A continuation line of a description is indented further.
    let entries = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = entries.filter_map(|line| line.split_whitespace().next());
    [vec![]].into_iter().chain(names.map(|name| vec![name.to_owned()])).collect()
}

/// Returns every help text and manual page, with the arguments that print it.
fn pages() -> Vec<(Vec<String>, String)> {
    let subcommands = subcommands();
    assert!(subcommands.len() > 8, "{subcommands:?}");
    let help = subcommands.iter().flat_map(|command| {
        ["-h", "--help"].map(|flag| command.iter().cloned().chain([flag.to_owned()]).collect::<Vec<_>>())
    });
    let man = subcommands.iter().map(|command| ["man".to_owned()].into_iter().chain(command.clone()).collect());
    help.chain(man)
        .map(|args| {
            let text = said(stagger(&args).env("COLUMNS", "200"));
            (args, text)
        })
        .collect()
}

/// Returns whether a line of a help text introduces a flag: `  -t, --timeout <DUR>` or `      --cap <DUR>`.
fn is_flag(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|flag| flag.starts_with('-') || flag.starts_with("    --"))
}

#[test]
fn help_and_manual_pages_name_their_subjects() {
    let avoided = regex::Regex::new(AVOIDED).unwrap();
    let found = pages().into_iter().flat_map(|(args, text)| {
        let lines = text.lines().filter(|line| avoided.is_match(line));
        lines.map(|line| format!("{}: {line}", args.join(" "))).collect::<Vec<_>>()
    });
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn help_fits_100_columns() {
    for (args, text) in pages().into_iter().filter(|(args, _)| args.first().is_none_or(|arg| arg != "man")) {
        for line in text.lines() {
            assert!(line.chars().count() <= MAX_COLUMNS, "{}: {line}", args.join(" "));
        }
    }
}

#[test]
fn every_flag_has_help() {
    for mut args in subcommands() {
        args.push("--help".to_owned());
        let text = said(stagger(&args).env("COLUMNS", "200"));
        let lines: Vec<&str> = text.lines().collect();
        let mut count = 0;
        for pair in lines.windows(2).filter(|pair| is_flag(pair[0])) {
            count += 1;
            assert!(pair[1].starts_with("          ") && !pair[1].trim().is_empty(), "{}: {}", args.join(" "), pair[0]);
        }
        assert!(count >= 3, "{}: {count} flags", args.join(" "));
    }
}
