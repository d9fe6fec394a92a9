//! What the library promises, through its public face.

#[cfg(test)]
mod suite {
    mod cancel;
    mod clock;
    mod compile;
    mod dropping;
    mod errors;
    mod events;
    mod fairness;
    mod hints;
    mod judging;
    mod keys;
    mod limits;
    mod nested;
    mod order;
    mod parity;
    mod reconnecting;
    mod retrier;
    mod servers;
    mod size;
    mod skipping;
    mod sockets;
    mod spawn;
    mod support;
    mod ticks;
}
