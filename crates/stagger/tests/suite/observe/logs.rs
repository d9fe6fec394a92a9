//! The [`observe::tracing`] listener.

use core::time::Duration;
use std::io;

use stagger::reconnect::Reconnect;
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{Policy, Retrier, observe, policy};

use tracing::Level;

use super::support::Logs;

const POLICY: Policy = policy!(zero().max_attempts(3));

/// Each target has its own rate limit and its first event is always logged, so every case uses another target.
#[test]
fn each_stop_and_retry_has_its_message_and_level() {
    let logs = Logs::default();
    let first = |name: &str, failures: u32| {
        let retrier = Retrier::new(POLICY).named(name).on_event(observe::tracing());
        let mut left = failures;
        let call = retrier.blocking_call(|_| {
            left = left.saturating_sub(1);
            if left == 0 { Ok(()) } else { Err("no") }
        });
        let _ = logs.during(|| call.timer(NoSleep).run());
        logs.take()
    };
    assert!(first("quiet", 0).is_empty(), "a success at the first attempt emits no event");
    let retried = first("retried", 2);
    assert_eq!(retried.len(), 1);
    assert!(retried[0].starts_with(r#"DEBUG|retrying|target_name="retried" attempt=1 max_attempts=3"#), "{retried:?}");
    let retrier = Retrier::new(Policy::stop().build().unwrap()).named("stopped").on_event(observe::tracing());
    let _ = logs.during(|| retrier.blocking(|| Err::<(), _>("no")));
    let stopped = logs.take();
    assert!(stopped[0].starts_with(r#"WARN|giving up|target_name="stopped" attempt=1"#), "{stopped:?}");
    assert!(stopped[0].ends_with(r#"stop="exhausted""#), "{stopped:?}");
}

#[test]
fn at_info_an_outage_is_told_by_its_first_call_and_the_retries_take_no_slot() {
    let logs = Logs::at(Level::INFO);
    let api = Retrier::new(POLICY).named("down").on_event(observe::tracing());
    for _ in 0..3 {
        let _ = logs.during(|| api.blocking(|| Err::<(), _>("no")));
    }
    let lines = logs.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with(r#"WARN|giving up|target_name="down" attempt=3"#), "{lines:?}");
    assert!(lines[0].contains("silenced=0"), "{lines:?}");
}

#[test]
fn each_target_has_slots_of_its_own() {
    let logs = Logs::at(Level::DEBUG);
    let both = Retrier::new(POLICY).on_event(observe::tracing_with_clock(VirtualClock::new()));
    for target in ["one", "two"] {
        let api = both.clone().named(target);
        let _ = logs.during(|| api.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run());
        let lines = logs.take();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains(&format!("target_name={target:?}"))), "{lines:?}");
    }
}

/// The level of a subscriber can change while the program runs.
#[test]
fn events_that_are_filtered_out_take_no_slot() {
    let api = Retrier::new(POLICY).named("down").on_event(observe::tracing_with_clock(VirtualClock::new()));
    let told_at = |level| {
        let logs = Logs::at(level);
        let _ = logs.during(|| api.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run());
        logs.take()
    };
    assert!(told_at(Level::ERROR).is_empty());
    let [warned] = <[String; 1]>::try_from(told_at(Level::INFO)).unwrap();
    assert!(warned.starts_with("WARN|giving up|") && warned.contains(" silenced=0 "), "{warned}");
    let [retried] = <[String; 1]>::try_from(told_at(Level::DEBUG)).unwrap();
    assert!(retried.starts_with("DEBUG|retrying|") && retried.contains(" silenced=0 "), "{retried}");
}

#[test]
fn after_the_first_call_given_up_a_summary_tells_how_many_were_and_for_how_long() {
    let (logs, clock) = (Logs::at(Level::INFO), VirtualClock::new());
    let api = Retrier::new(POLICY).named("down").on_event(observe::tracing_with_clock(clock.clone()));
    for _ in 0..21 {
        let _ = logs.during(|| api.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run());
        clock.advance(Duration::from_millis(100));
    }
    let lines = logs.take();
    let told: Vec<_> = lines.iter().map(|line| line.split_once(" silenced=").unwrap().1).collect();
    assert!(told[0].starts_with("0 silenced_ms=0.0 "), "{told:?}");
    assert!(told[1].starts_with("9 silenced_ms=900.0 "), "{told:?}");
    assert!(told[2].starts_with("9 silenced_ms=900.0 "), "{told:?}");
    assert_eq!(told.len(), 3);
}

// The eleventh attempt fails at once after the report of the tenth.
#[test]
fn a_connection_given_up_right_after_its_server_was_reported_unreachable_is_logged() {
    const ELEVEN: Policy = policy!(zero().max_attempts(11));
    let logs = Logs::at(Level::WARN);
    let feed = Retrier::new(ELEVEN).named("feed").on_event(observe::tracing_with_clock(VirtualClock::new()));
    let refused = || Err::<(), _>("refused");
    let _ = logs.during(|| Reconnect::with_timer(NoSleep, feed, refused).next_blocking());
    let messages: Vec<_> = logs.take().iter().map(|line| line.split('|').nth(1).unwrap().to_owned()).collect();
    assert_eq!(messages, ["unreachable", "giving up"]);
}

#[test]
fn at_debug_a_call_tells_its_first_retry_and_its_end() {
    let logs = Logs::at(Level::DEBUG);
    let api = Retrier::new(POLICY).named("down at debug").on_event(observe::tracing());
    let _ = logs.during(|| api.blocking(|| Err::<(), _>("no")));
    let messages: Vec<_> = logs.take().iter().map(|line| line.split('|').nth(1).unwrap().to_owned()).collect();
    assert_eq!(messages, ["retrying", "giving up"]);
}

/// Returns the field `error` of the line that tells that a call with this error is given up.
fn logged_error<E: core::fmt::Debug + Unpin + 'static>(retrier: &Retrier, error: E) -> String {
    let logs = Logs::at(Level::WARN);
    let api = retrier.clone().on_event(observe::tracing());
    let mut error = Some(error);
    let _ = logs.during(|| api.blocking(|| Err::<(), _>(error.take().unwrap())));
    let [line] = <[String; 1]>::try_from(logs.take()).unwrap();
    let (_, rest) = line.split_once(r#" error=""#).unwrap_or_else(|| panic!("no error in quotes: {line}"));
    rest.split_once(r#"" silenced="#).unwrap().0.to_owned()
}

/// An error whose two texts differ, as those of most errors do.
#[derive(Debug)]
struct Denied(io::Error);

impl core::fmt::Display for Denied {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not allowed")
    }
}

impl core::error::Error for Denied {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn an_error_is_logged_by_its_message_and_those_of_its_sources() {
    let stop = Retrier::new(Policy::stop().build().unwrap());
    let why = || Denied(io::Error::other("the door is shut"));
    let boxed: Box<dyn core::error::Error + Send + Sync> = Box::new(why());
    assert_eq!(logged_error(&stop, boxed), "not allowed: the door is shut");
    assert_eq!(logged_error(&stop, io::Error::other("no")), "no");
    assert_eq!(logged_error(&stop, "plain text"), "plain text");
    assert_eq!(logged_error(&stop, String::from("owned text")), "owned text");
    assert_eq!(logged_error(&stop.clone().look_into::<Denied>(), why()), "not allowed: the door is shut");
    // Only its `Debug` is known.
    assert!(logged_error(&stop, why()).starts_with("Denied("));
}

// A new line in an error could pass for a log line of its own.
#[test]
fn a_logged_error_shows_no_secrets_of_urls_and_no_line_breaks() {
    let stop = Retrier::new(Policy::stop().build().unwrap());
    let text = "refused by http://me:hunter2@api.test/p?token=hunter2#hunter2\nWARN giving up";
    let logged = logged_error(&stop, io::Error::other(text));
    assert!(logged.contains("api.test/p") && !logged.contains("hunter2"), "{logged}");
    assert!(!logged.contains('\n'), "{logged}");
    let logged = logged_error(&stop, Denied(io::Error::other(text)));
    assert!(logged.contains("api.test/p") && !logged.contains("hunter2"), "{logged}");
}
