//! Configurations of other systems: whatever the text, it is read or refused, and what is read stands in the text.

use stagger_config::{Format, Origin, Position, read};
use stagger_http::service_config::ServiceConfig;

/// Reads a text as every format, and as none, and parses it as a service config.
pub fn check(text: &str) {
    match text.parse::<ServiceConfig>() {
        Ok(config) => assert_eq!(config.to_string().parse().as_ref(), Ok(&config)),
        Err(error) => assert!(error.problems().count() > 0 && error.to_string().len() < 65_536, "{error:?}"),
    }
    // YAML ends a line at a carriage return as well.
    let last = text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 2;
    let formats = Format::all().map(Some).chain([None]);
    for format in formats {
        match read(text, format) {
            Ok(entries) => {
                for entry in entries {
                    assert!(entry.span.start <= entry.span.end && entry.span.start.line <= last, "{entry:?}");
                    let attempts = entry.settings.attempts.map(|attempts| attempts.origin);
                    if let Some(Origin::Stated(span)) = attempts {
                        assert!(Position::START <= span.start && span.start.line <= last, "{entry:?}");
                    }
                    assert!(entry.remarks.is_sorted_by_key(|remark| remark.span), "{entry:?}");
                }
            }
            Err(error) => assert!(error.position().line <= last && !error.to_string().is_empty(), "{error:?}"),
        }
    }
}
