//! Fuzz target: see [`stagger_fuzz::policy_text`].

#![no_main]

use stagger_fuzz::policy_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
