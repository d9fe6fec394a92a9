//! Any text is a length of time, no limit, or an error; a length is printed as text that is the same length.

use core::time::Duration;

use stagger_core::text::{Compact, parse_duration};

/// A year less than the longest length.
const LONG: Duration = Duration::from_secs(291 * 365 * 86_400);

/// Reads `text` as a length of time.
pub fn check(text: &str) {
    match parse_duration(text) {
        Ok(Some(length)) => {
            let printed = Compact(length).to_string();
            assert_eq!(parse_duration(&printed), Ok(Some(length)), "{text:?} is printed as {printed:?}");
            for decimals in [0, 1, 2, 9, 30] {
                let rounded = format!("{:.decimals$}", Compact(length));
                let is_read = matches!(parse_duration(&rounded), Ok(Some(_)));
                // The longest of all can be rounded up to one that is not read any more.
                assert!(is_read || length > LONG, "{printed} is rounded to {rounded:?}");
            }
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: an error without a word"),
    }
}
