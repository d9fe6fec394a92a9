//! Whether what stagger says agrees with what it computes: statements of the linter, the advisor, the profiles and the
//! simulator, each tried in circumstances drawn at random.
//!
//! The tests try each law in a few hundred fixed cases; `cargo xtask truth --cases N` tries it in as many as you like.
//! A case is a function of its seed, so a broken one can be repeated: `cargo xtask truth --cases 1 --seed S LAW`.

#![forbid(unsafe_code)]

pub mod circumstances;
pub mod criterion;
pub mod draws;

pub mod grid;
pub mod law;
pub mod laws;
pub mod policies;
