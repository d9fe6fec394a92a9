//! Tests of leased budgets in simulations.

#[cfg(test)]
mod sim {
    mod leases;
}
