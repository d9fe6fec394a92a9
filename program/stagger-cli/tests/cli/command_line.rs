use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Files, run, see, stagger};

#[test]
fn usage_errors_of_run_exit_with_125() {
    for args in [
        &["run"][..],
        &["run", "--no-such-flag", "--", "true"],
        &["run", "--retyr-on", "3", "true"],
        &["retry", "--stdin", "sideways", "--", "true"],
        &["--color", "never", "run", "--consecutive", "0", "--", "true"],
        &["run", "--quiet", "--verbose", "--", "true"],
        &["run", "--quiet", "--log", "json", "--", "true"],
        &["run", "--log-file", "/no/such/directory/log", "--", "true"],
        &["run", "--report", "/no/such/directory/report", "--", "true"],
    ] {
        let seen = see(&mut stagger(args));
        assert_eq!(seen.status.code(), Some(125), "{args:?}: {seen:#?}");
        assert!(seen.stdout.is_empty() && seen.stderr.starts_with("error:"), "{args:?}: {seen:#?}");
    }
    for args in [&["no-such-command"][..], &["rnu", "run", "--", "true"], &["plan", "--bogus", "run"], &["help", "rnu"]]
    {
        let seen = see(&mut stagger(args));
        assert_eq!(seen.status.code(), Some(2), "{args:?}: {seen:#?}");
    }
}

#[test]
fn errors_for_invalid_values_include_the_fix() {
    for (flags, fix) in [
        (&["--cap", "50ms", "--base", "100ms"][..], "cap 50ms is below base 100ms: raise cap or lower base"),
        (&["--base", "1.2.3s"], "--base: `1.2.3s` is not a length of time; write it like 500ms, 1.5s, 1m30s or 2h"),
        (&["--base", "1 fortnight"], "use ns, us, ms, s, m, h or d after each number"),
        (
            &["--multiplier", "two"],
            "--multiplier: `two` is not a number; write a multiplier of 1 or more, like 2 or 1.5",
        ),
        (&["--multiplier", "0.5"], "multiplier"),
        (
            &["--jitter", "some"],
            "--jitter: `some` is not a jitter; use full, equal, decorrelated, none, or a share like ±20%",
        ),
        (&["-n", "0"], "max-attempts"),
        (&["-n", "many"], "--max-attempts: `many` is not a whole number; write one from 1 to 4294967295, or inf"),
        (&["-p", "expo base=1s"], "--policy: `expo` is not a backoff; begin with exponential, linear, constant"),
        (&["-p", "exponential bsae=1s"], "`bsae` is not a setting; did you mean `base`?"),
        (&["-p", "exponential base"], "`base` has no value; write it as name=value, like base=500ms"),
        (&["-p", "exponential base=1s base=2s"], "`base` is set twice; keep one of them"),
        (&["-p", "zero base=1s"], "leave it out, or choose another backoff"),
        (&["-p", "@/no/such/file"], "--policy: cannot read /no/such/file: No such file"),
        (&["--timeout", "x"], "--timeout: `x` is not a length of time; write it like 500ms"),
        (&["--timeout", "0s"], "--timeout: no command ends within 0s; use a longer time, or inf for no limit"),
        (&["--consecutive", "3", "-n", "2"], "--consecutive: 3 attempts in a row need --max-attempts 3 or more, not 2"),
        (&["-p", "uniform 1s..3s"], "--policy: `1s..3s` has no name; write it as range=1s..3s"),
        (&["-p", "Cargo.toml"], "--policy: `Cargo.toml` is a file; write it as @Cargo.toml"),
        (&["--kill-after", "x"], "--kill-after: `x` is not a length of time; write it like 500ms"),
        (
            &["--signal", "SIGNOTHING"],
            "--signal: unknown signal `SIGNOTHING`; use a name or number like TERM, INT or 9",
        ),
        (&["--retry-on", "1,fial"], "--retry-on: unknown outcome `fial`; use exit codes (1,7,52-56), fail, success"),
        (&["--stop-on", "300"], "--stop-on: unknown outcome `300`"),
        (&["--until", "ok"], "--until: unknown outcome `ok`; use exit codes"),
        (&["--retry-if-stderr", "("], "--retry-if-stderr: regex parse error"),
    ] {
        let mut args = flags.to_vec();
        args.extend(["--", "true"]);
        let seen = see(stagger(["run"]).args(args));
        assert_eq!(seen.status.code(), Some(125), "{flags:?}: {seen:#?}");
        assert!(seen.stderr.contains(fix), "{flags:?}: {fix:?} is not in {seen:#?}");
    }
}

#[test]
fn all_problems_of_a_policy_are_reported_at_once() {
    see(&mut stagger(["run", "--base", "2s", "--cap", "1s", "-n", "0", "--", "true"]))
        .exits(125)
        .says("cap 1s is below base 2s")
        .says("max-attempts");
}

#[test]
fn one_flag_alone_never_contradicts_a_default_or_a_profile() {
    for (flags, policy) in [
        (&["--base", "1m"][..], "exponential base=1m cap=1m "),
        (&["--cap", "50ms"], "exponential base=50ms cap=50ms "),
        (&["-p", "aws-sdk", "--base", "1m"], "exponential base=1m cap=1m "),
        (&["-p", "aws-sdk", "--cap", "500ms"], "exponential base=500ms cap=500ms "),
    ] {
        let seen = see(stagger(["plan"]).args(flags));
        assert!(seen.exits(0).stdout.starts_with(policy), "{flags:?}: {seen:#?}");
    }
    see(&mut stagger(["plan", "-p", "exponential base=1s", "--cap", "500ms"]))
        .exits(2)
        .says("cap 500ms is below base 1s");
}

#[test]
fn flags_override_a_policy_from_a_line_or_a_file() {
    let files = Files::new();
    let file =
        files.write("policy.toml", "backoff = \"constant\"\nbase = \"3ms\"\njitter = \"none\"\nmax-attempts = 7\n");
    let from_file = format!("@{}", file.display());
    for (flags, policy) in [
        (&["-p", "linear base=1ms step=2ms max-attempts=3"][..], "linear base=1ms"),
        (&["-p", &from_file], "constant base=3ms"),
        (&["-n", "2", "-p", &from_file, "--base", "4ms"], "constant base=4ms"),
        (
            &["--delay", "2ms", "--max-delay", "9ms", "--factor", "3", "--attempts", "6", "--reset-after", "1h"],
            "exponential base=2ms cap=9ms multiplier=3 jitter=full max-attempts=6 stable-after=1h",
        ),
    ] {
        see(stagger(["run", "-v"]).args(flags).args(["--", "true"])).exits(0).says(policy);
    }
}

#[test]
fn the_last_of_a_repeated_flag_wins() {
    see(&mut run(["-n", "9", "-n", "2", "--", "false"])).exits(1).says("attempt=2/2");
}

#[test]
fn flag_aliases_of_other_tools_are_accepted_and_hidden() {
    let help = see(&mut stagger(["run", "--help-all"])).stdout;
    for spelling in ["--delay", "--max-delay", "--factor", "--attempts ", "--deadline", "--reset-after"] {
        assert!(!help.contains(spelling), "{spelling}");
    }
    assert!(help.contains("--max-attempts") && help.contains("Exit status:"), "{help}");
}

#[test]
fn completions_load_in_bash() {
    let completions = see(&mut stagger(["completions", "bash"]));
    let files = Files::new();
    let script = files.write("completions", &completions.exits(0).stdout);
    // Loads the script and completes `stagger run --hol`.
    let script_call = format!(
        "set -e; source {}; complete -p stagger; COMP_WORDS=(stagger run --hol); COMP_CWORD=2; _stagger stagger --hol run; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let seen = see(Command::new("bash").args(["-c", &script_call]));
    assert_eq!(seen.status.code(), Some(0), "{seen:#?}");
    assert!(
        seen.stdout.contains("complete -") && seen.stdout.ends_with("stagger\n--hold-stdout --hold-stderr\n"),
        "{seen:#?}"
    );
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let seen = see(&mut stagger(["completions", shell]));
        let script = &seen.exits(0).stdout;
        assert!(script.contains("hold-stdout") && !script.contains("drill-server"), "{shell}");
    }
}

#[test]
fn the_manual_pages_render() {
    needs!("groff");
    for (page, text) in [
        (&["man"][..], "stagger-run(1)"),
        (&["man", "run"], "STAGGER_ADVICE"),
        (&["man", "plan"], "--sample"),
        (&["man", "check"], "--log"),
        (&["man", "simulate", "reconnect"], "--clients"),
        (&["man", "drill"], "--capacity"),
        (&["man", "advise"], "--clients"),
        (&["man", "completions"], "bash"),
        (&["man", "man"], "roff"),
    ] {
        let roff = see(&mut stagger(page));
        let roff = &roff.exits(0).stdout;
        assert!(roff.contains(".TH stagger"), "{page:?}");
        let mut groff = match Command::new("groff")
            .args(["-man", "-Kutf8", "-Tutf8", "-ww", "-P-cbou"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
        {
            Ok(groff) => groff,
            Err(error) => panic!("this test needs groff: {error}"),
        };
        groff.stdin.take().unwrap().write_all(roff.as_bytes()).unwrap();
        let output = groff.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{page:?}: {output:?}");
        let rendered = String::from_utf8_lossy(&output.stdout);
        assert!(rendered.contains(text), "{page:?}: {rendered}");
        assert!(rendered.lines().all(|line| line.chars().count() <= 80), "{page:?}: {rendered}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let stagger = env!("CARGO_BIN_EXE_stagger");
    let script = format!("set -o pipefail; {stagger} man run | head -1; {stagger} run --help | head -1");
    let seen = see(Command::new("bash").args(["-c", &script]));
    assert_eq!(seen.status.code(), Some(0), "{seen:#?}");
    assert!(seen.stderr.is_empty(), "{seen:#?}");
}
