//! Rules for the help texts and manual pages of all subcommands.

use crate::support::{said, see, stagger};

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
    let scenarios = ["reconnect", "fluid", "outage", "occ", "system"];
    let scenarios = scenarios.map(|scenario| vec!["simulate".to_owned(), scenario.to_owned()]);
    [vec![]].into_iter().chain(names.map(|name| vec![name.to_owned()])).chain(scenarios).collect()
}

/// Returns every help text and manual page, with the arguments that print it.
fn pages() -> Vec<(Vec<String>, String)> {
    let subcommands = subcommands();
    assert!(subcommands.len() > 8, "{subcommands:?}");
    let help = subcommands.iter().flat_map(|command| {
        ["-h", "--help", "--help-all"].map(|flag| command.iter().cloned().chain([flag.to_owned()]).collect::<Vec<_>>())
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
            // Short lists have the flag and its help in one line.
            let help = pair[0].trim().split_once("  ").map_or(pair[1], |(_, help)| help);
            let follows = help == pair[1] && pair[1].starts_with("          ");
            assert!(!help.trim().is_empty() && (follows || help != pair[1]), "{}: {}", args.join(" "), pair[0]);
        }
        assert!(count >= 3, "{}: {count} flags", args.join(" "));
    }
}

/// A flag list ends with the global options; the task and its examples come first.
#[test]
fn help_begins_with_the_task_and_ends_with_the_global_options() {
    for mut args in subcommands() {
        let name = args.join(" ");
        args.push("--help".to_owned());
        let text = said(&mut stagger(&args));
        assert!(!text.starts_with("The "), "{name}: what it does, and not what its arguments are: {text}");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{name}: no {what} in {text}"));
        let headings: Vec<_> = text.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
        let flags: Vec<_> = headings
            .iter()
            .filter(|heading| {
                !heading.starts_with("Exit") && !heading.starts_with("Env") && !heading.starts_with("Settings")
            })
            .collect();
        assert_eq!(flags.last(), Some(&&"Global options:"), "{name}: {headings:?}");
        assert!(at("--color") > at("Global options:"), "{name}");
        if !["man", "completions", "help"].contains(&&*name) {
            assert_eq!(headings[0], "Examples:", "{name}");
            assert!(at("Usage:") < at("Examples:"), "{name}");
        }
    }
}

/// What nine of ten need, on one screen of a terminal; `--help` has the rest.
#[test]
fn a_summary_fits_a_screen_and_names_the_way_to_the_rest() {
    for args in subcommands() {
        let mut line = args.clone();
        line.push("-h".to_owned());
        let text = said(stagger(&line).env("COLUMNS", "80"));
        assert!(text.lines().count() <= 24, "{args:?}: {} lines\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let whole = match &args[..] {
            [] => "stagger help COMMAND".to_owned(),
            names => format!("stagger {} --help", names.join(" ")),
        };
        assert!(text.contains(&whole) && !text.contains("Examples:"), "{text}");
        let without = said(stagger(args.iter().map(String::as_str).chain(["--help"])).env("COLUMNS", "80"));
        assert!(without.contains("--color") && !text.contains("--color"), "{text}");
    }
    // The command of a run is not asked.
    let seen = see(&mut stagger(["run", "echo", "-h"]));
    seen.exits(0).prints("-h\n");
    // The last of them wins, as with other flags.
    assert_eq!(said(&mut stagger(["run", "-h"])), said(&mut stagger(["retry", "-h"])));
}

/// Two screens of fifty lines.
#[test]
fn the_help_of_a_command_fits_two_screens_and_names_the_way_to_the_rest() {
    for args in subcommands().iter().filter(|args| !args.is_empty()) {
        let line = |flag| said(stagger(args.iter().map(String::as_str).chain([flag])).env("COLUMNS", "100"));
        let text = line("--help");
        assert!(text.lines().count() <= 100, "{args:?}: {} lines\n{text}", text.lines().count());
        assert!(text.contains(&format!("stagger {} --help-all", args.join(" "))), "{text}");
        assert!(line("--help-all").lines().count() >= text.lines().count(), "{args:?}");
    }
}

#[test]
fn help_is_also_a_command() {
    for args in subcommands() {
        let whole = said(&mut stagger(args.iter().map(String::as_str).chain(["--help"])));
        assert_eq!(said(&mut stagger(["help"].into_iter().chain(args.iter().map(String::as_str)))), whole, "{args:?}");
    }
    see(&mut stagger(["help", "bogus"])).exits(2).says("unrecognized subcommand 'bogus'");
}

/// A length is called DUR in every help, and a bare number is in seconds wherever one is asked for.
#[test]
fn every_help_that_asks_for_a_length_says_what_one_is() {
    let mut found = 0;
    for args in subcommands() {
        for flag in ["-h", "--help"] {
            let text = said(stagger(args.iter().map(String::as_str).chain([flag])).env("COLUMNS", "100"));
            if text.lines().any(|line| line.trim_start().starts_with('-') && line.contains("DUR")) {
                found += 1;
                assert!(text.contains("a bare number is in seconds"), "{args:?} {flag}: {text}");
            }
        }
    }
    assert!(found >= 12, "{found}");
    for (line, want) in [
        ("plan -d 2 -n 2", "base=2s"),
        ("run -v -d 0.5 -t 3 -k 1 --time-limit 9 -- true", "base=500ms"),
        ("simulate reconnect --clients 5 --capacity 5/s --down 1 --horizon 30 -n 3", "downtime 1s"),
    ] {
        let seen = see(&mut stagger(line.split(' ')));
        assert!((seen.stdout.clone() + &seen.stderr).contains(want), "{line}: {seen:#?}");
    }
    see(&mut stagger(["wait", "-t", "0.05", "file:/nowhere"])).exits(124).says("not ready after ");
    see(&mut stagger(["control", "set", "redis://127.0.0.1:1/x", "a=off", "--for", "0"]))
        .exits(2)
        .says("they would end at once");
}

#[test]
fn examples_are_short_enough_for_80_columns() {
    for (args, text) in pages().into_iter().filter(|(args, _)| args.first().is_none_or(|arg| arg != "man")) {
        let examples = text.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
        for line in examples {
            assert!(line.chars().count() <= 78, "{}: {line}", args.join(" "));
        }
    }
}

#[test]
fn examples_of_run_are_valid_and_end() {
    let text = said(&mut stagger(["run", "--help"]));
    let lines = text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("stagger run "));
    let lines: Vec<_> = lines.map(|(_, rest)| rest.trim_end_matches(')')).collect();
    assert!(lines.len() > 4, "{lines:?}");
    for line in lines {
        // With a command that reaches the outcome which the example waits for.
        let (flags, _) = line.split_once("-- ").unwrap_or_else(|| panic!("{line} has no command"));
        let command = if flags.contains("--until fail") { "false" } else { "true" };
        let mut flags = shlex::split(flags).unwrap_or_else(|| panic!("{line} is no line of a shell"));
        // Which is no HTTP client.
        flags.retain(|flag| flag != "--http");
        let seen = see(stagger(["run"]).args(flags).args(["--", command]));
        assert!(seen.status.success(), "{line}: {seen:#?}");
    }
}

/// A line that is broken in the source and wrapped again by the terminal has a short rest.
#[test]
fn wrapped_help_has_no_ragged_lines() {
    for mut args in subcommands() {
        args.push("--help".to_owned());
        for columns in [80, 100] {
            let text = said(stagger(&args).env("COLUMNS", columns.to_string()));
            // What follows in the help of `run` is laid out for the manual page.
            let lines: Vec<&str> =
                text.lines().take_while(|line| args[0] != "run" || *line != "Exit status:").collect();
            for pair in lines.windows(2) {
                let indent = |line: &str| line.len() - line.trim_start().len();
                // Tables and lists are laid out in the source.
                let is_prose =
                    |line: &str| !line.trim().contains("  ") && !line.trim_start().starts_with(['-', '$', '#']);
                let continues = pair[1].trim_start().starts_with(|c: char| c.is_ascii_lowercase());
                if pair.iter().any(|line| line.is_empty() || !is_prose(line))
                    || !continues
                    || indent(pair[0]) != indent(pair[1])
                    || pair[0].starts_with("  stagger")
                    || pair[1].trim_start().starts_with("stagger ")
                {
                    continue;
                }
                let word = pair[1].split_whitespace().next().unwrap_or_default();
                let joined = pair[0].chars().count() + 1 + word.chars().count();
                assert!(joined > columns - 1, "{} at {columns}:\n{}\n{}", args.join(" "), pair[0], pair[1]);
            }
        }
    }
}

/// Wordings of earlier versions, with what replaced them.
const REWORDED: &[(&str, &str, &str)] = &[
    (
        "--help",
        "say how to mend it",
        "Find what could turn a policy, or a configuration, into a retry storm, and suggest fixes",
    ),
    ("run --help-all", "Ceiling of", "Upper bound of the first delay"),
    ("run --help-all", "grows beyond this", "Upper bound for every delay"),
    ("run --help-all", "How often to try in all", "Maximum number of attempts, including the first"),
    ("run --help-all", "How attempts are told", "Log format: for humans, JSON lines, or off"),
    ("run --help-all", "standard input is none", "even though standard input is not a terminal"),
    ("run --help-all", "worth another attempt", "Outcomes to retry"),
    ("run --help-all", "that is wanted", "Outcome to wait for"),
    ("run --help-all", "was healthy", "Treat an attempt that ran at least this long as healthy"),
    ("run --help-all", "is sent first", "Signal sent to a command that has timed out"),
    ("run --until fial -- true", "is no result", "unknown outcome `fial`; use exit codes"),
    ("run --signal FOO -- true", "is no signal", "unknown signal `FOO`"),
    ("run --help-all", "makes no sense", "usage error"),
    ("plan --help-all", "makes no sense", "usage error"),
    ("check --help-all", "makes no sense", "usage error"),
    ("simulate outage --help-all", "makes no sense", "usage error"),
    ("drill --help-all", "makes no sense", "usage error"),
    ("simulate occ --help-all", "gives the same files", "The same seed produces the same files"),
    ("check --help-all", "are meant", "rules whose findings are suppressed"),
    ("check --help-all", "speak", "A rule that needs a fact about the deployment is skipped"),
    ("advise --for reconnecting --clients 10k --no-input", "want jitter", "jitter and a spread are required"),
    ("advise --for far --no-input", "is not guessed", "not specified"),
    ("drill --help-all", "under real clients", "Kill a real server while real clients are connected"),
    ("simulate outage --help", "underway", "One-way network latency"),
    ("run --help-all", "Draw no live line", "Do not draw the live status line, even on a terminal"),
    ("run --help-all", "Tell the policy", "Also log the policy, the seed and the start of each attempt"),
    ("simulate outage --help", "set apart by commas", "Comma-separated"),
    ("run --retry-on 7 -- false", "has no 1", "reason=not-retry-on"),
];

#[test]
fn help_and_messages_are_worded_in_the_terms_of_the_field() {
    for (line, old, new) in REWORDED {
        let seen = see(stagger(line.split(' ')).env("COLUMNS", "200"));
        let text = (seen.stdout + &seen.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!text.contains(old), "{line}: {old:?} in {text}");
        assert!(text.contains(new), "{line}: no {new:?} in {text}");
    }
}

#[test]
fn a_manual_page_has_a_date_and_a_synopsis_with_values() {
    let page = said(stagger(["man", "run"]).env("SOURCE_DATE_EPOCH", "1767225600"));
    assert!(page.contains(".TH stagger-run 1 2026-01-01 \"stagger "), "{page}");
    assert!(page.contains(r"[\fB\-t\fR|\fB\-\-timeout\fR \fIDUR\fR]"), "{page}");
    assert!(page.contains(r"\fICOMMAND\fR...") && page.contains(".SH EXAMPLES"), "{page}");
    let today = said(stagger(["man"]).env_remove("SOURCE_DATE_EPOCH"));
    let date = regex::Regex::new(r"(?m)^\.TH stagger 1 \d{4}-\d\d-\d\d ").unwrap();
    assert!(date.is_match(&today), "{today}");
}
