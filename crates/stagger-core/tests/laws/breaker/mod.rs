//! The circuit breaker: states, rules, conformance rows, comparison with a model, concurrent threads.

mod conformance;
mod evidence;
mod model;
mod probes;
mod problems;
mod rules;
mod states;
mod support;
mod threads;
mod with_retry;
