//! The decision, step by step: the order of its steps, what each checks, and what the guards observe.

mod clock;
mod episodes;
mod exact_hints;
mod hints;
mod limits;
mod lists;
mod order;
mod paused;
mod permits;
mod seedless;
mod spread;
mod strategy;
mod transparent;
