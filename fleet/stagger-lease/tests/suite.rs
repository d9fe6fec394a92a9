//! Fleets in virtual time, through the public interface.

#[cfg(test)]
mod suite {
    mod admission;
    mod window;
}
