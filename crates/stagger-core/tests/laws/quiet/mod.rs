//! The quiet period: its states, its bounds for every sequence of calls, and storms of calls in virtual time.

mod learned;
mod simulation;
mod states;
mod turns;
