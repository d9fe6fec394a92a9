//! Tests of the public API.

#[cfg(test)]
mod suite {
    #[cfg(feature = "redis")]
    mod redis;
    #[cfg(feature = "sqlx")]
    mod sqlx;
}
