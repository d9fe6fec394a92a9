//! Settled meaning 10: the caller gets the operation's own last error.

use core::error::Error as _;
use core::fmt;
use core::time::Duration;
use std::io;

use stagger::batch::UnknownItem;
use stagger::control::RetryControls;
use stagger::queue::{DelayQueue, RetryQueue};
use stagger::testing::{NoSleep, Script, VirtualClock};
use stagger::{
    Cause, Error, Marked, Outcome, Policy, Rejected, Retrier, RetryResultExt as _, StopReason, blocking, display_chain,
    policy,
};

use super::support::{Fail, RecordingBreaker, ms};

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));

/// An error with a cause.
#[derive(Debug)]
struct Broken(io::Error);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

impl core::error::Error for Broken {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn broken() -> Broken {
    Broken(io::ErrorKind::ConnectionReset.into())
}

/// The test is that this compiles.
#[test]
fn meaning_10_plain_errors_work_with_the_question_mark_operator() {
    fn io() -> io::Result<u32> {
        let page = blocking::retry(&POLICY, || Err::<u32, _>(io::Error::from(io::ErrorKind::NotFound))).run()?;
        Ok(page)
    }
    fn text() -> Result<u32, String> {
        let page = blocking::retry(&POLICY, || Err::<u32, _>(String::from("no"))).timer(NoSleep).run()?;
        Ok(page)
    }
    fn boxed() -> Result<u32, Box<dyn core::error::Error>> {
        let page = blocking::retry(&POLICY, || Err::<u32, _>(broken())).timer(NoSleep).run()?;
        Ok(page)
    }
    async fn later() -> Result<u32, fmt::Error> {
        stagger::retry_with_timer(&POLICY, NoSleep, async || Err(fmt::Error)).await
    }
    assert_eq!(io().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(text(), Err(String::from("no")));
    assert_eq!(boxed().unwrap_err().to_string(), "broken");
    assert_eq!(futures_lite::future::block_on(later()), Err(fmt::Error));
}

#[test]
fn meaning_10_the_last_error_is_returned() {
    let mut script = Script::new([Err("first"), Err("second"), Err("third"), Ok(())]);
    assert_eq!(blocking::retry(&POLICY, || script.next("none")).timer(NoSleep).run(), Err("third"));
}

#[test]
fn meaning_10_an_error_carries_reason_attempts_and_elapsed_time() {
    let clock = VirtualClock::new();
    let fails = || {
        clock.advance(ms(50));
        Err::<(), _>(Fail::TRANSIENT)
    };
    let error = blocking::retry(&POLICY, fails).timer(&clock).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.elapsed()), (StopReason::Attempts, 3, ms(350)));
    assert_eq!((error.error(), error.cause()), (Some(&Fail::TRANSIENT), &Cause::Operation(Fail::TRANSIENT)));
}

#[test]
fn meaning_10_the_message_contains_attempts_and_elapsed_time() {
    let clock = VirtualClock::new();
    let fails = || {
        clock.advance(ms(1_000));
        Err::<(), _>("connection refused")
    };
    let error = blocking::retry(&POLICY, fails).timer(&clock).detailed().run().unwrap_err();
    assert_eq!(error.to_string(), "gave up after 3 attempts in 3.2s, every attempt was used");
    assert_eq!(format!("{error:#}"), format!("{error}: connection refused"));

    let breaker = RecordingBreaker::open(ms(1_500));
    let rejected = blocking::retry(&POLICY, || Err::<(), _>("")).timer(VirtualClock::new());
    let error = rejected.guard(&breaker).run().unwrap_err();
    let error = error.boxed();
    let text = display_chain(&error).to_string();
    assert_eq!(format!("{error:#}"), text);
    let want = "gave up after 0 attempts in 0s, rejected: this client's own circuit breaker is open for another 1.5s";
    assert_eq!(text, want);
}

#[test]
fn meaning_10_the_source_chain_starts_with_the_operations_error() {
    let error = blocking::retry(&POLICY, || Err::<(), _>(broken())).timer(NoSleep).detailed().run().unwrap_err();
    let inner = error.source().and_then(|source| source.downcast_ref::<Broken>()).expect("the error of the operation");
    assert_eq!(inner.0.kind(), io::ErrorKind::ConnectionReset);
    let cause = error.source().and_then(core::error::Error::source).expect("its cause");
    assert!(cause.is::<io::Error>());

    let rejected: Error<Fail> = blocking::retry(&POLICY, || Err::<(), _>(Fail::TRANSIENT))
        .timer(NoSleep)
        .guard(&RecordingBreaker::open(ms(5)))
        .run()
        .unwrap_err();
    assert_eq!(
        rejected.source().and_then(|source| source.downcast_ref()),
        Some(&Rejected::ByGuard { guard: "breaker", retry_in: ms(5) })
    );
}

#[test]
fn meaning_10_one_mark_is_removed() {
    let fails = || Err::<(), _>(Marked::permanent(broken()));
    let error = blocking::retry(&POLICY, fails).run().unwrap_err();
    assert_eq!(error.0.kind(), io::ErrorKind::ConnectionReset);

    let error = blocking::retry(&POLICY, fails).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Permanent, 1));
    assert!(error.source().is_some_and(|source| source.is::<Broken>()), "no wrapper in between");

    // Only the outer mark is removed: a marked error inside a marked error keeps its mark.
    let fails = || Err::<(), _>(Marked::permanent(Marked::transient("inner")));
    assert_eq!(blocking::retry(&POLICY, fails).run(), Err(Marked::transient("inner")));
    // Without a mark of its own, the outer error is classified by the inner one.
    let fails = || Err::<(), Marked<Marked<_>>>(Marked::from(Marked::permanent("inner")));
    assert_eq!(blocking::retry(&POLICY, fails).timer(NoSleep).detailed().run().unwrap_err().attempts(), 1);
}

#[test]
fn meaning_10_a_marked_error_displays_as_its_inner_error() {
    let marked = Marked::transient(broken());
    assert_eq!(marked.to_string(), "broken");
    assert!(marked.source().is_some_and(|cause| cause.is::<io::Error>()), "not the error itself");
}

#[test]
fn meaning_10_into_inner_returns_the_error_of_the_operation() {
    let api = Retrier::new(POLICY);
    let fails = || Err::<(), _>(Fail(Outcome::Permanent));
    let api = api.classify(Fail::outcome);
    assert_eq!(api.blocking(fails).into_inner(), Err(Fail(Outcome::Permanent)));

    // A rejection is converted by `From<Rejected>`.
    let api = Retrier::new(POLICY).breaker(RecordingBreaker::open(Duration::MAX));
    assert_eq!(api.blocking(fails).into_inner(), Err(Fail(Outcome::Cancelled)));
    assert_eq!(
        api.blocking(|| Err::<(), _>("inner")).into_inner_or(|rejected| {
            assert!(matches!(rejected, Rejected::ByGuard { guard: "breaker", .. }), "{rejected:?}");
            "rejected"
        }),
        Err("rejected")
    );
    let error = api.blocking(|| Ok::<(), io::Error>(())).into_inner().unwrap_err();
    assert!(error.to_string().contains("this client's own circuit breaker is open"), "{error}");
}

#[test]
fn meaning_10_a_report_covers_successes_and_failures() {
    let clock = VirtualClock::new();
    let mut script = Script::new([Err("no"), Ok(7)]);
    let report = blocking::retry(&POLICY, || script.next("none")).timer(&clock).with_report().run();
    assert_eq!((report.stop_reason(), report.attempts, report.elapsed), (None, 2, ms(100)));
    assert_eq!(report.result, Ok(7));

    let report = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&clock).with_report().run();
    assert_eq!((report.stop_reason(), report.attempts, report.elapsed), (Some(StopReason::Attempts), 3, ms(200)));
    assert_eq!(report.result.unwrap_err().error(), Some(&"no"));
}

#[test]
fn a_rejection_becomes_an_io_error_of_the_kind_that_says_why() {
    let open = Rejected::ByGuard { guard: "breaker", retry_in: ms(1) };
    for (rejected, kind) in [
        (open, io::ErrorKind::Other),
        (Rejected::TimedOut, io::ErrorKind::TimedOut),
        (Rejected::DeadlinePassed, io::ErrorKind::TimedOut),
        (Rejected::Cancelled, io::ErrorKind::Other),
        (Rejected::Lost, io::ErrorKind::ConnectionAborted),
    ] {
        let error = io::Error::from(rejected);
        assert_eq!((error.kind(), error.to_string()), (kind, rejected.to_string()), "{rejected:?}");
    }
}

// Error messages: what is wrong, the value, and how to fix it.

const TWICE: Policy = policy!(constant(ms(1)).max_attempts(2));

fn control(line: &str) -> String {
    RetryControls::new().apply(line).unwrap_err().to_string()
}

fn full() -> String {
    DelayQueue::with_timer(NoSleep).capacity(0).push("item", Duration::ZERO).unwrap_err().to_string()
}

fn gave_up() -> String {
    let mut queue = RetryQueue::with_timer(NoSleep, TWICE).capacity(0);
    let job = queue.begin("item").unwrap();
    queue.push_retry(job, Outcome::TRANSIENT).unwrap_err().to_string()
}

fn failed() -> String {
    format!("{:#}", Retrier::new(TWICE).blocking(|| Err::<(), _>("connection refused")).unwrap_err())
}

/// Returns each message with the value and the fix that it must contain.
fn fixable() -> Vec<(String, &'static str, &'static str)> {
    vec![
        (control("api"), "`api`", "write target=setting"),
        (control("=off"), "`=off`", "write one before the `=`"),
        (control("db="), "`db`", "write enforced to reset it"),
        (control("db=of"), "`of`", "expected enforced, observed, off or no-retries"),
        (control("db=120%"), "`120%`", "from 0 to 1"),
        (control("db=off observed"), "`db`", "keep at most one of each"),
        (control("db=off; db=observed"), "`db`", "keep one entry"),
        (UnknownItem("m-7".to_owned()).to_string(), "m-7", "report only ids of `entries()`"),
        (full(), "capacity", "raise its capacity"),
        (gave_up(), "1 attempt", "raise its capacity"),
    ]
}

#[test]
fn errors_name_the_value_and_the_fix() {
    for (text, value, fix) in fixable() {
        assert!(text.contains(value) && text.contains(fix), "{text}");
    }
}

#[test]
fn error_texts_are_lower_case_fragments_in_standard_terms() {
    let open = Rejected::ByGuard { guard: "breaker", retry_in: Duration::from_secs(3) };
    let rejected = [open, Rejected::TimedOut, Rejected::Cancelled, Rejected::Lost].map(|rejected| rejected.to_string());
    let texts = fixable().into_iter().map(|(text, ..)| text).chain(rejected).chain([failed()]);
    for text in texts {
        assert!(!text.starts_with(char::is_uppercase) && !text.ends_with('.'), "{text}");
        for phrase in [" is no ", " is none", "who", "nobody", "somebody", "lend", "lent"] {
            assert!(!text.contains(phrase), "{text}");
        }
    }
}

#[test]
fn a_failed_call_reports_attempts_reason_and_cause() {
    let text = failed();
    for part in ["2 attempts", "every attempt", "connection refused"] {
        assert!(text.contains(part), "{text}");
    }
}
