//! The decision, step by step: the order of its questions, what each asks, and what the guards see of it.

mod clock;
mod episodes;
mod hints;
mod limits;
mod order;
mod paused;
mod permits;
mod repeat;
mod spread;
mod ticks;
