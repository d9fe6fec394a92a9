//! Fuzz target: see [`stagger_fuzz::appointment_text`].

#![no_main]

use stagger_fuzz::appointment_text::check;

libfuzzer_sys::fuzz_target!(|input: (&str, u32)| check(input));
