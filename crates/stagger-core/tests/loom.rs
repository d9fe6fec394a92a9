//! Models of the lock-free parts, under every interleaving of their threads: `cargo xtask ci --only loom`.

#![cfg(loom)]

mod loom {
    mod breaker;
    mod budgets;
}
