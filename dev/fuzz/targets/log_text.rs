//! Fuzz target: see [`stagger_fuzz::log_text`].

#![no_main]

use stagger_fuzz::log_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
