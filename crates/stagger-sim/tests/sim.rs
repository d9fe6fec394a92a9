//! The simulator from outside: the published tables, and what must hold for every scenario.

#[cfg(test)]
mod sim {
    mod fluid;
    mod hostile;
    mod occ;
    mod outage;
    mod plain;
    mod reconnect;
    mod sweep;
    mod testing;
}
