//! Tests of the simulator through its public API: published tables, and properties of all scenarios.

#[cfg(test)]
mod sim {
    mod fluid;
    mod hostile;
    mod occ;
    mod outage;
    mod reconnect;
    mod reference;
    mod sweep;
    mod system;
    mod testing;
}
