//! Any text is a policy or an error, and never a panic; what is a policy is printed as text that is the same policy.

use core::fmt::{Debug, Display};
use core::str::FromStr;

use stagger_core::{HintMode, Jitter, Policy, Ratio, text::ParseError};

/// Reads `text` as a policy, and as each of the words that have a grammar of their own.
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

/// Prints what `text` reads as, and reads that again.
fn round_trip<T: FromStr<Err = ParseError> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse::<T>().as_ref(), Ok(&value), "{text:?} is printed as {printed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: an error without a word"),
    }
}
