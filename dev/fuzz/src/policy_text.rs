//! Any text parses as a policy or as an error and never panics. A policy is displayed as text that parses as the same
//! policy.

use core::fmt::{Debug, Display};
use core::str::FromStr;

use stagger_core::{HintMode, Jitter, Policy, Ratio, text::ParseError};

/// Parses `text` as a policy, and as each of the values that have their own grammar.
pub fn check(text: &str) {
    round_trip::<Policy>(text);
    round_trip::<Jitter>(text);
    round_trip::<HintMode>(text);
    round_trip::<Ratio>(text);
    for key in ["base", "cap", "delays", "jitter", "max-attempts", "hint", "hint-spread", "multiplier", text] {
        match Policy::DEFAULT.to_builder().set(key, text) {
            Ok(builder) => drop(builder.build()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Parses `text`, displays the value and parses it again.
fn round_trip<T: FromStr<Err = ParseError> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse::<T>().as_ref(), Ok(&value), "{text:?} is displayed as {printed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: the error has no message"),
    }
}
