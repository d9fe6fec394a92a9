//! The circuit breaker: states, rules, conformance rows, comparison with a model, concurrent threads.

mod conformance;
mod model;
mod probes;
mod rules;
mod states;
mod support;
mod threads;
mod with_retry;
