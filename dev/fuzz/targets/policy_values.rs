//! Fuzz target: see [`stagger_fuzz::policy_values`].

#![no_main]

use stagger_fuzz::policy_values::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(&input));
