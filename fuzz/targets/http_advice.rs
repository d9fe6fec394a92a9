//! Fuzz target: see [`stagger_fuzz::http_advice`].

#![no_main]

use stagger_fuzz::http_advice::check;

libfuzzer_sys::fuzz_target!(|input: (u64, Vec<(u8, Vec<u8>)>)| check(input));
