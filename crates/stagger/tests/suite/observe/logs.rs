//! The listener that logs.

use stagger::testing::NoSleep;
use stagger::{Policy, Retrier, observe, policy};

use super::support::Logs;

const POLICY: Policy = policy!(zero().max_attempts(3));

/// The first event of a target is logged in full, whichever it is; each target has a limit of its own.
#[test]
fn each_end_and_each_retry_has_its_message_and_level() {
    let logs = Logs::default();
    let first = |name: &str, failures: u32| {
        let it = Retrier::new(POLICY).named(name).on_event(observe::tracing());
        let mut left = failures;
        let call = it.blocking_call(|_| {
            left = left.saturating_sub(1);
            if left == 0 { Ok(()) } else { Err("no") }
        });
        let _ = logs.during(|| call.timer(NoSleep).run());
        logs.take()
    };
    assert!(first("quiet", 0).is_empty(), "a success at once is no event");
    let retried = first("retried", 2);
    assert_eq!(retried.len(), 1);
    assert!(retried[0].starts_with(r#"DEBUG|retrying|target_name="retried" attempt=1 max_attempts=3"#), "{retried:?}");
    let stop = Retrier::new(Policy::stop().build().unwrap()).named("stopped").on_event(observe::tracing());
    let _ = logs.during(|| stop.blocking(|| Err::<(), _>("no")));
    let stopped = logs.take();
    assert!(stopped[0].starts_with(r#"WARN|giving up|target_name="stopped" attempt=1"#), "{stopped:?}");
    assert!(stopped[0].ends_with(r#"stop="exhausted""#), "{stopped:?}");
}
