//! Fuzz target: see [`stagger_fuzz::http_hints`].

#![no_main]

use stagger_fuzz::http_hints::check;

libfuzzer_sys::fuzz_target!(|input: (u64, Vec<(u8, Vec<u8>)>)| check(input));
