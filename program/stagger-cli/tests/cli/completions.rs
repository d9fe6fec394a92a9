//! Completions, asked for in the shells themselves.

use std::process::Command;

use crate::support::{Files, said, see, stagger};

/// A line whose last word is completed, and a completion that it must offer.
const OFFERED: &[(&str, &str)] = &[
    ("stagger ru", "run"),
    ("stagger run -p aws-sd", "aws-sdk"),
    ("stagger run --policy expo", "exponential"),
    ("stagger plan -p socket", "socket.io"),
    ("stagger check aws-sd", "aws-sdk"),
    ("stagger run -j deco", "decorrelated"),
    ("stagger run --until succ", "success"),
    ("stagger run --retry-on time", "timeout"),
    ("stagger run --stop-on SIGK", "SIGKILL"),
    ("stagger run --stdin repl", "replay"),
    ("stagger run --signal QUI", "QUIT"),
    ("stagger check --for serv", "serverless"),
    ("stagger run --hold-stdo", "--hold-stdout"),
    ("stagger run -- mkfif", "mkfifo"),
    ("stagger retry -n 3 -- mkfif", "mkfifo"),
];

fn script(files: &Files, shell: &str) -> String {
    files.write(&format!("_{shell}"), said(&mut stagger(["completions", shell]))).display().to_string()
}

/// Returns the lines that a shell prints for a script.
fn lines(shell: &mut Command) -> Vec<String> {
    see(shell).stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

const ASK_BASH: &str = r#"
source "$1"
words=($2)
[[ $2 == *" " ]] && words+=("")
COMP_WORDS=("${words[@]}")
COMP_CWORD=$((${#words[@]} - 1))
COMP_LINE=$2
COMP_POINT=${#2}
COMPREPLY=()
function=$(complete -p stagger | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" stagger "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_values_and_the_command_of_run() {
    needs!("bash");
    let files = Files::new();
    let path = script(&files, "bash");
    let ask = |line: &str| lines(Command::new("bash").args(["--norc", "-c", ASK_BASH, "bash", &path, line]));
    for (line, want) in OFFERED {
        let offered = ask(line);
        assert!(offered.iter().any(|word| word == want), "{line}: {offered:?}");
    }
    let offered = ask("stagger run ");
    assert!(!offered.is_empty() && offered.iter().all(|word| !word.contains(['<', '['])), "{offered:?}");
}

#[test]
fn bash_completes_the_arguments_of_the_command_of_run() {
    let package = "/usr/share/bash-completion/bash_completion";
    needs!("bash");
    if !std::path::Path::new(package).exists() {
        eprintln!("SKIPPED: needs bash-completion");
        return;
    }
    let files = Files::new();
    files.write("only-this", "");
    let path = script(&files, "bash");
    let ask = format!("source {package}\n{ASK_BASH}");
    let mut bash = Command::new("bash");
    let offered =
        lines(bash.args(["--norc", "-c", &ask, "bash", &path, "stagger run -- cat on"]).current_dir(files.path("")));
    assert_eq!(offered, ["only-this"]);
}

#[test]
fn fish_completes_values_and_the_command_of_run() {
    needs!("fish");
    let files = Files::new();
    let path = script(&files, "fish");
    for (line, want) in OFFERED {
        let ask = format!("source {path}; complete -C '{line}'");
        let mut fish = Command::new("fish");
        let offered = lines(fish.args(["--no-config", "-c", &ask]).env("HOME", files.path("")));
        assert!(offered.iter().any(|word| word.split('\t').next() == Some(want)), "{line}: {offered:?}");
    }
}

/// Asks the completion system of zsh in a terminal of zsh's own, which lists the matches.
const ASK_ZSH: &str = r#"
zmodload zsh/zpty
zpty z zsh -f -i
send() { zpty -w z "$1" }
send "PS1=; unset zle_bracketed_paste; autoload -Uz compinit; fpath=($1 \$fpath); compinit -u -d $1/dump"
send "zstyle ':completion:*' list-prompt ''; zstyle ':completion:*:default' menu no; bindkey '^I' complete-word"
send "finish() { print -r -- \"=<\$BUFFER>=\"; BUFFER=; zle accept-line }; zle -N finish; bindkey '^X' finish; print rea''dy"
zpty -r -m z all '*ready*'
zpty -w -n z "$2"$'\t\x18'
zpty -r -m z line '*=<*>=*'
print -r -- ${${line##*=<}%%>=*}
zpty -d z
"#;

#[test]
fn zsh_completes_values_and_the_command_of_run() {
    needs!("zsh");
    let files = Files::new();
    files.write("_stagger", said(&mut stagger(["completions", "zsh"])));
    let directory = files.path("").display().to_string();
    for (line, want) in OFFERED {
        let mut zsh = Command::new("zsh");
        let seen = lines(zsh.args(["-f", "-c", ASK_ZSH, "zsh", &directory, line]).env("TERM", "dumb"));
        let completed = seen.last().map(|line| line.trim().to_owned()).unwrap_or_default();
        assert!(completed.split_whitespace().any(|word| word == *want), "{line}: {seen:?}");
    }
}
