//! Operator controls: run-time overrides of retries, per target.

use core::time::Duration;
use std::env;
use std::process::Command;
use std::sync::Arc;

use stagger::breaker::CircuitBreaker;
use stagger::budget::{ControlMode, ControlSetting, Controlled, Tokens};
use stagger::control::{ControlProblem, RetryControls};
use stagger::guard::{Answer, Ask, End, Permit};
use stagger::hedge::Hedge;
use stagger::testing::NoSleep;
use stagger::{
    Error, FailureKind, Guard, Instant, NestedRetries, Outcome, Policy, Ratio, Retrier, Seed, StopReason, hedge, policy,
};
use tokio::time::sleep;

use super::support::ms;

const POLICY: Policy = policy!(zero().max_attempts(4));

/// Returns the stop reason and the number of attempts of a call that always fails.
fn end(retrier: &Retrier) -> (StopReason, u32) {
    let error: Error<&str> = retrier.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run().unwrap_err();
    (error.stop_reason(), error.attempts())
}

fn granted(guard: &dyn Guard, requests: usize) -> usize {
    (0..requests).filter(|_| guard.reserve(FailureKind::Transient, &Instant::ZERO).is_some()).count()
}

fn three_tokens() -> Tokens {
    Tokens::builder().capacity(3).cost(1).reward(0).build().unwrap()
}

fn setting(mode: ControlMode, percent: u32) -> ControlSetting {
    ControlSetting::new(mode, Ratio::percent(percent))
}

#[test]
fn retries_are_limited_disabled_and_enabled_at_run_time() {
    let controls = RetryControls::new();
    let api = Retrier::new(POLICY).named("api").controls(&controls);
    let other = Retrier::new(POLICY).named("other").controls(&controls);
    assert_eq!(end(&api), (StopReason::Attempts, 4));
    controls.set("api", ControlMode::NoRetries);
    assert_eq!((end(&api), end(&other)), ((StopReason::CONTROL, 1), (StopReason::Attempts, 4)));
    controls.set("api", Ratio::percent(50));
    let retries: u32 = (0..100).map(|_| end(&api).1 - 1).sum();
    // Of 199 requested: a call whose retry is granted requests another.
    assert_eq!(retries, 99);
    controls.set("api", ControlMode::Enforced);
    assert_eq!(end(&api), (StopReason::Attempts, 4));
    let counted = controls.snapshots();
    assert_eq!(counted.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["api", "other"]);
    assert_eq!((counted[0].1.stopped, counted[0].1.limited), (1, 100));
}

#[test]
fn a_budget_can_be_enforced_observed_and_off() {
    let controls = RetryControls::new();
    let api = Retrier::new(POLICY).named("api").budget(three_tokens()).controls(&controls);
    assert_eq!((end(&api), end(&api)), ((StopReason::Attempts, 4), (StopReason::BUDGET, 1)));
    for mode in [ControlMode::Observed, ControlMode::Off] {
        controls.set("api", mode);
        assert_eq!(end(&api), (StopReason::Attempts, 4), "{mode:?}");
    }
    let (_, counted) = controls.snapshots()[0];
    assert_eq!((counted.rejected, counted.would_have_rejected), (1, 3));
}

#[test]
fn a_breaker_is_enforced_observed_and_off_with_the_other_guards() {
    let (controls, breaker) = (RetryControls::new(), Arc::new(CircuitBreaker::new(Seed::new(1))));
    breaker.force_open(&Instant::ZERO);
    let api = Retrier::new(POLICY).named("api").shared_guard(breaker).controls(&controls);
    for (line, want) in [
        ("api=enforced", (StopReason::BREAKER, 0)),
        ("api=observed", (StopReason::Attempts, 4)),
        // First attempts are as enforced.
        ("api=no-retries", (StopReason::BREAKER, 0)),
        ("api=25%", (StopReason::BREAKER, 0)),
        ("api=off", (StopReason::Attempts, 4)),
        ("*=enforced", (StopReason::BREAKER, 0)),
    ] {
        controls.apply(line).unwrap();
        assert_eq!(end(&api), want, "{line}");
    }
    let (_, counted) = controls.snapshots()[0];
    assert_eq!((counted.rejected, counted.would_have_rejected), (4, 4));
}

#[test]
fn builder_steps_commute() {
    let controls = RetryControls::new();
    controls.set("api", ControlMode::NoRetries);
    let last = Retrier::new(POLICY).named("api").budget(three_tokens()).controls(&controls);
    let first = Retrier::new(POLICY).controls(&controls).budget(three_tokens()).named("api");
    assert_eq!([end(&last), end(&first)], [(StopReason::CONTROL, 1); 2]);
}

#[test]
fn settings_apply_to_targets_registered_later() {
    let controls = RetryControls::new();
    assert_eq!(controls.apply("api=no-retries; *=off 10%").unwrap(), ["api".into()]);
    assert_eq!(granted(&*controls.control("api"), 10), 0);
    assert_eq!(granted(&*controls.control("db"), 100), 10);
    assert!(controls.apply("api=enforced; db=enforced").unwrap().is_empty());
}

#[test]
fn a_star_resets_all_targets_and_a_name_only_its_own() {
    let controls = RetryControls::new();
    let _ = (controls.control("api"), controls.control("db"));
    let settings = |names: [&str; 3]| names.map(|name| controls.setting(name).to_string());
    controls.apply("api=no-retries; *=25%").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["no-retries", "enforced 25%", "enforced 25%"]);
    controls.apply("db=observed").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["no-retries", "observed", "enforced 25%"]);
    controls.apply("*=off; db=observed 5%").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["off", "observed 5%", "off"]);
    controls.set("*", ControlMode::Enforced);
    assert_eq!(settings(["api", "db", "new"]), ["enforced"; 3]);
    let snapshots = controls.snapshots();
    assert!(
        snapshots.iter().all(|(_, seen)| (seen.mode, seen.share) == (ControlMode::Enforced, Ratio::ONE)),
        "{snapshots:?}"
    );
}

#[test]
fn valid_lines_are_parsed() {
    for (line, want) in [
        ("api=off", setting(ControlMode::Off, 100)),
        (" api = observed   25% ;;", setting(ControlMode::Observed, 25)),
        ("api=25% observed", setting(ControlMode::Observed, 25)),
        ("api=.5", setting(ControlMode::Enforced, 50)),
        ("# normal operation\ndb=off # for now; or not\n\napi=no-retries\n", setting(ControlMode::NoRetries, 100)),
        ("", ControlSetting::default()),
    ] {
        let controls = RetryControls::new();
        controls.apply(line).unwrap();
        assert_eq!(controls.setting("api"), want, "{line:?}");
    }
    let controls = RetryControls::new();
    controls.apply("a=b=off").unwrap();
    assert_eq!(controls.setting("a=b"), setting(ControlMode::Off, 100));
}

#[test]
fn an_invalid_line_changes_nothing_and_reports_every_problem() {
    let controls = RetryControls::new();
    let error = controls.apply("good=off; api; =off; db=; x=Off; y=120%; z=off observed; good=25%").unwrap_err();
    assert_eq!(controls.setting("good"), ControlSetting::default());
    let text = |name: &str| name.to_owned();
    assert!(matches!(error.problems()[4], ControlProblem::Share(_)));
    let share = error.problems()[4].clone();
    assert_eq!(
        error.problems(),
        [
            ControlProblem::NoEqualsSign(text("api")),
            ControlProblem::NoTarget(text("=off")),
            ControlProblem::NoSetting(text("db")),
            ControlProblem::Word(text("Off")),
            share,
            ControlProblem::TwoSettings(text("z")),
            ControlProblem::Twice(text("good")),
        ]
    );
    assert_eq!(
        error.to_string(),
        "`api` has no `=`; write target=setting, such as api=no-retries; `=off` has no target; write one before the \
         `=`, or `*` for all others; `db` has no setting; write enforced to reset it, or remove the entry; unknown \
         setting `Off`; expected enforced, observed, off or no-retries, a share such as 25%, or a mode and a share; \
         `120%` is not a share; write it as 20% or 0.2, from 0 to 1; `z` has two modes or two shares; keep at most one \
         of each; `good` is set twice; keep one entry"
    );
}

/// A process cannot change its environment safely, so this test runs itself as a child process.
#[test]
fn the_environment_sets_the_initial_controls() {
    let test = "suite::control::the_environment_sets_the_initial_controls";
    let child = |line: &str, want: &str| {
        let program = env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", test, "--test-threads=1"]).env(RetryControls::ENV, line).env("WANT", want);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stdout));
    };
    let settings = |controls: RetryControls| format!("{} {}", controls.setting("api"), controls.setting("db"));
    let seen = RetryControls::from_env().map_or_else(|error| error.to_string(), settings);
    match env::var("WANT") {
        Ok(want) => assert_eq!(seen, want),
        Err(_) => {
            assert_eq!(seen, "enforced enforced");
            child("api=no-retries;*=25%", "no-retries enforced 25%");
            child("", "enforced enforced");
            child("=off", "`=off` has no target; write one before the `=`, or `*` for all others");
        }
    }
}

#[test]
fn targets_of_one_name_share_its_control() {
    let controls = RetryControls::new();
    let (one, other) = (controls.control("api"), controls.clone().control("api"));
    controls.set("api", Ratio::percent(50));
    assert_eq!((0..6).map(|_| granted(&*one, 1) + granted(&*other, 1)).sum::<usize>(), 6);
    assert_eq!(controls.clone().snapshots()[0].1.limited, 6);
}

/// Without a budget, nothing bounds the two layers together.
#[test]
fn a_control_alone_is_not_a_shareable_budget() {
    let controls = RetryControls::new();
    let outer = Retrier::new(POLICY).named("api").controls(&controls);
    let inner = outer.clone().nested(NestedRetries::ShareBudget);
    let attempts = |outer: &Retrier, inner: &Retrier| {
        let mut attempts = 0;
        let mut once = || {
            attempts += 1;
            Err::<(), _>("no")
        };
        let nested = |_| inner.blocking_call(|_| once()).timer(NoSleep).run().map_err(|_| "no");
        let _ = outer.blocking_call(nested).timer(NoSleep).run();
        attempts
    };
    assert_eq!(attempts(&outer, &inner), 4);
    let (outer, inner) = (outer.budget(three_tokens()), inner.budget(three_tokens()));
    assert!(attempts(&outer, &inner) > 4);
}

/// All permits return to the budget under the control, which records every attempt.
#[test]
fn a_controlled_budget_receives_permits_and_outcomes() {
    let tokens = Arc::new(Tokens::builder().capacity(3).cost(1).reward(1).build().unwrap());
    let guard = Controlled::new(Arc::clone(&tokens), RetryControls::new().control("api"));
    let now = Instant::ZERO;
    let Answer::Go(first) = guard.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("a budget rejects no attempt") };
    let permit = guard.reserve(FailureKind::Transient, &now).unwrap();
    assert_eq!((guard.available(), tokens.snapshot().tokens), (Some(2), 2));
    guard.settle(permit, End::NeverMade, &now);
    assert_eq!(tokens.snapshot().tokens, 3);
    let _ = guard.reserve(FailureKind::Transient, &now);
    guard.settle(first, End::Made(&Outcome::Success), &now);
    assert_eq!(tokens.snapshot().tokens, 3);
}

#[tokio::test(start_paused = true)]
async fn no_retries_also_stops_hedging() {
    const HEDGE: Hedge = Hedge::after(Duration::from_millis(100));
    let controls = RetryControls::new();
    let control = controls.control("api");
    for (mode, launched) in [(ControlMode::Enforced, 2), (ControlMode::NoRetries, 1), (ControlMode::Off, 2)] {
        controls.set("api", mode);
        let slow = || async {
            sleep(ms(500)).await;
            Ok::<_, &str>(())
        };
        let report = hedge::hedge(&HEDGE, slow).guard(&*control).with_report().await;
        assert_eq!((report.result, report.launched), (Ok(()), launched), "{mode:?}");
    }
    assert_eq!(control.snapshot().stopped, 1);
}
