//! The rules for database clients, against real servers.

#[cfg(test)]
mod suite {
    mod mariadb;
    mod postgres;
    mod recipes;
    mod redis;
    mod sqlite;
    mod stores;
    mod tonic;
}
