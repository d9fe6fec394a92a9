//! Durations as text.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::text::{Compact, parse_duration};

use crate::laws::support::{cases, length, secs};

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn the_compact_form_round_trips_to_the_nanosecond(length in length()) {
        prop_assert_eq!(parse_duration(&Compact(length).to_string()), Ok(Some(length)));
    }

    #[test]
    fn units_in_one_text_add_up(
        days in 0..1000_u64, hours in 0..50_u64, minutes in 0..100_u64, seconds in 0..100_u64,
        nanos in 0..2_000_000_000_u64,
    ) {
        let text = format!("{days}d {hours}h{minutes}m{seconds}s{nanos}ns");
        let want = secs(days * 86_400 + hours * 3600 + minutes * 60 + seconds) + Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&text), Ok(Some(want)));
    }

    #[test]
    fn decimal_fractions_are_exact(whole in 0..100_000_u64, part in 0..1_000_000_000_u64) {
        let want = Duration::new(whole, part as u32);
        prop_assert_eq!(parse_duration(&format!("{whole}.{part:09}")), Ok(Some(want)));
        prop_assert_eq!(parse_duration(&format!("{whole}.{part:09}000s")), Ok(Some(want)));
        let finer = format!("{whole}.{part:09}5s");
        prop_assert!(parse_duration(&finer).is_err());
    }

    /// The error is at most half of the last digit shown, in the unit shown.
    #[test]
    fn a_precision_rounds_to_nearest(nanos in 0..10_000_000_000_000_u64, decimals in 0..6_usize) {
        let text = format!("{:.*}", decimals, Compact(Duration::from_nanos(nanos)));
        let read = parse_duration(&text).unwrap().unwrap().as_nanos() as u64;
        let unit: u64 = match nanos {
            0..1_000 => 1,
            1_000..1_000_000 => 1_000,
            1_000_000..1_000_000_000 => 1_000_000,
            _ => 1_000_000_000,
        };
        let place = (unit / 10_u64.pow(decimals as u32)).max(1);
        // A value that carries into the next unit is rounded again there: 999.96 ms is 1 s.
        let again = if read >= 1_000 * unit { unit } else { 0 };
        prop_assert!(read.abs_diff(nanos) <= place / 2 + again, "{nanos}: {text}");
        prop_assert!(read % place == 0, "{nanos}: {text}");
    }
}

#[test]
fn units_are_parsed_in_their_usual_spellings() {
    let table: [(&[&str], u64); 7] = [
        (&["ns", "nsec", "nanos"], 1),
        (&["us", "µs", "μs", "usec", "micros"], 1_000),
        (&["ms", "msec", "millis"], 1_000_000),
        (&["s", "sec", "secs", "second", "seconds", ""], 1_000_000_000),
        (&["m", "min", "mins", "minute", "minutes"], 60_000_000_000),
        (&["h", "hr", "hrs", "hour", "hours"], 3_600_000_000_000),
        (&["d", "day", "days"], 86_400_000_000_000),
    ];
    for (spellings, nanos) in table {
        for unit in spellings {
            let want = Ok(Some(Duration::from_nanos(3 * nanos)));
            assert_eq!(parse_duration(&format!("3{unit}")), want, "{unit}");
            assert_eq!(parse_duration(&format!("3 {unit}")), want, "{unit}");
        }
    }
    for word in ["inf", "none", "infinite", "never", " inf "] {
        assert_eq!(parse_duration(word), Ok(None), "{word}");
    }
}

#[test]
fn too_long_durations_have_a_different_error_than_invalid() {
    for (text, want) in [
        ("106752d", "longer than 292 years"),
        ("9223372036.854775808s", "longer than 292 years"),
        ("106751d 23h47m16.854775808s", "longer than 292 years"),
        ("18446744073709551616ns", "longer than 292 years"),
        ("99999999999999999999999999h", "longer than 292 years"),
        ("0.00000000000000000000001s", "finer than a nanosecond"),
        ("1.99999999999999999999s", "finer than a nanosecond"),
        ("1.5ns", "finer than a nanosecond"),
        ("1e3", "has a unit that is not known"),
        ("1.2.3s", "not a length of time"),
        (".s", "not a length of time"),
        ("5 5", "has a number without a unit"),
    ] {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
    assert_eq!(parse_duration("9223372036.854775807s"), Ok(Some(Duration::from_nanos(i64::MAX as u64))));
    assert_eq!(parse_duration("106751d23h47m16.854775807s"), Ok(Some(Duration::from_nanos(i64::MAX as u64))));
}

#[test]
fn durations_above_the_maximum_print_as_the_maximum() {
    assert_eq!(Compact(Duration::MAX).to_string(), "106751d23h47m16.854775807s");
    assert_eq!(format!("{:.3}", Compact(Duration::MAX)), "106751d23h47m16.855s");
}
