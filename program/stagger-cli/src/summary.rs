//! What `-h` prints: on one screen, the options that most uses need. `--help` has all of them, in short.

use clap::{Arg, ArgAction, Command};

/// A subcommand on the screen of `-h`: its name, what it does, and the options that are listed, in this order.
struct Screen(&'static str, &'static str, &'static [Line]);

/// An argument on it: its identifier, the name of its value if it is another one, and what it means.
type Line = (&'static str, Option<&'static str>, &'static str);

const POLICY: Line = ("policy", Some("POLICY"), "One line, or a profile such as aws-sdk");
const BASE: Line = ("base", None, "Longest first delay, then doubled [100ms]");
const CAP: Line = ("cap", None, "Longest delay [30s]");
const ATTEMPTS: Line = ("max_attempts", None, "Attempts, the first included [4]");
const CLIENTS: Line = ("clients", None, "Number of clients of one server");
const CAPACITY: Line = ("capacity", None, "What it serves, such as 500/s");
const DOWN: Line = ("down", None, "How long the server is down");
const COMPARE: Line = ("compare", Some("POLICY,..."), "Policies to compare");
const SWEEP: Line = ("sweep", Some("SETTING=VALUE,..."), "Values of a setting to compare");
const ASSERT: Line = ("assert", Some("METRIC<=VALUE"), "What must hold, or it exits with 1");
const SEED: Line = ("seed", None, "Seed of the random delays [1]");
const OUTPUT: Line = ("output", Some("FILE"), "Also write a page of HTML");

const SCREENS: &[Screen] = &[
    Screen(
        "run",
        "Run a command and retry it until it succeeds",
        &[
            ATTEMPTS,
            BASE,
            CAP,
            POLICY,
            ("timeout", None, "Time limit for each attempt"),
            ("time_limit", None, "Time limit for the whole run"),
            ("retry_on", None, "Outcomes to retry: codes, fail, timeout, signal"),
            ("http", None, "It is curl or wget: retry as the server says"),
            ("hold_stdout", None, "Pass on only the output of the success"),
            ("quiet", None, "Log only warnings"),
        ],
    ),
    Screen(
        "wait",
        "Wait until ports, URLs, files or commands are ready",
        &[
            ("targets", None, "HOST:PORT, http(s)://..., unix:PATH, file:PATH, pid:N"),
            ("command", None, "Command to become, once all are ready"),
            ("commands", None, "Shell command that must succeed, too"),
            ("any", None, "Wait for one of the targets"),
            ("gone", None, "Wait for the opposite"),
            ("timeout", None, "Time limit for the wait [60s]"),
            ("attempt_timeout", None, "Time limit for each attempt [5s]"),
            ("status", None, "Statuses that are ready [2xx]"),
            ("quiet", None, "Log nothing"),
        ],
    ),
    Screen(
        "plan",
        "Show the delays of a policy as a table and a plot",
        &[
            ("subject", None, "A policy on one line, a profile, or a configuration"),
            ATTEMPTS,
            BASE,
            CAP,
            ("jitter", None, "full, equal, decorrelated, none, ±20% [full]"),
            ("spread", None, "Random wait before the first attempt"),
            ("retries", None, "Number of retries to show"),
            ("profiles", None, "List the named policies"),
            ("svg", Some("FILE"), "Write the plots as SVG"),
            ("json", None, "Print the forecast as JSON"),
            ("export", None, "Print it for another system, such as envoy"),
        ],
    ),
    Screen(
        "check",
        "Find what could cause a retry storm, and suggest fixes",
        &[
            ("subjects", None, "Policies, profiles, configurations, directories"),
            ("purpose", None, "interactive, background, reconnecting, near, far ..."),
            CLIENTS,
            CAPACITY,
            ("rps", None, "Calls of all clients, such as 800/s"),
            ("log", Some("FILE"), "Check the delays in a log"),
            ("traces", Some("FILE"), "Find retries in traces"),
            ("baseline", None, "Report only what is not in FILE"),
            ("explain", None, "Explain a rule"),
            OUTPUT,
            ("json", None, "Print the findings as JSON"),
        ],
    ),
    Screen("simulate", "Simulate a retry storm in virtual time", &[]),
    Screen(
        "simulate reconnect",
        "All clients lose their connections, and come back at once",
        &[CLIENTS, CAPACITY, DOWN, POLICY, COMPARE, SWEEP, ASSERT, SEED, OUTPUT],
    ),
    Screen(
        "simulate fluid",
        "The same as a fluid model: fast for any number of clients",
        &[CLIENTS, CAPACITY, DOWN, POLICY, COMPARE, SWEEP, ASSERT, OUTPUT],
    ),
    Screen(
        "simulate outage",
        "A server under steady traffic fails for a while",
        &[
            ("configuration", None, "A configuration whose policies are compared"),
            ("rate", None, "Requests of all clients [800/s]"),
            CAPACITY,
            DOWN,
            ("guards", Some("GUARDS"), "Guards to compare, such as none,tokens"),
            POLICY,
            COMPARE,
            SWEEP,
            ASSERT,
            SEED,
            OUTPUT,
        ],
    ),
    Screen(
        "simulate occ",
        "Clients update one row under optimistic concurrency",
        &[CLIENTS, POLICY, COMPARE, SWEEP, ASSERT, SEED, OUTPUT],
    ),
    Screen(
        "simulate system",
        "Services that call each other, as a file describes them",
        &[
            ("file", None, "The system as TOML, or @incident/NAME"),
            ("find", Some("NUMBER"), "Find the value from which it stays down"),
            ("frontier", Some("NUMBER,NUMBER"), "Draw a map over two numbers"),
            ("seeds", None, "Number of runs [1]"),
            ASSERT,
            OUTPUT,
        ],
    ),
    Screen(
        "drill",
        "Kill a real server under real clients, and measure",
        &[
            ("scenario", None, "reconnect or outage [reconnect]"),
            CLIENTS,
            CAPACITY,
            ("down", None, "How long the server is down at least"),
            POLICY,
            COMPARE,
            ("url", None, "Use a server of your own"),
            ("client", None, "Use clients of your own"),
            ASSERT,
            OUTPUT,
        ],
    ),
    Screen(
        "advise",
        "Recommend a retry policy, and explain why",
        &[
            ("purpose", None, "interactive, background, reconnecting, near, far ..."),
            CLIENTS,
            CAPACITY,
            ("outage", None, "Expected downtime of the server"),
            ("deadline", None, "Time within which it must succeed"),
            ("idempotent", Some("ANSWER"), "Whether it is safe to repeat: yes, no, key"),
            ("no_input", None, "Never ask"),
            ("json", None, "Print the advice as JSON"),
            OUTPUT,
        ],
    ),
    Screen(
        "serve",
        "Show a page on which two policies race",
        &[("port", None, "Port to listen on [any free one]"), ("no_open", None, "Do not open the browser")],
    ),
    Screen(
        "control",
        "Show or change operator controls",
        &[
            ("action", None, "show, set or clear"),
            ("place", None, "File, or redis://HOST/NAME"),
            ("entries", None, "TARGET=SETTING, or TARGET to clear"),
            ("reason", None, "Reason of the change"),
            ("length", None, "How long it holds, in Redis"),
            ("json", None, "Print the controls as JSON"),
        ],
    ),
    Screen(
        "completions",
        "Print a shell completion script",
        &[("shell", None, "bash, elvish, fish, powershell or zsh")],
    ),
    Screen(
        "man",
        "Print a manual page in roff format",
        &[("command", None, "Subcommand to describe [stagger itself]")],
    ),
    Screen("help", "Print the help of a command", &[("command", None, "Command to describe [stagger itself]")]),
];

/// What a length of time is, for every help that names one.
pub(crate) const LENGTH: &str = "DUR is a length of time: 500ms, 1.5s, 2m30s, 1h; a bare number is in seconds.";

/// Returns whether an argument takes a length of time.
pub(crate) fn takes_length(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains("DUR")))
}

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Returns the description of the command line for `-h`.
pub(crate) fn summarized(all: Command) -> Command {
    let root = all
        .help_template(TEMPLATE)
        .mut_args(|arg| if matches!(arg.get_id().as_str(), "help" | "version") { arg } else { arg.hide(true) })
        .mut_arg("help", |arg| {
            arg.help("Print this; --help prints all options").help_heading(None::<&str>).display_order(900)
        })
        .mut_arg("version", |arg| arg.help_heading(None::<&str>).display_order(901))
        .after_help("All options of a command: stagger help COMMAND");
    root.mut_subcommands(|command| summarized_as("", command))
}

/// Returns a command and its own ones for `-h`; `above` is the name of the command that it belongs to.
fn summarized_as(above: &str, command: Command) -> Command {
    let name = format!("{above}{}", command.get_name());
    let command = command.mut_subcommands(|command| summarized_as(&format!("{name} "), command));
    match SCREENS.iter().find(|screen| screen.0 == name) {
        Some(screen) => summary(command, screen),
        None => command,
    }
}

/// Returns the description of the command line for `--help`: of each option what it is for and its default, on two
/// screens. `--help-all` says all.
pub(crate) fn shortened(all: Command) -> Command {
    shortened_as("stagger", all)
}

fn shortened_as(name: &str, command: Command) -> Command {
    let command = command.mut_subcommands(|command| {
        let name = format!("{name} {}", command.get_name());
        let has_length = command.get_arguments().any(takes_length);
        let length = if has_length { format!("{LENGTH}\n") } else { String::new() };
        let below = format!("{length}More about each option: {name} --help-all");
        shortened_as(&name, command).after_help(below).after_long_help(None::<&str>)
    });
    command.mut_args(|arg| {
        let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
        let arg = arg.help(first_sentence(&help)).long_help(None).next_line_help(false);
        if arg.get_action().takes_values() { arg.hide_possible_values(true) } else { arg }
    })
}

/// The fewest letters that say what an option is for.
const SHORTEST: usize = 24;

/// Returns what an option is for, and its default.
fn first_sentence(help: &str) -> String {
    let (text, default) = match help.rfind(" [default") {
        Some(at) if help.ends_with(']') => help.split_at(at),
        _ => (help, ""),
    };
    // A few words that end with a colon say only where the option applies.
    let ends = [". ", "; ", " (", ", e.g. ", ", such as ", ", which ", ", so that ", ", to "];
    let ends = ends.iter().filter_map(|end| text.find(end));
    let colon = text.find(": ").filter(|at| *at > SHORTEST);
    let end = ends.chain(colon).min().unwrap_or(text.len());
    format!("{}{}", &text[..end], default.replace(" without --policy", ""))
}

fn summary(command: Command, Screen(name, about, lines): &Screen) -> Command {
    let shown = command.mut_args(|arg| {
        let Some(order) = lines.iter().position(|(id, ..)| *id == arg.get_id().as_str()) else { return arg.hide(true) };
        let (_, value, help) = lines[order];
        let arg = arg.help(help).long_help(None).display_order(order).next_line_help(false);
        let takes_values = arg.get_action().takes_values();
        let arg = if takes_values { arg.hide_possible_values(true).hide_default_value(true) } else { arg };
        let arg = if arg.is_positional() { arg } else { arg.help_heading(None::<&str>) };
        match value {
            Some(value) => arg.value_name(value),
            None => arg,
        }
    });
    let has_length = shown.get_arguments().any(|arg| !arg.is_hide_set() && takes_length(arg));
    let length = if has_length { format!("{LENGTH}\n") } else { String::new() };
    shown
        .help_template(TEMPLATE)
        .about(*about)
        .before_help(None)
        .after_help(format!("{length}All options: stagger {name} --help"))
}

/// Returns the description of a command line on which only `-h` prints help, to tell it from `--help`.
pub(crate) fn without_long_help(all: Command) -> Command {
    let whole = Arg::new("whole").long("help").global(true).hide(true).action(ArgAction::SetTrue);
    all.mut_arg("help", |arg| arg.long(None)).mut_arg("help_all", |arg| arg.action(ArgAction::SetTrue)).arg(whole)
}

#[cfg(test)]
mod tests {
    use stagger_core::text::Compact;
    use stagger_terminal::policy_args::PolicyArgs;

    use super::*;

    #[test]
    fn defaults_on_a_screen_are_those_of_the_flags() {
        let policy = PolicyArgs::default().policy().unwrap();
        let defaults = [
            (ATTEMPTS, policy.max_attempts().unwrap().to_string()),
            (BASE, Compact(policy.base()).to_string()),
            (CAP, Compact(policy.cap().unwrap()).to_string()),
        ];
        for ((id, _, help), default) in defaults {
            assert!(help.ends_with(&format!("[{default}]")), "{id}: {help}, not {default}");
        }
    }

    #[test]
    fn descriptions_for_help_pass_the_debug_asserts_of_clap() {
        summarized(crate::cli::command()).debug_assert();
        shortened(crate::cli::command()).debug_assert();
        without_long_help(crate::cli::command()).debug_assert();
    }

    #[test]
    fn every_argument_on_a_screen_exists_and_every_command_has_a_screen() {
        let mut commands: Vec<(String, Command)> = vec![(String::new(), crate::cli::command())];
        while let Some((above, command)) = commands.pop() {
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                let name = format!("{above}{}", command.get_name());
                let screen = SCREENS.iter().find(|screen| screen.0 == name);
                let screen = screen.unwrap_or_else(|| panic!("{name} has no screen"));
                for (id, ..) in screen.2 {
                    assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{name} has no {id}");
                }
                commands.push((format!("{name} "), command.clone()));
            }
        }
    }
}
