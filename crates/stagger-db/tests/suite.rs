//! Tests of the public API.

#[cfg(test)]
mod suite {
    #[cfg(any(feature = "redis", feature = "sqlx"))]
    mod entry_points;
    #[cfg(feature = "redis")]
    mod redis;
    #[cfg(feature = "sqlx")]
    mod sqlx;
}
