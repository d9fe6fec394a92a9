//! Loom models of the lock-free parts, checked under every interleaving of their threads: `cargo xtask ci --only loom`.

#![cfg(loom)]

mod loom {
    mod admission;
    mod breaker;
    mod budgets;
    mod controlled;
    mod keyed;
    mod latencies;
    mod ledger;
    mod pacer;
    mod quiet;
    mod support;
}
