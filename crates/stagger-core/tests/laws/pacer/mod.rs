//! The pacer: its states, its bounds for every sequence of calls, its turns beside those of a quiet period, and the
//! trace of one run.

mod bounds;
mod states;
mod turns;
