//! A reserved time, and the sealed token that proves it.

use core::fmt;
use core::hint::black_box;
use core::str::FromStr;
use core::time::Duration;

use crate::text::{ParseError, Problem};

/// A time at which a rejected client may return, reserved for it alone. Complete: it is what the text form holds.
///
/// As text, for a header: the milliseconds to wait, rounded up, and the token to present: `1520;token=` and 32
/// hexadecimal digits. The client treats the wait as a [`ServerHint::Reserved`](crate::ServerHint::Reserved).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// How long to wait.
    pub after: Duration,
    /// The token to present on return.
    pub token: ReservationToken,
}

/// The proof of a reservation, which the client presents when it returns.
///
/// It is valid once. It is sealed by SipHash-2-4 with the server's [`Secret`], so a client cannot make one up. It
/// proves nothing about who shows it: any client that has seen it can redeem it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservationToken {
    position: u64,
    seal: u64,
}

impl ReservationToken {
    /// Seals a position, which only an admission with the same secret accepts. For an
    /// [`AdmissionControl`](super::AdmissionControl) of your own; what a position means is its matter.
    #[inline]
    #[must_use]
    pub fn seal(position: u64, secret: Secret) -> Self {
        Self { position, seal: secret.seal(position) }
    }

    /// Returns the reserved position, if the token was sealed with this secret.
    #[inline]
    #[must_use]
    pub fn position(&self, secret: Secret) -> Option<u64> {
        if secret.verifies(self.position, self.seal) { Some(self.position) } else { None }
    }
}

impl fmt::Display for ReservationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.position, self.seal)
    }
}

impl FromStr for ReservationToken {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(Problem::Reservation, text);
        // `from_str_radix` would also accept a sign.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let (position, seal) = text.split_at(16);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| error());
        Ok(Self { position: number(position)?, seal: number(seal)? })
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};token={}", self.after.as_nanos().div_ceil(1_000_000), self.token)
    }
}

impl FromStr for Reservation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(Problem::Reservation, text);
        let (millis, token) = text.split_once(';').ok_or_else(error)?;
        let token = token.trim_start().strip_prefix("token=").ok_or_else(error)?;
        let millis = millis.trim_end();
        if millis.is_empty() || !millis.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let millis = millis.parse().map_err(|_| error())?;
        Ok(Self { after: Duration::from_millis(millis), token: token.trim_end().parse()? })
    }
}

/// The 128-bit key that seals the reservations of one [`Admission`](super::Admission).
///
/// Draw it at random when the server starts, with `stagger::admission::random_secret()` or another source of
/// cryptographic quality: a client that knows or guesses the secret can make up reservations. Do not keep it beyond a
/// restart and do not share it between servers: each of them has its own queue and its own clock, and a reservation of
/// one is worth nothing to another. Only servers that share one queue (`SharedAdmission` of `stagger-redis`) have the
/// same secret.
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

/// Returns the SipHash-2-4 of `message` under the 128-bit key `[k0, k1]`.
///
/// Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. Differs from it in:
/// nothing.
#[inline]
pub(super) fn siphash_2_4([k0, k1]: [u64; 2], message: &[u8]) -> u64 {
    let mut state = SipState([
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ]);
    let mut rest = message;
    while let Some((word, after)) = rest.split_first_chunk() {
        state.absorb(u64::from_le_bytes(*word));
        rest = after;
    }
    // The last word holds the bytes that are left, and the length modulo 256 in its highest byte.
    let last = (message.len() as u64) << 56;
    state.absorb(rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)) | last);
    state.0[2] ^= 0xff;
    for _ in 0..4 {
        state.round();
    }
    let [v0, v1, v2, v3] = state.0;
    v0 ^ v1 ^ v2 ^ v3
}

struct SipState([u64; 4]);

impl SipState {
    #[inline]
    const fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    #[inline]
    const fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.0;
        v0 = v0.wrapping_add(v1);
        v1 = v1.rotate_left(13) ^ v0;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v3);
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.wrapping_add(v3);
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.wrapping_add(v1);
        v1 = v1.rotate_left(17) ^ v2;
        v2 = v2.rotate_left(32);
        self.0 = [v0, v1, v2, v3];
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

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

    /// The vectors of the reference implementation (`vectors_sip64`): the hashes of 0, 1, 2, … 63 bytes 00, 01, 02, …
    /// under the key 00 … 0f, as the bytes are written there.
    const VECTORS: [u64; 64] = [
        0x310e_0edd_47db_6f72,
        0xfd67_dc93_c539_f874,
        0x5a4f_a9d9_0980_6c0d,
        0x2d7e_fbd7_9666_6785,
        0xb787_7127_e094_27cf,
        0x8da6_99cd_6455_7618,
        0xcee3_fe58_6e46_c9cb,
        0x37d1_018b_f500_02ab,
        0x6224_939a_79f5_f593,
        0xb0e4_a90b_df82_009e,
        0xf3b9_dd94_c5bb_5d7a,
        0xa7ad_6b22_462f_b3f4,
        0xfbe5_0e86_bc8f_1e75,
        0x903d_84c0_2756_ea14,
        0xeef2_7a8e_90ca_23f7,
        0xe545_be49_61ca_29a1,
        0xdb9b_c257_7fcc_2a3f,
        0x9447_be2c_f5e9_9a69,
        0x9cd3_8d96_f0b3_c14b,
        0xbd61_79a7_1dc9_6dbb,
        0x98ee_a21a_f25c_d6be,
        0xc767_3b2e_b0cb_f2d0,
        0x883e_a3e3_9567_5393,
        0xc8ce_5ccd_8c03_0ca8,
        0x94af_49f6_c650_adb8,
        0xeab8_858a_de92_e1bc,
        0xf315_bb5b_b835_d817,
        0xadcf_6b07_6361_2e2f,
        0xa5c9_1da7_acaa_4dde,
        0x7165_9587_6650_a2a6,
        0x28ef_495c_53a3_87ad,
        0x42c3_41d8_fa92_d832,
        0xce7c_f272_2f51_2771,
        0xe378_59f9_4623_f3a7,
        0x3812_05bb_1ab0_e012,
        0xae97_a10f_d434_e015,
        0xb4a3_1508_beff_4d31,
        0x8139_6229_f090_7902,
        0x4d0c_f49e_e5d4_dcca,
        0x5c73_336a_76d8_bf9a,
        0xd0a7_0453_6ba9_3e0e,
        0x9259_58fc_d642_0cad,
        0xa915_c29b_c806_7318,
        0x952b_79f3_bc0a_a6d4,
        0xf21d_f2e4_1d45_35f9,
        0x8757_7519_048f_53a9,
        0x10a5_6cf5_dfcd_9adb,
        0xeb75_095c_cd98_6cd0,
        0x51a9_cb9e_cba3_12e6,
        0x96af_adfc_2ce6_66c7,
        0x72fe_5297_5a43_64ee,
        0x5a16_45b2_76d5_92a1,
        0xb274_cb8e_bf87_870a,
        0x6f9b_b420_3de7_b381,
        0xeaec_b2a3_0b22_a87f,
        0x9924_a43c_c131_5724,
        0xbd83_8d3a_afbf_8db7,
        0x0b1a_2a32_65d5_1aea,
        0x1350_79a3_231c_e660,
        0x932b_2846_e4d7_0666,
        0xe191_5f5c_b1ec_a46c,
        0xf325_965c_a16d_629f,
        0x575f_f28e_6038_1be5,
        0x7245_06eb_4c32_8a95,
    ];

    #[test]
    fn hashes_are_those_of_the_reference_implementation() {
        let bytes: Vec<u8> = (0..64).collect();
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        for (length, want) in VECTORS.into_iter().enumerate() {
            let got = siphash_2_4(key, &bytes[..length]);
            assert_eq!(got, want.swap_bytes(), "{length} bytes");
        }
    }

    /// An implementation of its own, in the standard library.
    #[test]
    #[expect(deprecated, reason = "its successor is not SipHash-2-4")]
    fn hashes_are_those_of_the_standard_library() {
        use core::hash::{Hasher as _, SipHasher};
        for seed in 0..1_000_u64 {
            let draw = |n| crate::Seed::new(seed).draw(n);
            let mut hasher = SipHasher::new_with_keys(draw(0), draw(1));
            hasher.write(&draw(2).to_le_bytes());
            assert_eq!(siphash_2_4([draw(0), draw(1)], &draw(2).to_le_bytes()), hasher.finish(), "seed {seed}");
        }
    }
}
