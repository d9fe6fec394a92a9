//! What a server says about coming back; rows HT-01 to HT-21, HT-27 and HT-29.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use stagger::{
    FailureKind, Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason, admission::Admission,
    admission::Admit, guard::Permits, machine::Decision, machine::RetryMachine, machine::RetryState,
};
use stagger_http::advice::{RetryAfter, SLOT, hint, parse_http_date, rate_limit, retry_after, slot};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Sat, 21 Nov 2026 10:00:00 GMT.
fn now() -> SystemTime {
    UNIX_EPOCH + secs(1_795_255_200)
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pair = |&(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.iter().map(pair) {
        headers.append(name, value);
    }
    headers
}

fn after(value: &str) -> Option<Duration> {
    retry_after(&headers(&[("retry-after", value)]), now())
}

#[test]
fn ht_01_seconds() {
    assert_eq!(after("120"), Some(secs(120)));
    assert_eq!(after(" 120\t"), Some(secs(120)));
    assert_eq!(after("0"), Some(secs(0)));
}

/// Clamping is what some systems do; here a wait beyond `max_hint` ends the call, since coming earlier than asked is wrong
/// and sleeping for an hour is seldom right.
#[test]
fn ht_03_and_ht_21_a_wait_beyond_max_hint_stops_the_call() {
    let policy = Policy::DEFAULT.to_builder().max_hint(secs(300)).build().unwrap();
    let stops = |seconds: u64| {
        let hint = hint(&headers(&[("retry-after", &seconds.to_string())]), now);
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        let permit = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none()).unwrap();
        let outcome = Outcome::Failed { kind: FailureKind::Throttled, hint };
        retry.decide(outcome, permit, || Instant::ZERO, &Guards::none())
    };
    assert_eq!(stops(3600), Decision::Stop(StopReason::Hint));
    assert!(matches!(stops(300), Decision::Retry { after, .. } if after >= secs(300)));
}

#[test]
fn ht_05_missing_or_unreadable_is_none() {
    assert_eq!(retry_after(&HeaderMap::new(), now()), None);
    assert_eq!(after("abc"), None);
    let opaque = HeaderValue::from_bytes(b"12\xff").unwrap();
    assert_eq!(retry_after(&HeaderMap::from_iter([(http::header::RETRY_AFTER, opaque)]), now()), None);
}

#[test]
fn ht_07_a_date_that_is_past_is_zero() {
    assert_eq!(after("Sat, 21 Nov 2026 09:59:59 GMT"), Some(secs(0)));
    assert_eq!(after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(secs(0)));
}

#[test]
fn ht_09_ht_11_ht_13_all_three_forms_of_a_date() {
    let want = Some(UNIX_EPOCH + secs(784_111_777));
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(parse_http_date(text, now()), want, "{text}");
    }
    // In 2026, 77 is more than 50 years ahead; 76 is not, later in the year it is.
    let year = |text: &str| parse_http_date(text, now()).map(|date| httpdate::fmt_http_date(date)[12..16].to_owned());
    assert_eq!(year("Sunday, 06-Nov-77 08:49:37 GMT").as_deref(), Some("1977"));
    assert_eq!(year("Saturday, 06-Nov-77 08:49:37 GMT"), None, "the Saturday is that of 2077");
    assert_eq!(year("Friday, 06-Nov-76 08:49:37 GMT").as_deref(), Some("2076"));
    assert_eq!(year("Friday, 31-Dec-76 08:49:37 GMT").as_deref(), Some("1976"));
    // As seen from 1994.
    let then = UNIX_EPOCH + secs(784_111_777);
    assert_eq!(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", then), Some(then));
    // A weekday that is in no century the date's.
    assert_eq!(year("Monday, 06-Nov-77 08:49:37 GMT"), None);
}

#[test]
fn a_leap_second_is_the_second_after_it() {
    let next = UNIX_EPOCH + secs(1_483_228_800);
    assert_eq!(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", now()), Some(next));
    assert_eq!(parse_http_date("Sun, 01 Jan 2017 00:00:00 GMT", now()), Some(next));
    assert_eq!(parse_http_date("Sat, 31 Dec 2016 23:60:59 GMT", now()), None);
    // Of the last second that a date can be written in there is no such one.
    assert_eq!(parse_http_date("Fri, 31 Dec 9999 23:59:60 GMT", now()), None);
}

#[test]
fn ht_15_digits_and_nothing_else() {
    for text in ["-5", "+5", "1.5", "", "1e3", "120, 60", "0x10", "１２", "5s"] {
        assert_eq!(after(text), None, "{text:?}");
    }
}

#[test]
fn ht_17_a_date_is_spelled_exactly() {
    let wrong = [
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "sunday, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
    ];
    for text in wrong {
        assert_eq!(after(text), None, "{text:?}");
    }
}

#[test]
fn ht_19_a_date_is_measured_by_the_servers_own_clock() {
    let skewed = now() + secs(5 * 60);
    let (date, retry) = (("date", "Sat, 21 Nov 2026 10:00:00 GMT"), ("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT"));
    assert_eq!(retry_after(&headers(&[date, retry]), skewed), Some(secs(30)));
    assert_eq!(retry_after(&headers(&[retry]), now()), Some(secs(30)), "without a Date, by ours");
    assert_eq!(retry_after(&headers(&[("date", "nonsense"), retry]), now()), Some(secs(30)));
}

#[test]
fn a_header_that_is_repeated_counts_with_its_longest_wait() {
    let three = headers(&[("retry-after", "5"), ("retry-after", "nonsense"), ("retry-after", "7")]);
    assert_eq!(retry_after(&three, now()), Some(secs(7)));
}

#[test]
fn what_is_too_long_for_the_clock_is_as_long_as_it_can_tell() {
    assert_eq!(after("99999999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
    let millis = headers(&[("retry-after-ms", "99999999999999999999999999.999")]);
    assert!(matches!(hint(&millis, now), Some(ServerHint::AtLeast(wait)) if wait >= secs(u64::MAX / 1000)));
}

#[test]
fn milliseconds_come_before_seconds() {
    let wait = |pairs: &[(&str, &str)]| match hint(&headers(pairs), now) {
        Some(ServerHint::AtLeast(wait)) => Some(wait),
        _ => None,
    };
    assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(Duration::from_millis(1500)));
    assert_eq!(wait(&[("x-ms-retry-after-ms", "250")]), Some(Duration::from_millis(250)));
    assert_eq!(wait(&[("retry-after-ms", "20.25")]), Some(Duration::from_micros(20_250)));
    assert_eq!(wait(&[("retry-after-ms", "1.0000019")]), Some(Duration::from_nanos(1_000_001)));
    for unreadable in ["-1", ".5", "1.", "1.2.3", "1e3", "", "1.+5", "1.5 s"] {
        assert_eq!(wait(&[("retry-after-ms", unreadable), ("retry-after", "2")]), Some(secs(2)), "{unreadable:?}");
    }
}

fn limited(value: &str) -> Option<Duration> {
    rate_limit(&headers(&[("ratelimit", value)]), now())
}

#[test]
fn ht_27_a_spent_rate_limit_says_when_it_is_filled_again() {
    let spent = headers(&[("ratelimit", r#""default";r=0;t=30"#)]);
    assert_eq!(hint(&spent, now), Some(ServerHint::AtLeast(secs(30))));
    assert_eq!(limited(r#""burst";r=0;t=2, "daily";r=0;t=600, "other";r=5;t=900"#), Some(secs(600)));
    assert_eq!(limited(r#""default";r=1;t=30"#), None, "something remains");
    assert_eq!(limited(r#""default";r=0"#), None, "it does not say when");
    assert_eq!(limited("limit=100, remaining=0, reset=30"), Some(secs(30)));
    assert_eq!(limited("limit=100, remaining=1, reset=30"), None);
    let both = headers(&[("ratelimit", r#""a";r=0;t=2"#), ("ratelimit", r#""b";r=0;t=3"#)]);
    assert_eq!(rate_limit(&both, now()), Some(secs(3)));
    let first = headers(&[("ratelimit", r#""default";r=0;t=30"#), ("retry-after", "2")]);
    assert_eq!(hint(&first, now), Some(ServerHint::AtLeast(secs(2))), "Retry-After comes first");
}

#[test]
fn ht_29_a_malformed_rate_limit_is_ignored() {
    for text in
        ["default;r=0;t=30", r#""default";r=0;t=-30"#, r#""default";r=0;t="30""#, r#""default;r=0;t=30"#, "", "0", "()"]
    {
        assert_eq!(limited(text), None, "{text:?}");
    }
}

#[test]
fn a_reset_beside_what_remains() {
    let pair = |remaining: &[(&str, &str)], reset: &str, prefix: &str| {
        let names = [format!("{prefix}ratelimit-remaining"), format!("{prefix}ratelimit-reset")];
        let mut pairs: Vec<_> = remaining.iter().map(|(_, value)| (names[0].as_str(), *value)).collect();
        pairs.push((&names[1], reset));
        rate_limit(&headers(&pairs), now())
    };
    assert_eq!(pair(&[("", "0")], "30", ""), Some(secs(30)));
    assert_eq!(pair(&[], "30", ""), Some(secs(30)));
    assert_eq!(pair(&[("", "1")], "30", ""), None);
    // GitHub's is a time.
    assert_eq!(pair(&[("", "0")], "1795255260", "x-"), Some(secs(60)));
    assert_eq!(pair(&[("", "0")], "1795255140", "x-"), Some(secs(0)));
    assert_eq!(pair(&[("", "0")], "soon", "x-"), None);
}

#[test]
fn an_appointment_comes_before_everything_else() {
    let admission = Admission::per_second(10).burst(1).build().unwrap();
    let at = Instant::from_nanos(1_000_000_000);
    assert_eq!(admission.try_admit(at), Admit::Now);
    let Admit::At(appointment) = admission.try_admit(at) else { panic!("there was room for one") };
    let text = appointment.to_string();
    let told = headers(&[(SLOT, &text), ("retry-after", "1")]);
    assert_eq!(slot(&told), Some(appointment));
    assert_eq!(hint(&told, now), Some(ServerHint::Reserved(appointment.after)));
    let twice = headers(&[(SLOT, &text), (SLOT, &text), ("retry-after", "1")]);
    assert_eq!(hint(&twice, now), Some(ServerHint::AtLeast(secs(1))));
}

proptest! {
    /// Whatever a server sends.
    #[test]
    fn no_header_makes_it_panic(
        name in prop::sample::select(vec!["retry-after", "retry-after-ms", "ratelimit", "ratelimit-reset", "x-ratelimit-reset", "date", SLOT]),
        value in prop::collection::vec((0x20..=0xff_u8).prop_filter("a header may not", |byte| *byte != 0x7f), 0..60),
        seconds in any::<u64>(),
    ) {
        let now = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH);
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "Sunday, 06-Nov-94 08:49:37 GMT".parse().unwrap());
        headers.append(name, HeaderValue::from_bytes(&value).unwrap());
        let _ = hint(&headers, || now);
    }

    #[test]
    fn every_date_that_can_be_written_is_read_back(seconds in 0..253_402_300_800_u64, now in 0..253_402_300_800_u64) {
        let date = UNIX_EPOCH + secs(seconds);
        let text = httpdate::fmt_http_date(date);
        prop_assert_eq!(RetryAfter::parse(&text, UNIX_EPOCH + secs(now)), Some(RetryAfter::At(date)));
    }

    /// A date within 49 years of the present keeps its century.
    #[test]
    fn two_digits_of_a_year_are_enough_for_the_present(
        now in (100 * 365 * 86_400)..(1000 * 365 * 86_400_u64), apart in -49 * 365 * 86_400..49 * 365 * 86_400_i64,
    ) {
        let date = UNIX_EPOCH + secs(now.saturating_add_signed(apart));
        let text = httpdate::fmt_http_date(date);
        let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        let day = days.into_iter().find(|day| day.starts_with(&text[..3])).unwrap();
        let old = format!("{day}, {}-{}-{} {}", &text[5..7], &text[8..11], &text[14..16], &text[17..]);
        prop_assert_eq!(parse_http_date(&old, UNIX_EPOCH + secs(now)), Some(date), "{}", old);
    }
}
