//! The laws of the core, tested through its public interface: conformance with the field, the settled meanings, the
//! order of decisions, the guards, the reconnect machine, randomness, forecasts and text.

// Loom's atomics have no place outside of a model.
#![cfg(not(loom))]

#[cfg(test)]
mod laws {
    mod admission;
    mod breaker;
    mod budgets;
    mod conformance;
    mod decision;
    mod forecast;
    mod hedging;
    mod meanings;
    mod pacer;
    mod profiles;
    mod quiet;
    mod random;
    mod reconnect;
    mod support;
    mod text;
}
