//! Error messages: what is wrong, the value, and how to fix it.

use core::time::Duration;

use stagger::batch::UnknownItem;
use stagger::control::RetryControls;
use stagger::queue::{DelayQueue, RetryQueue};
use stagger::testing::NoSleep;
use stagger::{BreakerOpen, Outcome, Policy, Rejected, Retrier, policy};

const POLICY: Policy = policy!(constant(ms(1)).max_attempts(2));

fn control(line: &str) -> String {
    RetryControls::new().apply(line).unwrap_err().to_string()
}

fn full() -> String {
    DelayQueue::with_timer(NoSleep).capacity(0).push("item", Duration::ZERO).unwrap_err().to_string()
}

fn gave_up() -> String {
    let mut queue = RetryQueue::with_timer(NoSleep, POLICY).capacity(0);
    let job = queue.begin("item").unwrap();
    queue.push_retry(job, Outcome::TRANSIENT).unwrap_err().to_string()
}

fn failed() -> String {
    Retrier::new(POLICY).blocking(|| Err::<(), _>("connection refused")).unwrap_err().to_string()
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
    let open = Rejected::BreakerOpen(BreakerOpen { retry_in: Duration::from_secs(3) });
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
