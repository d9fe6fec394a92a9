//! What this crate claims.

#[cfg(test)]
mod suite {
    mod advice;
    mod judging;
    mod replay;
    mod server;
    mod servers;
    mod telling;
    mod tower;
}
