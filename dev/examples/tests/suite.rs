//! The rules for database clients, against real servers; and a guard of a user, in the simulator.

#[cfg(test)]
mod suite {
    mod bulkhead;
    mod mariadb;
    mod postgres;
    mod recipes;
    mod redis;
    mod sqlite;
    mod stores;
    mod tonic;
}
