//! Fuzz target: see [`stagger_fuzz::trace_text`].

#![no_main]

use stagger_fuzz::trace_text::check;

libfuzzer_sys::fuzz_target!(|text: &[u8]| check(text));
