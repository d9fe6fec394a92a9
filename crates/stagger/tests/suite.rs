//! Tests of the public API.

#[cfg(test)]
mod suite {
    mod batch;
    mod budgets;
    mod cancel;
    mod classification;
    mod clock;
    mod conformance;
    mod control;
    #[cfg(all(feature = "anyhow", feature = "eyre"))]
    mod conversions;
    mod dropping;
    mod entry_points;
    mod errors;
    mod events;
    mod guards;
    mod hedging;
    mod hints;
    mod keyed;
    mod keys;
    mod late_target;
    mod leaks;
    mod limits;
    mod nested;
    #[cfg(all(feature = "metrics", feature = "tracing"))]
    mod observe;
    mod order;
    mod pacer;
    mod parity;
    mod pauses;
    mod poll_retry;
    mod queue;
    mod quiet;
    mod quiet_elsewhere;
    mod reconnect;
    mod retrier;
    #[cfg(unix)]
    mod servers;
    mod size;
    #[cfg(unix)]
    mod sockets;
    mod spawn;
    mod support;
    mod ticker;
    mod timers;
    mod wrappings;
}
