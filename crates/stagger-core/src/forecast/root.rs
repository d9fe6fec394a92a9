/// The square root of a number that is not negative: there is none in `core`.
pub(super) fn square_root(x: f64) -> f64 {
    // Half the exponent is within a few per cent of the root, and each of Newton's steps doubles the digits.
    let mut root = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
    for _ in 0..5 {
        root = (root + x / root) / 2.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_squared_is_its_number() {
        for x in [1.0, 2.0, 3.0, 4.0, 1e-9, 0.7, 1e18, 3.4e38, 1.000_000_1, f64::MAX] {
            let root = square_root(x);
            assert!((root * (root / x) - 1.0).abs() < 1e-15, "{x}: {root}");
        }
        assert!(square_root(0.0) < 1e-150);
    }
}
