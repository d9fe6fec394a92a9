//! Fuzz target: see [`stagger_fuzz::event_stream`].

#![no_main]

use stagger_fuzz::event_stream::check;

libfuzzer_sys::fuzz_target!(|input: (u8, Vec<u8>, Vec<u8>)| check(input));
