//! Fuzz target: see [`stagger_fuzz::decide`].

#![no_main]

use stagger_fuzz::decide::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(&input));
