//! The circuit breaker: its states, its rules, the rows of the field's table, a model that it is held to, threads.

mod faults;
mod model;
mod probes;
mod rows;
mod rules;
mod states;
mod support;
mod threads;
mod with_retry;
