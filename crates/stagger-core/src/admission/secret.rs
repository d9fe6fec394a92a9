use core::fmt;
use core::hint::black_box;

use super::siphash::siphash_2_4;

/// The 128-bit key that seals the reservations of one [`Admission`](super::Admission).
///
/// Draw it at random when the server starts, with `stagger::admission::random_secret()` or another source of
/// cryptographic quality: a client that knows or guesses the secret can make up reservations. Do not keep it beyond a
/// restart and do not share it between servers: each of them has its own queue and its own clock, and a reservation of
/// one is worth nothing to another. Only servers that share one queue (`SharedAdmission` of `stagger-redis`) have the same secret.
///
/// Its `Debug` form does not show the key.
#[derive(Clone, Copy)]
pub struct Secret([u64; 2]);

impl Secret {
    /// Creates a secret from 16 bytes. A fixed value, other than zero, makes tests and simulations reproducible.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(bytes);
        Self([key as u64, (key >> 64) as u64])
    }

    /// Returns whether all bytes are zero: anyone could make up reservations.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    /// Returns the seal of a slot's position.
    #[inline]
    pub(super) fn seal(self, position: u64) -> u64 {
        siphash_2_4(self.0, &position.to_le_bytes())
    }

    /// Returns whether `seal` is that of `position`, in a time that does not depend on how many of its bits are right.
    #[inline]
    pub(super) fn verifies(self, position: u64, seal: u64) -> bool {
        let wrong = black_box(self.seal(position) ^ seal);
        // The highest bit is set unless all bits are right.
        black_box((wrong | wrong.wrapping_neg()) >> 63) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_with_any_wrong_bit_is_rejected() {
        let secret = Secret::new([9; 16]);
        let seal = secret.seal(1_000);
        assert!(secret.verifies(1_000, seal));
        for bit in 0..64 {
            assert!(!secret.verifies(1_000, seal ^ 1 << bit), "bit {bit} of the seal");
            assert!(!secret.verifies(1_000 ^ 1 << bit, seal), "bit {bit} of the position");
        }
    }

    #[test]
    fn each_bit_of_a_secret_changes_the_seal() {
        let seal = Secret::new([9; 16]).seal(1_000);
        for bit in 0..128 {
            let other = Secret::new((u128::from_le_bytes([9; 16]) ^ 1 << bit).to_le_bytes());
            assert_ne!(other.seal(1_000), seal, "bit {bit}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new([9; 16])), "Secret(..)");
    }
}
