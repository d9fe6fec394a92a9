//! Fuzz target: see [`stagger_fuzz::duration_text`].

#![no_main]

use stagger_fuzz::duration_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
