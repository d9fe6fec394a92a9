//! GitLab CI and GitHub Actions.

use stagger_config::RemarkKind;

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
            "Step jobs.build.steps[2] at 10:7: attempts=unknown base=500ms multiplier=1* jitter=none* each=90s all=300s budget=(none)* unsafe",
        ],
    );
    let unread = remarks(text, RemarkKind::NotRead);
    assert!(unread.iter().any(|remark| remark.starts_with("15:9") && remark.contains("filled in")), "{unread:?}");
    assert!(described("on: push\njobs: {a: {steps: [{run: make}]}}\n").is_empty());
}
