//! What this crate claims.

#[cfg(test)]
mod suite {
    #[cfg(feature = "redis")]
    mod redis;
    #[cfg(feature = "sqlx")]
    mod sqlx;
}
