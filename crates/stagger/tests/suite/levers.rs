//! Levers for incidents, by the names of their targets.

use core::time::Duration;
use std::env;
use std::process::Command;
use std::sync::Arc;

use stagger::breaker::CircuitBreaker;
use stagger::budget::{Mode, Setting, Tokens, Unlimited};
use stagger::levers::{LeverFault, Levers};
use stagger::testing::NoSleep;
use stagger::{
    Breaker, Budget, Enforcement, Error, FailureKind, Hedge, Instant, Outcome, Policy, Ratio, Retrier, Seed,
    StopReason, hedge, policy, scope::Inside,
};
use tokio::time::sleep;

use super::support::ms;

const POLICY: Policy = policy!(zero().max_attempts(4));

/// Why a call that always fails ends, and after how many attempts.
fn end(retrier: &Retrier) -> (StopReason, u32) {
    let error: Error<&str> = retrier.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run().unwrap_err();
    (error.stop(), error.attempts())
}

fn lent(budget: &dyn Budget, asked: usize) -> usize {
    (0..asked).filter(|_| budget.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some()).count()
}

fn breaker() -> Arc<CircuitBreaker> {
    Arc::new(CircuitBreaker::new(Seed::new(1)))
}

fn three_tokens() -> Tokens {
    Tokens::builder().capacity(3).cost(1).reward(0).build().unwrap()
}

fn setting(mode: Mode, percent: u32) -> Setting {
    Setting::new(mode, Ratio::percent(percent))
}

#[test]
fn retries_of_a_target_are_turned_down_and_off_and_back_on_while_the_program_runs() {
    let levers = Levers::new();
    let api = Retrier::new(POLICY).named("api").levers(&levers);
    let other = Retrier::new(POLICY).named("other").levers(&levers);
    assert_eq!(end(&api), (StopReason::Attempts, 4));
    levers.set("api", Mode::NoRetries);
    assert_eq!((end(&api), end(&other)), ((StopReason::Budget, 1), (StopReason::Attempts, 4)));
    levers.set("api", Ratio::percent(50));
    let retries: u32 = (0..100).map(|_| end(&api).1 - 1).sum();
    // Of 199 that were asked for: a call whose retry passes asks for another.
    assert_eq!(retries, 99);
    levers.set("api", Mode::Enforced);
    assert_eq!(end(&api), (StopReason::Attempts, 4));
    let counted = levers.snapshots();
    assert_eq!(counted.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["api", "other"]);
    assert_eq!((counted[0].1.stopped, counted[0].1.limited), (1, 100));
}

#[test]
fn a_budget_is_enforced_observed_and_off() {
    let levers = Levers::new();
    let api = Retrier::new(POLICY).named("api").budget(three_tokens()).levers(&levers);
    assert_eq!((end(&api), end(&api)), ((StopReason::Attempts, 4), (StopReason::Budget, 1)));
    for mode in [Mode::Observed, Mode::Off] {
        levers.set("api", mode);
        assert_eq!(end(&api), (StopReason::Attempts, 4), "{mode:?}");
    }
    let (_, counted) = levers.snapshots()[0];
    assert_eq!((counted.refused, counted.would_have_refused), (1, 3));
}

#[test]
fn a_breaker_is_enforced_observed_and_off_and_left_alone_by_what_stops_retries() {
    let (levers, breaker) = (Levers::new(), breaker());
    let api = Retrier::new(POLICY).named("api").shared_breaker(Arc::clone(&breaker) as Arc<dyn Breaker>);
    let api = api.levers(&levers);
    breaker.force_open(&Instant::ZERO);
    assert_eq!(end(&api), (StopReason::Breaker, 0));
    for (line, want) in [
        ("api=observed", Enforcement::Observed),
        ("api=no-retries", Enforcement::Observed),
        ("api=25%", Enforcement::Enforced),
        ("api=off", Enforcement::Off),
        ("*=enforced", Enforcement::Enforced),
    ] {
        levers.apply(line).unwrap();
        assert_eq!(breaker.enforcement(), want, "{line}");
    }
}

/// A program may observe a breaker by its own choice; who joins a lever that nobody has touched does not undo it.
#[test]
fn joining_changes_nothing_until_something_is_said() {
    let (levers, breaker) = (Levers::new(), breaker());
    breaker.set_enforcement(Enforcement::Observed);
    levers.breaker("api", &(Arc::clone(&breaker) as Arc<dyn Breaker>));
    assert_eq!(breaker.enforcement(), Enforcement::Observed);
    levers.set("other", Mode::Off);
    assert_eq!(breaker.enforcement(), Enforcement::Observed);
    levers.set("api", Mode::Enforced);
    assert_eq!(breaker.enforcement(), Enforcement::Enforced);
}

#[test]
fn the_order_of_the_steps_does_not_matter() {
    let levers = Levers::new();
    levers.set("api", Mode::NoRetries);
    levers.set("db", Mode::Observed);
    let breaker = breaker();
    let last = Retrier::new(POLICY).named("api").budget(three_tokens()).levers(&levers);
    let first = Retrier::new(POLICY).levers(&levers).budget(three_tokens()).named("api");
    assert_eq!([end(&last), end(&first)], [(StopReason::Budget, 1); 2]);
    let first = Retrier::new(POLICY).levers(&levers).named("db").budget(three_tokens());
    let _ = first.shared_breaker(Arc::clone(&breaker) as Arc<dyn Breaker>);
    assert_eq!(breaker.enforcement(), Enforcement::Observed);
}

#[test]
fn settings_wait_for_targets_that_join_later() {
    let (levers, breaker) = (Levers::new(), breaker());
    assert_eq!(levers.apply("api=no-retries; *=off 10%").unwrap(), ["api".into()]);
    assert_eq!(lent(&levers.budget("api", Unlimited), 10), 0);
    assert_eq!(lent(&levers.budget("db", Unlimited), 100), 10);
    levers.breaker("db", &(Arc::clone(&breaker) as Arc<dyn Breaker>));
    assert_eq!(breaker.enforcement(), Enforcement::Off);
    assert!(levers.apply("api=enforced; db=enforced").unwrap().is_empty());
}

#[test]
fn a_line_with_a_star_says_everything_and_one_without_only_what_it_names() {
    let levers = Levers::new();
    let _ = (levers.budget("api", Unlimited), levers.budget("db", Unlimited));
    let settings = |names: [&str; 3]| names.map(|name| levers.setting(name).to_string());
    levers.apply("api=no-retries; *=25%").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["no-retries", "enforced 25%", "enforced 25%"]);
    levers.apply("db=observed").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["no-retries", "observed", "enforced 25%"]);
    levers.apply("*=off; db=observed 5%").unwrap();
    assert_eq!(settings(["api", "db", "new"]), ["off", "observed 5%", "off"]);
    levers.set("*", Mode::Enforced);
    assert_eq!(settings(["api", "db", "new"]), ["enforced"; 3]);
    let moved = levers.snapshots();
    assert!(moved.iter().all(|(_, seen)| (seen.mode, seen.share) == (Mode::Enforced, Ratio::ONE)), "{moved:?}");
}

#[test]
fn what_is_written_is_read() {
    for (line, want) in [
        ("api=off", setting(Mode::Off, 100)),
        (" api = observed   25% ;;", setting(Mode::Observed, 25)),
        ("api=25% observed", setting(Mode::Observed, 25)),
        ("api=.5", setting(Mode::Enforced, 50)),
        ("# all is well\ndb=off # for now; or not\n\napi=no-retries\n", setting(Mode::NoRetries, 100)),
        ("", Setting::default()),
    ] {
        let levers = Levers::new();
        levers.apply(line).unwrap();
        assert_eq!(levers.setting("api"), want, "{line:?}");
    }
    let levers = Levers::new();
    levers.apply("a=b=off").unwrap();
    assert_eq!(levers.setting("a=b"), setting(Mode::Off, 100));
}

#[test]
fn a_line_with_a_fault_changes_nothing_and_every_fault_is_told_with_the_way_out() {
    let levers = Levers::new();
    let error = levers.apply("good=off; api; =off; db=; x=Off; y=120%; z=off observed; good=25%").unwrap_err();
    assert_eq!(levers.setting("good"), Setting::default());
    let text = |name: &str| name.to_owned();
    assert!(matches!(error.faults()[4], LeverFault::Share(_)));
    let share = error.faults()[4].clone();
    assert_eq!(
        error.faults(),
        [
            LeverFault::NoEqualsSign(text("api")),
            LeverFault::NoTarget(text("=off")),
            LeverFault::NoSetting(text("db")),
            LeverFault::Word(text("Off")),
            share,
            LeverFault::TwoSettings(text("z")),
            LeverFault::Twice(text("good")),
        ]
    );
    assert_eq!(
        error.to_string(),
        "`api` names no setting; write it as target=setting, like api=no-retries; `=off` names no target; write one \
         before the =, or * for all others; `db` has no setting; write enforced to put it back, or drop it; `Off` is \
         neither a mode nor a share; use enforced, observed, off or no-retries, a share like 25%, or both; `120%` is \
         not a share; write it as 20% or 0.2, from 0 to 1; `z` has two modes or two shares; keep one of each at most; \
         `good` is set twice; keep one of them"
    );
}

/// The environment of a process cannot be changed safely, so this test is its own child.
#[test]
fn the_environment_is_read_at_the_start() {
    let me = "suite::levers::the_environment_is_read_at_the_start";
    let child = |line: &str, want: &str| {
        let program = env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", me, "--test-threads=1"]).env(Levers::ENV, line).env("WANT", want);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stdout));
    };
    let told = |levers: Levers| format!("{} {}", levers.setting("api"), levers.setting("db"));
    let told = Levers::from_env().map_or_else(|error| error.to_string(), told);
    match env::var("WANT") {
        Ok(want) => assert_eq!(told, want),
        Err(_) => {
            assert_eq!(told, "enforced enforced");
            child("api=no-retries;*=25%", "no-retries enforced 25%");
            child("", "enforced enforced");
            child("=off", "`=off` names no target; write one before the =, or * for all others");
        }
    }
}

#[test]
fn breakers_are_not_kept_alive_and_are_there_once() {
    let (levers, breaker) = (Levers::new(), breaker());
    let shared = Arc::clone(&breaker) as Arc<dyn Breaker>;
    for _ in 0..3 {
        levers.breaker("api", &shared);
    }
    assert_eq!((Arc::strong_count(&breaker), Arc::weak_count(&breaker)), (2, 1));
    drop(shared);
    levers.set("api", Mode::Off);
    assert_eq!((breaker.enforcement(), Arc::strong_count(&breaker)), (Enforcement::Off, 1));
}

#[test]
fn all_that_join_under_one_name_share_its_lever() {
    let levers = Levers::new();
    let (one, other) = (levers.budget("api", Unlimited), levers.budget("api", three_tokens()));
    let shared = levers.shared_budget("api", Arc::new(three_tokens()));
    levers.set("api", Ratio::percent(50));
    assert_eq!((0..4).map(|_| lent(&one, 1) + lent(&other, 1) + lent(&*shared, 1)).sum::<usize>(), 6);
    assert_eq!(levers.clone().snapshots()[0].1.limited, 6);
}

/// Without a budget of its own, there is nothing that would bound two layers together.
#[test]
fn a_lever_is_no_budget_that_layers_could_share() {
    let levers = Levers::new();
    let outer = Retrier::new(POLICY).named("api").levers(&levers);
    let inner = outer.clone().inside(Inside::SharesBudget);
    let attempts = |outer: &Retrier, inner: &Retrier| {
        let mut attempts = 0;
        let mut once = || {
            attempts += 1;
            Err::<(), _>("no")
        };
        let inside = |_| inner.blocking_call(|_| once()).timer(NoSleep).run().map_err(|_| "no");
        let _ = outer.blocking_call(inside).timer(NoSleep).run();
        attempts
    };
    assert_eq!(attempts(&outer, &inner), 4);
    let (outer, inner) = (outer.budget(three_tokens()), inner.shared_budget(Arc::new(three_tokens())));
    assert!(attempts(&outer, &inner) > 4);
}

/// Everything that was lent goes back to the budget behind the lever, which hears of every attempt.
#[test]
fn a_shared_budget_under_a_lever_is_asked_and_settled() {
    let (levers, tokens) = (Levers::new(), Arc::new(Tokens::builder().capacity(3).cost(1).reward(1).build().unwrap()));
    let lever = levers.shared_budget("api", Arc::clone(&tokens) as Arc<dyn Budget>);
    let now = Instant::ZERO;
    let (first, loan) = (lever.on_first_attempt(&now), lever.try_acquire(FailureKind::Transient, &now).unwrap());
    assert_eq!((lever.available(), tokens.snapshot().tokens), (Some(2), 2));
    lever.release(loan);
    assert_eq!(tokens.snapshot().tokens, 3);
    let _ = lever.try_acquire(FailureKind::Transient, &now);
    lever.record(first, &Outcome::Success, &now);
    assert_eq!(tokens.snapshot().tokens, 3);
}

#[tokio::test(start_paused = true)]
async fn hedges_are_stopped_with_the_retries() {
    const HEDGE: Hedge = Hedge::after(Duration::from_millis(100));
    let levers = Levers::new();
    let budget = levers.budget("api", Unlimited);
    for (mode, launched) in [(Mode::Enforced, 2), (Mode::NoRetries, 1), (Mode::Off, 2)] {
        levers.set("api", mode);
        let slow = || async {
            sleep(ms(500)).await;
            Ok::<_, &str>(())
        };
        let report = hedge(&HEDGE, slow).budget(&budget).report().await;
        assert_eq!((report.result, report.launched), (Ok(()), launched), "{mode:?}");
    }
    assert_eq!(budget.snapshot().stopped, 1);
}
