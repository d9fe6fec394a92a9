//! Error messages: what is wrong, the value, and how to fix it.

use core::error::Error as _;
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger_cenkalti::{self as backoff, ConstantBackOff, ExponentialBackOff, StopBackOff, with_max_retries};

fn options(factor: f64, multiplier: f64) -> String {
    let options = ExponentialBackOff::options().randomization_factor(factor).multiplier(multiplier);
    options.build().unwrap_err().to_string()
}

#[test]
fn invalid_options_name_the_value_and_the_fix() {
    for (text, value, fix) in
        [(options(1.5, 2.0), "1.5", "use a share from 0 to 1"), (options(0.5, f64::NAN), "NaN", "use one, such as 1.5")]
    {
        assert!(text.contains(value) && text.contains(fix), "{text}");
        assert!(!text.starts_with(char::is_uppercase) && !text.ends_with('.'), "{text}");
    }
}

#[test]
fn a_failed_call_reports_attempts_reason_and_cause() {
    let fails = || Err::<(), _>(std::io::Error::other("connection refused"));
    let call = backoff::blocking::retry(fails, with_max_retries(ConstantBackOff::new(Duration::from_secs(3)), 1));
    let error = call.timer(VirtualClock::new()).detailed().run().unwrap_err();
    let text = "gave up after 2 attempts in 3s, the schedule has no further delay";
    assert_eq!(error.to_string(), text);
    assert_eq!(format!("{error:#}"), format!("{text}: connection refused"));
    assert_eq!(error.source().map(ToString::to_string), Some("connection refused".to_owned()));
    assert_eq!(error.into_inner().to_string(), "connection refused");
    let error = backoff::blocking::retry(fails, StopBackOff).detailed().run().unwrap_err();
    assert!(error.to_string().starts_with("gave up after 1 attempt in "), "{error}");
}
