//! Server hints; rows HT-01 to HT-21, HT-27 and HT-29.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use stagger::admission::{Admission, Admit};
use stagger::guard::Permits;
use stagger::machine::{Decision, RetryMachine, RetryState};
use stagger::profile::AWS_SDK_2026;
use stagger::{FailureKind, Guards, Instant, Jitter, Outcome, Policy, Seed, ServerHint, StopReason};
use stagger_http::hint::{
    RetryAfter, parse_http_date, rate_limit, reservation, retry_after, server_hint, should_retry,
};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns Sat, 21 Nov 2026 10:00:00 GMT.
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

// Some systems clamp the delay. Here a delay beyond `max_hint` ends the call: retrying earlier than asked is wrong, and
// sleeping for an hour is rarely right.
#[test]
fn ht_03_and_ht_21_a_delay_beyond_max_hint_stops_the_call() {
    let policy = Policy::DEFAULT.to_builder().max_hint(secs(300)).build().unwrap();
    let stops = |seconds: u64| {
        let hint = server_hint(&headers(&[("retry-after", &seconds.to_string())]), now);
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
fn ht_05_missing_or_malformed_is_none() {
    assert_eq!(retry_after(&HeaderMap::new(), now()), None);
    assert_eq!(after("abc"), None);
    let opaque = HeaderValue::from_bytes(b"12\xff").unwrap();
    assert_eq!(retry_after(&HeaderMap::from_iter([(http::header::RETRY_AFTER, opaque)]), now()), None);
}

#[test]
fn ht_07_a_past_date_is_a_delay_of_zero() {
    assert_eq!(after("Sat, 21 Nov 2026 09:59:59 GMT"), Some(secs(0)));
    assert_eq!(after("Thu, 01 Jan 1970 00:00:00 GMT"), Some(secs(0)));
}

#[test]
fn ht_09_ht_11_ht_13_all_three_date_formats() {
    let want = Some(UNIX_EPOCH + secs(784_111_777));
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(parse_http_date(text, now()), want, "{text}");
    }
    // Seen from November 2026, '77 is more than 50 years ahead and 6 November '76 is not, but 31 December '76 is.
    let year = |text: &str| parse_http_date(text, now()).map(|date| httpdate::fmt_http_date(date)[12..16].to_owned());
    assert_eq!(year("Sunday, 06-Nov-77 08:49:37 GMT").as_deref(), Some("1977"));
    assert_eq!(year("Saturday, 06-Nov-77 08:49:37 GMT"), None, "6 November is a Saturday in 2077 only");
    assert_eq!(year("Friday, 06-Nov-76 08:49:37 GMT").as_deref(), Some("2076"));
    assert_eq!(year("Friday, 31-Dec-76 08:49:37 GMT").as_deref(), Some("1976"));
    // Seen from 1994.
    let then = UNIX_EPOCH + secs(784_111_777);
    assert_eq!(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", then), Some(then));
    // The weekday fits the date in no century.
    assert_eq!(year("Monday, 06-Nov-77 08:49:37 GMT"), None);
}

#[test]
fn a_leap_second_is_parsed_as_the_following_second() {
    let next = UNIX_EPOCH + secs(1_483_228_800);
    assert_eq!(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", now()), Some(next));
    assert_eq!(parse_http_date("Sun, 01 Jan 2017 00:00:00 GMT", now()), Some(next));
    assert_eq!(parse_http_date("Sat, 31 Dec 2016 23:60:59 GMT", now()), None);
    // The second after the last one that a date can express is out of range.
    assert_eq!(parse_http_date("Fri, 31 Dec 9999 23:59:60 GMT", now()), None);
}

#[test]
fn ht_15_only_digits_are_seconds() {
    for text in ["-5", "+5", "1.5", "", "1e3", "120, 60", "0x10", "１２", "5s"] {
        assert_eq!(after(text), None, "{text:?}");
    }
}

#[test]
fn ht_17_dates_must_be_spelled_exactly() {
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
fn ht_19_a_date_is_measured_against_the_date_header() {
    let skewed = now() + secs(5 * 60);
    let (date, retry) = (("date", "Sat, 21 Nov 2026 10:00:00 GMT"), ("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT"));
    assert_eq!(retry_after(&headers(&[date, retry]), skewed), Some(secs(30)));
    assert_eq!(retry_after(&headers(&[retry]), now()), Some(secs(30)), "without a Date header, by the local clock");
    assert_eq!(retry_after(&headers(&[("date", "nonsense"), retry]), now()), Some(secs(30)));
}

#[test]
fn the_longest_delay_of_a_repeated_header_wins() {
    let three = headers(&[("retry-after", "5"), ("retry-after", "nonsense"), ("retry-after", "7")]);
    assert_eq!(retry_after(&three, now()), Some(secs(7)));
}

/// Each header that has a number, and a function that writes it.
const NUMBERS: [(&str, fn(&str) -> String); 8] = [
    ("retry-after", str::to_owned),
    ("retry-after-ms", str::to_owned),
    ("x-ms-retry-after-ms", str::to_owned),
    ("x-amz-retry-after", str::to_owned),
    ("ratelimit-reset", str::to_owned),
    ("x-ratelimit-reset", str::to_owned),
    ("ratelimit", |number| format!(r#""default";r=0;t={number}"#)),
    ("ratelimit", |number| format!("limit=9, remaining=0, reset={number}")),
];

#[test]
fn a_unix_time_in_seconds_or_milliseconds_is_read_as_such_in_every_header() {
    for (name, written) in NUMBERS {
        for (number, want) in [
            ("1795255202", secs(2)),
            ("1795255202000", secs(2)),
            ("1795255202500", Duration::from_millis(2_500)),
            ("1795255199000", secs(0)),
            ("1000000000", secs(0)),
        ] {
            let hint = server_hint(&headers(&[(name, &written(number))]), now);
            assert_eq!(hint, Some(ServerHint::AtLeast(want)), "{name}: {}", written(number));
        }
    }
}

#[test]
fn a_wait_of_more_than_a_year_is_malformed_in_every_header() {
    for (name, written) in NUMBERS {
        // A time in seconds in 2036 or 9999, one in milliseconds in 2029 or 9999, and one in microseconds.
        for number in ["2100000000", "253402300799", "1900000000000", "253402300799000", "999999999999999"] {
            let header = written(number);
            assert_eq!(server_hint(&headers(&[(name, &header)]), now), None, "{name}: {header}");
            let next = [(name, &*header), ("x-ratelimit-reset", "7")];
            if name != "x-ratelimit-reset" {
                assert_eq!(server_hint(&headers(&next), now), Some(ServerHint::AtLeast(secs(7))), "{name}: {header}");
            }
        }
    }
    let year = 366 * 24 * 3_600;
    let year_ms = year * 1_000;
    for name in ["retry-after", "x-ratelimit-reset"] {
        let hint = |seconds: u64| server_hint(&headers(&[(name, &seconds.to_string())]), now);
        assert_eq!((hint(year), hint(year + 1)), (Some(ServerHint::AtLeast(secs(year))), None), "{name}");
    }
    let token = ";token=00000000000000000000000000000007";
    let reserved = |millis: u64| server_hint(&headers(&[("stagger-reservation", &format!("{millis}{token}"))]), now);
    assert_eq!((reserved(year_ms), reserved(year_ms + 1)), (Some(ServerHint::Reserved(secs(year))), None));
    for date in ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 22 Nov 2027 10:00:01 GMT"] {
        assert_eq!(after(date), None, "{date}");
    }
    assert_eq!(after("99999999999999999999999999"), None);
}

#[test]
fn a_reset_may_have_a_fraction() {
    for (reset, want) in [
        ("1795255202.25", Some(Duration::from_millis(2_250))),
        ("64.5", Some(Duration::from_millis(64_500))),
        ("0.0000000019", Some(Duration::from_nanos(1))),
        ("1.7e9", None),
        (".5", None),
        ("5.", None),
        ("-5.5", None),
        ("NaN", None),
    ] {
        let pair = headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]);
        assert_eq!(rate_limit(&pair, now()), want, "{reset}");
    }
}

#[test]
fn milliseconds_take_precedence_over_seconds() {
    let wait = |pairs: &[(&str, &str)]| match server_hint(&headers(pairs), now) {
        Some(ServerHint::AtLeast(wait)) => Some(wait),
        _ => None,
    };
    assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(Duration::from_millis(1500)));
    assert_eq!(wait(&[("x-ms-retry-after-ms", "250")]), Some(Duration::from_millis(250)));
    assert_eq!(wait(&[("retry-after-ms", "20.25")]), Some(Duration::from_micros(20_250)));
    assert_eq!(wait(&[("retry-after-ms", "1.0000019")]), Some(Duration::from_nanos(1_000_001)));
    for malformed in ["-1", ".5", "1.", "1.2.3", "1e3", "", "1.+5", "1.5 s"] {
        assert_eq!(wait(&[("retry-after-ms", malformed), ("retry-after", "2")]), Some(secs(2)), "{malformed:?}");
    }
}

#[test]
fn should_retry_is_exactly_true_or_false_and_said_once() {
    for (values, want) in [
        (&[][..], None),
        (&["true"], Some(true)),
        (&["false"], Some(false)),
        (&["True"], None),
        (&["0"], None),
        (&[""], None),
        (&["true", "true"], None),
        (&["false", "true"], None),
    ] {
        let pairs: Vec<_> = values.iter().map(|&value| ("x-should-retry", value)).collect();
        assert_eq!(should_retry(&headers(&pairs)), want, "{values:?}");
    }
}

/// The rows of the module's table, from the first to the last.
#[test]
fn the_first_header_of_the_table_wins() {
    let rows = [
        ("x-should-retry", "false", ServerHint::DoNotRetry),
        (
            "stagger-reservation",
            "250;token=00000000000000000000000000000007",
            ServerHint::Reserved(Duration::from_millis(250)),
        ),
        ("retry-after-ms", "1001", ServerHint::AtLeast(Duration::from_millis(1001))),
        ("x-ms-retry-after-ms", "1002", ServerHint::AtLeast(Duration::from_millis(1002))),
        ("x-amz-retry-after", "1003", ServerHint::AtLeast(Duration::from_millis(1003))),
        ("retry-after", "4", ServerHint::AtLeast(secs(4))),
        ("ratelimit", "\"default\";r=0;t=5", ServerHint::AtLeast(secs(5))),
    ];
    for from in 0..rows.len() {
        let pairs: Vec<_> = rows[from..].iter().rev().map(|&(name, value, _)| (name, value)).collect();
        assert_eq!(server_hint(&headers(&pairs), now), Some(rows[from].2), "{pairs:?}");
    }
}

/// Returns the wait before the first retry of the AWS SDKs' policy, without jitter, after a response with these
/// headers.
fn aws_wait(pairs: &[(&str, &str)], kind: FailureKind) -> Duration {
    let policy = AWS_SDK_2026.policy().to_builder().jitter(Jitter::None).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none()).unwrap();
    let outcome = Outcome::Failed { kind, hint: server_hint(&headers(pairs), now) };
    match retry.decide(outcome, permit, || Instant::ZERO, &Guards::none()) {
        Decision::Retry { after, .. } => after,
        other => panic!("{pairs:?}: {other:?}"),
    }
}

#[test]
fn the_header_of_the_aws_services_is_a_hint_in_whole_milliseconds() {
    let wait = |pairs: &[(&str, &str)]| server_hint(&headers(pairs), now);
    let at_least = |millis| Some(ServerHint::AtLeast(Duration::from_millis(millis)));
    assert_eq!(wait(&[("x-amz-retry-after", "1500")]), at_least(1_500));
    assert_eq!(wait(&[("X-Amz-Retry-After", "\t1500 ")]), at_least(1_500));
    assert_eq!(wait(&[("x-amz-retry-after", "0")]), at_least(0));
    assert_eq!(wait(&[("x-amz-retry-after", "1500"), ("retry-after", "9")]), at_least(1_500));
    assert_eq!(wait(&[("x-amz-retry-after", "1500"), ("x-amz-retry-after", "2500")]), at_least(2_500));
    for malformed in ["", " ", "-1", "+1", "1.5", "1e3", "0x10", "１２", "1500ms", "1, 2", "NaN", "inf", "9 9"] {
        let headers = [("x-amz-retry-after", malformed)];
        assert_eq!(wait(&headers), None, "{malformed:?}");
        assert_eq!(wait(&[headers[0], ("retry-after", "2")]), at_least(2_000), "{malformed:?}");
    }
    assert_eq!(wait(&[("x-amz-retry-after", &"9".repeat(1_000))]), None);
}

#[test]
fn a_hint_of_the_aws_services_moves_a_delay_by_five_seconds_at_most() {
    let (transient, throttled) = (FailureKind::Transient, FailureKind::Throttled);
    let millis = Duration::from_millis;
    for (value, kind, want) in [
        // The delays without a hint are 50 ms and 1 s.
        ("0", transient, millis(50)),
        ("49", transient, millis(50)),
        ("700", transient, millis(700)),
        ("5050", transient, millis(5_050)),
        ("5051", transient, millis(5_050)),
        ("999", throttled, secs(1)),
        ("6000", throttled, secs(6)),
        ("60000", throttled, secs(6)),
        // Longer than the `max_hint` of a policy that does not set it.
        ("600000", throttled, secs(6)),
        // No time at all.
        ("99999999999999999999999999", throttled, secs(1)),
        ("-60000", throttled, secs(1)),
        ("soon", transient, millis(50)),
    ] {
        assert_eq!(aws_wait(&[("x-amz-retry-after", value)], kind), want, "{value} after {kind:?}");
    }
}

fn limited(value: &str) -> Option<Duration> {
    rate_limit(&headers(&[("ratelimit", value)]), now())
}

#[test]
fn ht_27_an_exhausted_rate_limit_hints_at_its_reset() {
    let spent = headers(&[("ratelimit", r#""default";r=0;t=30"#)]);
    assert_eq!(server_hint(&spent, now), Some(ServerHint::AtLeast(secs(30))));
    assert_eq!(limited(r#""burst";r=0;t=2, "daily";r=0;t=600, "other";r=5;t=900"#), Some(secs(600)));
    assert_eq!(limited(r#""default";r=1;t=30"#), None, "requests remain");
    assert_eq!(limited(r#""default";r=0"#), None, "it has no reset");
    assert_eq!(limited("limit=100, remaining=0, reset=30"), Some(secs(30)));
    assert_eq!(limited("limit=100, remaining=1, reset=30"), None);
    let both = headers(&[("ratelimit", r#""a";r=0;t=2"#), ("ratelimit", r#""b";r=0;t=3"#)]);
    assert_eq!(rate_limit(&both, now()), Some(secs(3)));
    let first = headers(&[("ratelimit", r#""default";r=0;t=30"#), ("retry-after", "2")]);
    assert_eq!(server_hint(&first, now), Some(ServerHint::AtLeast(secs(2))), "Retry-After takes precedence");
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
fn reset_headers_count_only_if_nothing_remains() {
    let pair = |remaining: &[(&str, &str)], reset: &str, prefix: &str| {
        let names = [format!("{prefix}ratelimit-remaining"), format!("{prefix}ratelimit-reset")];
        let mut pairs: Vec<_> = remaining.iter().map(|(_, value)| (names[0].as_str(), *value)).collect();
        pairs.push((&names[1], reset));
        rate_limit(&headers(&pairs), now())
    };
    assert_eq!(pair(&[("", "0")], "30", ""), Some(secs(30)));
    assert_eq!(pair(&[], "30", ""), Some(secs(30)));
    assert_eq!(pair(&[("", "1")], "30", ""), None);
    // GitHub sends a Unix time.
    assert_eq!(pair(&[("", "0")], "1795255260", "x-"), Some(secs(60)));
    assert_eq!(pair(&[("", "0")], "1795255140", "x-"), Some(secs(0)));
    assert_eq!(pair(&[("", "0")], "soon", "x-"), None);
}

#[test]
fn a_reservation_takes_precedence_over_all_other_hints() {
    let admission = Admission::per_second(10).burst(1).build(stagger::admission::Secret::new([1; 16])).unwrap();
    let at = Instant::from_nanos(1_000_000_000);
    assert_eq!(admission.try_admit(at), Admit::Now);
    let Admit::At(reserved) = admission.try_admit(at) else { panic!("a reservation is available") };
    let text = reserved.to_string();
    let single = headers(&[("stagger-reservation", &text), ("retry-after", "1")]);
    assert_eq!(reservation(&single), Some(reserved));
    assert_eq!(server_hint(&single, now), Some(ServerHint::Reserved(reserved.after)));
    let twice = headers(&[("stagger-reservation", &text), ("stagger-reservation", &text), ("retry-after", "1")]);
    assert_eq!(server_hint(&twice, now), Some(ServerHint::AtLeast(secs(1))));
}

proptest! {
    #[test]
    fn no_header_causes_a_panic(
        name in prop::sample::select(vec![
            "retry-after", "retry-after-ms", "x-amz-retry-after", "ratelimit", "ratelimit-reset", "x-ratelimit-reset",
            "date", "stagger-reservation",
        ]),
        value in prop::collection::vec(
            (0x20..=0xff_u8).prop_filter("not allowed in a header value", |byte| *byte != 0x7f),
            0..60,
        ),
        seconds in any::<u64>(),
    ) {
        let now = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH);
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "Sunday, 06-Nov-94 08:49:37 GMT".parse().unwrap());
        headers.append(name, HeaderValue::from_bytes(&value).unwrap());
        let _ = server_hint(&headers, || now);
    }

    #[test]
    fn every_date_round_trips(seconds in 0..253_402_300_800_u64, now in 0..253_402_300_800_u64) {
        let date = UNIX_EPOCH + secs(seconds);
        let text = httpdate::fmt_http_date(date);
        prop_assert_eq!(RetryAfter::parse(&text, UNIX_EPOCH + secs(now)), Some(RetryAfter::Date(date)));
    }

    // For dates within 49 years of the present.
    #[test]
    fn two_digit_years_get_the_right_century(
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
