//! What the library promises, through its public face.

#[path = "suite/spawn.rs"]
mod spawn;
