//! Any text parses as a duration, as no limit, or as an error. A duration is displayed as text that parses as the same
//! duration.

use core::time::Duration;

use stagger_core::text::{Compact, parse_duration};

/// A year less than the longest duration.
const LONG: Duration = Duration::from_secs(291 * 365 * 86_400);

/// Parses `text` as a duration.
pub fn check(text: &str) {
    match parse_duration(text) {
        Ok(Some(length)) => {
            let printed = Compact(length).to_string();
            assert_eq!(parse_duration(&printed), Ok(Some(length)), "{text:?} is displayed as {printed:?}");
            for decimals in [0, 1, 2, 9, 30] {
                let rounded = format!("{:.decimals$}", Compact(length));
                let is_read = matches!(parse_duration(&rounded), Ok(Some(_)));
                // The longest duration can be rounded up to one that no longer parses.
                assert!(is_read || length > LONG, "{printed} is rounded to {rounded:?}, which does not parse");
            }
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: the error has no message"),
    }
}
