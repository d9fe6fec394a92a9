//! Fuzz target: see [`stagger_fuzz::resume`].

#![no_main]

use stagger_fuzz::resume::{Head, check};

libfuzzer_sys::fuzz_target!(|input: (Vec<(u8, Vec<u8>)>, Head, Vec<(Head, Vec<u8>, bool)>)| check(input));
