//! [`skip_sleeps`] applies to the whole process, so it is tested in a child process.

use core::time::Duration;
use std::time::Instant;

use stagger::testing::{Recorder, VirtualClock, skip_sleeps};
use stagger::{Outcome, Policy, ServerHint, blocking, policy};
use stagger_kit::Program;

use super::support::Fail;

const HOURLY: Policy = policy!(exponential(mins(60), mins(60)).jitter(Jitter::None).spread(mins(60)).max_attempts(3));

#[test]
fn skip_sleeps_disables_sleeping_in_the_whole_process() {
    let child = Program::this_test("suite::skip_sleeps::child_that_skips_its_sleeps").unwrap().env("SKIP_SLEEPS", "1");
    let done = child.run(Duration::from_secs(20)).unwrap();
    assert!(done.status.success(), "{done}");
    assert!(done.stdout_text().contains("skipped them all"), "{done}");
}

#[test]
#[ignore = "the child of another test"]
fn child_that_skips_its_sleeps() {
    if std::env::var_os("SKIP_SLEEPS").is_none() {
        return;
    }
    let start = Instant::now();
    let (skip, recorder) = (skip_sleeps(), Recorder::new());
    // These calls create their own timers. Delays from server hints are skipped, too.
    let hinted = || Err::<(), _>(Fail(Outcome::throttled(Some(ServerHint::Reserved(Duration::from_secs(100))))));
    blocking::retry(&HOURLY, hinted).classify(Fail::outcome).run().unwrap_err();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let call = stagger::retry(&HOURLY, async || Err::<(), _>("no")).on_event(recorder.listener());
    runtime.block_on(call).unwrap_err();
    assert_eq!(recorder.delays(), [Duration::from_secs(3_600); 2], "decisions are unchanged");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());

    let another = skip_sleeps();
    drop(skip);
    let clock = VirtualClock::new();
    blocking::retry(&HOURLY, hinted).timer(&clock).run().unwrap_err();
    assert_eq!(clock.sleeps().len(), 0, "sleeps are skipped until both guards are dropped");
    drop(another);
    blocking::retry(&HOURLY, hinted).timer(&clock).run().unwrap_err();
    assert_eq!(clock.sleeps().len(), 3, "the spread and two delays");
    println!("skipped them all");
}
