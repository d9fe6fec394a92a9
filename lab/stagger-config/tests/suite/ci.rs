//! GitLab CI and GitHub Actions.

use stagger_config::{RemarkKind, read};

use crate::described::{described, expect, remarks};

#[test]
fn jobs_of_gitlab_count_retries_and_need_a_maximum() {
    let text = r"stages: [test, deploy]
default: {retry: 1, timeout: 2h 30m}
.flaky:
  retry: {max: 2, when: [runner_system_failure]}
unit:
  extends: .flaky
  script: [make test]
lint:
  script: make lint
  retry:
    when: script_failure
deploy:
  script: [make deploy]
  retry: 3
  timeout: 10 minutes
shared:
  script: [x]
  retry: !reference [.flaky, retry, max]
";
    expect(
        &described(text),
        &[
            "Step default.retry at 2:11: attempts=2 base=0ns* each=9000s budget=(none)* unsafe",
            "Step .flaky.retry at 4:3: attempts=3 base=0ns* each=9000s budget=(none)* unsafe",
            "Step lint.retry at 10:3: attempts=1 each=9000s budget=(none)* unsafe",
            "Step deploy.retry at 14:3: attempts=unknown base=0ns* each=600s budget=(none)* unsafe",
            "Step shared.retry at 18:3: attempts=unknown base=0ns* each=9000s budget=(none)* unsafe",
        ],
    );
    expect(&remarks(text, RemarkKind::NoEffect), &["10:3 lint.retry: has no effect without max: nothing is retried"]);
    let invalid = remarks(text, RemarkKind::Invalid);
    assert!(invalid.len() == 1 && invalid[0].starts_with("14:3"), "{invalid:?}");
    let notes = remarks(text, RemarkKind::Note);
    assert!(notes.iter().any(|note| note.contains(".flaky.retry: 1 other jobs")), "{notes:?}");
    let unmapped = remarks(text, RemarkKind::Unmapped);
    assert!(unmapped.iter().any(|remark| remark.contains("refers to another place")), "{unmapped:?}");
}

#[test]
fn retrying_steps_of_github_count_attempts() {
    let text = r"on: push
jobs:
  build:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
    - uses: actions/checkout@v5
    - uses: nick-fields/retry@v3
      with: {timeout_minutes: 10, max_attempts: 4, command: npm test, retry_on: error}
    - uses: nick-invision/retry@v2
      timeout-minutes: 5
      with:
        timeout_seconds: 90
        retry_wait_seconds: 0.5
        max_attempts: ${{ inputs.attempts }}
        command: make
";
    expect(
        &described(text),
        &[
            "Step jobs.build.steps[1] at 8:7: attempts=4 base=10s* multiplier=1* jitter=none* each=600s all=1800s budget=(none)* unsafe",
            "Step jobs.build.steps[2] at 10:7: attempts=unknown base=10s* multiplier=1* jitter=none* each=90s all=300s budget=(none)* unsafe",
        ],
    );
    let invalid = remarks(text, RemarkKind::Invalid);
    assert!(invalid.len() == 1 && invalid[0].contains("`0.5` is no whole number: the action reads 0"), "{invalid:?}");
    let unread = remarks(text, RemarkKind::NotRead);
    assert!(unread.iter().any(|remark| remark.starts_with("15:9") && remark.contains("filled in")), "{unread:?}");
    assert!(described("on: push\njobs: {a: {steps: [{run: make}]}}\n").is_empty());
}

/// Fails unless the first entry has these settings, and the remarks of a kind are exactly those that contain this text.
#[track_caller]
fn holds(text: &str, settings: &str, kind: RemarkKind, remark: &str) {
    let lines = described(text);
    assert!(lines[0].contains(settings), "{text}: {lines:?}");
    let found = remarks(text, kind);
    assert!(found.iter().all(|found| found.contains(remark)), "{text}: {found:?}");
    assert_eq!(found.is_empty(), remark.is_empty(), "{text}: {found:?}");
}

#[test]
fn each_input_of_the_retrying_action_is_read_as_the_action_reads_it() {
    let step =
        |with: &str| format!("on: push\njobs: {{a: {{steps: [{{uses: Nick-Fields/retry@v4, with: {{{with}}}}}]}}}}\n");
    let either = "either timeout_minutes or timeout_seconds";
    for (with, settings, invalid) in [
        ("timeout_minutes: 1", "attempts=3* base=10s* multiplier=1* jitter=none* each=60s all=21600s*", ""),
        ("timeout_minutes: 1, max_attempts: 0", "attempts=3*", ""),
        ("timeout_minutes: 1, max_attempts: 5x", "attempts=5", "the action reads 5"),
        ("timeout_minutes: 1, max_attempts: many", "attempts=unknown", "`many` is not a whole number"),
        ("timeout_minutes: 1, max_attempts: ''", "attempts=unknown", "whole number"),
        ("timeout_minutes: 1, max_attempts:", "attempts=unknown", "whole number"),
        ("timeout_minutes: 1, retry_wait_seconds: 0", "base=10s*", ""),
        ("timeout_minutes: 1, retry_wait_seconds: 7", "base=7s", ""),
        ("timeout_minutes: 1, retry_wait_seconds: soon", "attempts=3* each", "`soon`"),
        ("timeout_seconds: 90, timeout_minutes: 0", "each=90s", ""),
        ("TIMEOUT_SECONDS: 90", "each=90s", ""),
        ("timeout_seconds: 90, timeout_minutes: 2", "each=90s", either),
        ("max_attempts: 2", "attempts=2", either),
        ("timeout_seconds: 0", "attempts=3*", either),
        // A value that is filled in may be the one that is missing.
        ("timeout_seconds: '${{ inputs.t }}'", "each=unknown", ""),
    ] {
        holds(&step(with), settings, RemarkKind::Invalid, invalid);
    }
    // Without inputs at all.
    holds("on: push\njobs: {a: {steps: [{uses: nick-fields/retry@v4}]}}\n", "attempts=3*", RemarkKind::Invalid, either);
    let no_input = "no input of this name";
    holds(&step("timeout_minutes: 1, max-attempts: 9"), "attempts=3*", RemarkKind::NoEffect, no_input);
    holds(&step("timeout_minutes: 1, attempts: 9"), "attempts=3*", RemarkKind::NoEffect, no_input);
    let all = "timeout_minutes: 1, shell: bash, polling_interval_seconds: 1, warning_on_retry: true, \
               continue_on_error: true, retry_on: any, retry_on_exit_code: 1, new_command_on_retry: x, on_retry_command: x";
    holds(&step(all), "attempts=3*", RemarkKind::NoEffect, "");
    assert_eq!(remarks(&step(all), RemarkKind::Unmapped).len(), 4);
    // The job of a composite action is not in its file.
    let composite = "runs: {using: composite, steps: [{uses: nick-fields/retry@v3, with: {timeout_minutes: 1}}]}\n";
    assert!(!described(composite)[0].contains("all="), "{:?}", described(composite));
}

#[test]
fn each_field_of_a_retry_of_gitlab_is_read_as_gitlab_reads_it() {
    let job = |retry: &str| format!("a: {{script: x, stage: y, {retry}}}\n");
    for (retry, settings, invalid) in [
        ("retry: 0", "attempts=1 ", ""),
        ("retry: 2", "attempts=3 base=0ns*", ""),
        ("retry: 3", "attempts=unknown", "0, 1 or 2"),
        ("retry: -1", "attempts=unknown", "0, 1 or 2"),
        ("retry: '2'", "attempts=unknown", "a number or a mapping"),
        ("retry: {max: 2}", "attempts=3 ", ""),
        ("retry: {max: '2'}", "attempts=3 ", ""),
        ("retry: {max: 3}", "attempts=unknown", "0, 1 or 2"),
        ("retry: {max: 1, exit_codes: 137}", "attempts=2 ", ""),
        ("retry: 1", "each=3600s*", ""),
        ("retry: 1, timeout: 1h 30m", "each=5400s", ""),
        ("retry: 1, timeout: 2 hours and 1 minute", "each=7260s", ""),
        ("retry: 1, timeout: soon", "each=unknown", "`soon`"),
    ] {
        holds(&job(retry), settings, RemarkKind::Invalid, invalid);
    }
    holds(&job("retry: {exit_codes: 1}"), "attempts=1 ", RemarkKind::NoEffect, "without max");
    holds(&job("retry: {max: 2, when: always}"), "attempts=3 ", RemarkKind::NoEffect, "");
    assert!(read(&job("tags: [x]"), None).unwrap().is_empty());
    // Jobs of templates inherit the default.
    let included = "default: {retry: 1}\nstages: [a]\ninclude: {template: x}\ncode_quality: {stage: a}\n";
    holds(included, "attempts=2", RemarkKind::Invalid, "");
}
