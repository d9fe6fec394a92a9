//! Randomness, three ways: frozen vectors for a seed, bounds for all seeds, distributions for many.

mod bounds;
mod decorrelated;
mod distribution;
mod golden;
