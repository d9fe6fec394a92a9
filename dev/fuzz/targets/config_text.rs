//! Fuzz target: see [`stagger_fuzz::config_text`].

#![no_main]

use stagger_fuzz::config_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
