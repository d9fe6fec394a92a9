//! The quiet period: its states, its bounds for every sequence of calls, and storms of calls in virtual time.

mod bounds;
mod learned;
mod scenarios;
mod simulation;
mod states;
mod turns;
