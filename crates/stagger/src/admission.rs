//! Server-side admission control: admits clients at the rate the server can take, and gives the others a reserved time
//! to return.

use core::hash::BuildHasher as _;
use std::hash::RandomState;

pub use stagger_core::admission::{
    Admission, AdmissionBuilder, AdmissionError, AdmissionSnapshot, Admit, Reservation, ReservationToken, Secret,
};

use crate::time::entropy::seed;

/// Draws the secret of an [`Admission`] from the operating system's randomness, by way of the keys of the standard
/// library's hash maps. Each call returns another one.
///
/// ```
/// use stagger::admission::{Admission, random_secret};
///
/// let admission = Admission::per_second(500).build(random_secret())?;
/// # Ok::<(), stagger::admission::AdmissionError>(())
/// ```
#[must_use]
pub fn random_secret() -> Secret {
    let keys = RandomState::new();
    // The seed differs in copies of one process, which share the state of the keys.
    let copy = seed().get();
    let [low, high] = [0_u64, 1].map(|half| u128::from(keys.hash_one((half, copy))));
    Secret::new((high << 64 | low).to_le_bytes())
}
