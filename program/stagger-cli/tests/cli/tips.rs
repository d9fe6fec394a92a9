//! What an error says to do is right: the command line that follows it works.

use crate::support::{Files, see, stagger};

/// A command line that is an error, the tip that it must give, and the line that follows the tip.
const FOLLOWED: &[(&str, &str, &str)] = &[
    // Words that are near to a name, and those that have none near.
    ("plan -p exponental", "did you mean `exponential`?", "plan -p exponential"),
    ("plan -p aws-skd", "did you mean `aws-sdk`?", "plan -p aws-sdk"),
    ("plan -p socketio", "did you mean `socket.io`?", "plan -p socket.io"),
    ("plan -p 'exponential;base'", "did you mean `exponential`?", "plan -p exponential"),
    ("plan -p fibonacci", "begin with exponential, linear", "plan -p linear"),
    ("plan -p 'bsae=1s'", "did you mean `base`?", "plan -p 'base=1s'"),
    ("plan -p 'initial=1s'", "did you mean `base`?", "plan -p 'base=1s'"),
    ("plan -p 'max-interval=9s'", "did you mean `cap`?", "plan -p 'cap=9s'"),
    ("plan -p 'wobble=1s'", "use base, cap, multiplier", "plan -p 'base=1s'"),
    ("plan -p 'retries=3'", "write max-attempts=4: the first call counts", "plan -p 'max-attempts=4'"),
    ("plan -p 'max-retries=0'", "write max-attempts=1: the first call counts", "plan -p 'max-attempts=1'"),
    ("plan -p 'retries=few'", "write max-attempts, which counts the first call", "plan -p 'max-attempts=4'"),
    ("run --retries 3 -- true", "write '--max-attempts 4': the first attempt counts", "run --max-attempts 4 -- true"),
    ("run --max-retries=2 -- true", "write '--max-attempts 3'", "run --max-attempts 3 -- true"),
    ("run --retry 2 -- true", "write '--max-attempts 3'", "run --max-attempts 3 -- true"),
    ("run --retyr-on 3 -- true", "a similar argument exists: '--retry-on'", "run --retry-on 3 -- true"),
    ("run --consecutiv 1 -- true", "a similar argument exists: '--consecutive'", "run --consecutive 1 -- true"),
    ("drill --client 'sleep 1'", "`stagger plan --profiles` shows all", "plan --profiles"),
    ("plna -n 3", "a similar subcommand exists: 'plan'", "plan -n 3"),
    ("run --stdin reply -- true", "a similar value exists: 'replay'", "run --stdin replay -- true"),
    ("run --log jsn -- true", "a similar value exists: 'json'", "run --log json -- true"),
    // Lengths of time.
    ("plan -d -1s", "use a length of time of 0s or more, like 500ms", "plan -d 500ms"),
    ("plan -p 'base=-1s'", "use a length of time of 0s or more, like 500ms", "plan -p 'base=500ms'"),
    ("plan -p 'base=1s, cap=2s'", "separate settings by spaces", "plan -p 'base=1s cap=2s'"),
    ("plan -p 'list delays=1s,,2s'", "and delays by one comma each", "plan -p 'list delays=1s,2s'"),
    ("plan -d 1h30", "write ns, us, ms, s, m, h or d after each number", "plan -d 1h30m --cap 2h"),
    ("plan -d 1y", "use ns, us, ms, s, m, h or d after each number", "plan -d 1d"),
    ("plan -d soon", "write it like 500ms, 1.5s, 1m30s or 2h", "plan -d 500ms"),
    ("plan -d 0.1ns", "round it", "plan -d 1ns"),
    ("plan --cap 999999d", "use inf or none where no limit is meant", "plan --cap inf"),
    ("plan -d inf", "must have a length", "plan -d 1s"),
    ("run -t 0 -- true", "inf for no limit", "run -t inf -- true"),
    // Numbers.
    ("plan -n -1", "write one from 1 to 4294967295, or inf", "plan -n inf"),
    ("plan -n 1.5", "write one from 1 to 4294967295, or inf", "plan -n 2"),
    ("plan -n 0", "use 1 for no retry, or more", "plan -n 1"),
    ("plan --multiplier two", "write a multiplier of 1 or more, like 2 or 1.5", "plan --multiplier 1.5"),
    ("plan --multiplier 0.5", "use 2, or 1 for no growth", "plan --multiplier 1"),
    ("plan --multiplier -2", "use 2, or 1 for no growth", "plan --multiplier 2"),
    ("plan -j some", "use full, equal, decorrelated, none, or a share", "plan -j equal"),
    ("plan -j ±200%", "from 0 to 1", "plan -j ±20%"),
    (
        "simulate fluid --clients -5",
        "expected a whole number of at least 1, like 10000 or 10k",
        "simulate fluid --clients 10k",
    ),
    // Settings.
    ("plan -p 'base='", "write it as name=value, like base=500ms", "plan -p 'base=500ms'"),
    ("plan -p 'exponential base'", "write it as name=value, like base=500ms", "plan -p 'exponential base=500ms'"),
    ("plan -p 'constant 5s'", "write it as base=5s", "plan -p 'constant base=5s'"),
    ("plan -p constant", "base, like base=5s; add it", "plan -p 'constant base=5s'"),
    ("plan -p 'base=1s base=2s'", "keep one of them", "plan -p 'base=1s'"),
    ("plan -p 'zero base=1s'", "leave it out, or choose another backoff", "plan -p zero"),
    ("plan -p 'uniform range=9'", "write it as 1s..5s", "plan -p 'uniform range=1s..5s'"),
    ("plan -p 'hint=maybe'", "use at-least, exact or clamp:5s", "plan -p 'hint=clamp:5s'"),
    ("plan -p Cargo.toml", "write it as @Cargo.toml", ""),
    ("plan -p ''", "write one such as 'exponential base=500ms'", "plan -p 'exponential base=500ms'"),
    // Policies as a whole.
    ("plan -p 'base=1s cap=50ms'", "raise cap or lower base", "plan -p 'base=50ms cap=50ms'"),
    ("plan -p 'base=1s floor=40s cap=30s'", "lower floor or raise cap", "plan -p 'base=1s floor=1s cap=30s'"),
    ("plan -p 'base=0s'", "raise base, or use a zero backoff", "plan -p zero"),
    (
        "plan -p 'constant base=1s jitter=decorrelated'",
        "use a decorrelated backoff, or choose another jitter",
        "plan -p 'decorrelated base=1s'",
    ),
    (
        "plan -p 'exponential multiplier=3 jitter=decorrelated'",
        "drop multiplier and floor, or choose another jitter",
        "plan -p 'exponential jitter=decorrelated'",
    ),
    (
        "plan -p 'constant base=1s cap=2s'",
        "drop them, or use an exponential or linear backoff",
        "plan -p 'constant base=1s'",
    ),
    ("plan -p 'spread=9s max-elapsed=5s'", "shorten spread or raise max-elapsed", "plan -p 'spread=3s max-elapsed=5s'"),
    ("plan -p 'base=1s cap=30s throttled-base=9m'", "change it, or leave it out", "plan -p 'base=1s'"),
    // Of `run`.
    ("run --signal SIGNOTHING -- true", "use a name or number like TERM, INT or 9", "run --signal INT -- true"),
    ("run --until ok -- true", "use exit codes (1,7,52-56), fail, success", "run --until success -- true"),
    ("run -q --log json -- true", "cannot be used with '--log <FORMAT>'", "run --log json -- true"),
];

fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("{line} is no line of a shell"))
}

#[test]
fn following_a_tip_removes_the_error() {
    let mut wrong = Vec::new();
    for (line, tip, followed) in FOLLOWED {
        let seen = see(&mut stagger(words(line)));
        if !matches!(seen.status.code(), Some(2 | 125)) || !seen.stderr.contains(tip) {
            wrong.push(format!("{line}: no {tip:?} in {}", seen.stderr));
        }
        let then = see(&mut stagger(words(followed)));
        if !followed.is_empty() && !then.status.success() {
            wrong.push(format!("{line}, then {followed}: {}", then.stderr));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_word_without_a_similar_name_gets_no_suggestion() {
    for line in ["run --wobble 3 -- true", "run --rerun 3 -- true", "plan -p 'wobble=1s'", "plan -p wobble", "wobble"] {
        let seen = see(&mut stagger(words(line)));
        assert!(matches!(seen.status.code(), Some(2 | 125)), "{line}: {seen:#?}");
        seen.is_silent_about("similar").is_silent_about("did you mean");
    }
}

/// With `-- FLAG`, the flag would be the command that is run.
#[test]
fn no_tip_makes_a_flag_the_command() {
    for line in ["run --wobble 3 true", "run -y true", "run -n 3 -5 true", "check --wobble"] {
        see(&mut stagger(words(line))).is_silent_about("as a value").is_silent_about("'-- -");
    }
}

#[test]
fn an_error_in_a_policy_file_is_mended_at_its_position() {
    let files = Files::new();
    let from = |text: &str| see(stagger(["plan", "-p"]).arg(format!("@{}", files.write("p.toml", text).display())));
    let seen = from("backoff = \"exponential\"\nbase = \"1s\"\ncap = \"foo\"\n");
    seen.exits(2).says("line 3, column 7").says("3 | cap = \"foo\"").says("write it like 500ms");
    from("backoff = \"exponential\"\nbase = \"1s\"\ncap = \"500s\"\n").exits(0);
    let seen = from("base = \"1s\"\nretries = 3\n");
    seen.exits(2).says("line 2, column 11").says("write max-attempts=4");
    from("base = \"1s\"\nmax-attempts = 4\n").exits(0);
    from("").exits(2).says("is empty; write a policy into it, such as 'exponential base=500ms'");
    from("exponential base=500ms").exits(0);
}

#[test]
fn an_empty_policy_names_the_unset_variable() {
    for command in ["plan", "check", "run"] {
        let seen = see(stagger([command, "-p", ""]).args((command == "run").then_some("true")));
        seen.says("the policy is empty; if it is a variable, set it");
    }
}

#[test]
fn a_base_or_cap_alone_is_accepted_by_every_command() {
    for flags in [["-d", "1m"], ["--cap", "500ms"]] {
        see(stagger(["plan"]).args(flags)).exits(0);
        let checked = see(stagger(["check"]).args(flags));
        assert!(matches!(checked.status.code(), Some(0 | 1)) && checked.stderr.is_empty(), "{checked:#?}");
        see(stagger(["run"]).args(flags).args(["--", "true"])).exits(0);
    }
}
