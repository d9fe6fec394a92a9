//! The laws of the core, tested through its public interface: conformance with the field, the settled meanings, the
//! order of decisions, the reconnect machine, randomness, forecasts and text.

#[cfg(test)]
mod laws {
    mod admission;
    mod conformance;
    mod decision;
    mod forecast;
    mod hedging;
    mod meanings;
    mod profiles;
    mod random;
    mod reconnect;
    mod support;
    mod text;
}
