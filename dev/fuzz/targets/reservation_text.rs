//! Fuzz target: see [`stagger_fuzz::reservation_text`].

#![no_main]

use stagger_fuzz::reservation_text::check;

libfuzzer_sys::fuzz_target!(|input: (&str, u32)| check(input));
