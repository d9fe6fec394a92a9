//! Functions that `core` does not have: square roots for forecasts, `2^x` and `tanh` for Polly's curve. They consist of
//! sums and products only, so the results are the same on every platform.

/// Returns the square root of a nonnegative number.
pub(crate) fn square_root(x: f64) -> f64 {
    // Half the exponent is within a few percent of the root, and each of Newton's steps doubles the digits.
    let mut root = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
    for _ in 0..5 {
        root = (root + x / root) / 2.0;
    }
    root
}

/// Returns `2^x`, to the last few digits; infinite above 1023, zero below −1022.
pub(crate) fn exp2(x: f64) -> f64 {
    if x > 1023.999 {
        return f64::INFINITY;
    }
    if x < -1022.0 {
        return 0.0;
    }
    // The whole part is the exponent; the rest lies between −1 and 1, where the series is short.
    let whole = x as i64;
    let rest = (x - whole as f64) * core::f64::consts::LN_2;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..=18 {
        term *= rest / f64::from(k);
        sum += term;
    }
    // In two steps, because the sum may be below 1 and the whole exponent out of range for a number.
    let half = whole / 2;
    sum * power_of_two(half) * power_of_two(whole - half)
}

/// Returns `2^exponent`, for exponents from −1022 to 1023.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Returns the hyperbolic tangent of a nonnegative number.
pub(crate) fn tanh(x: f64) -> f64 {
    // e^(−2x), which cannot overflow, as e^(2x) would.
    let e = exp2(-2.0 * core::f64::consts::LOG2_E * x);
    (1.0 - e) / (1.0 + e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_of_a_root_is_its_argument() {
        for x in [1.0, 2.0, 3.0, 4.0, 1e-9, 0.7, 1e18, 3.4e38, 1.000_000_1, f64::MAX] {
            let root = square_root(x);
            assert!((root * (root / x) - 1.0).abs() < 1e-15, "{x}: {root}");
        }
        assert!(square_root(0.0) < 1e-150);
    }

    #[test]
    fn powers_of_two_match_the_standard_library() {
        for x in (-10_220..10_239).map(|i| f64::from(i) / 10.0) {
            let (got, want) = (exp2(x), x.exp2());
            assert!((got / want - 1.0).abs() < 1e-14, "2^{x} is {want}, not {got}");
        }
        assert_eq!((exp2(1024.0), exp2(1e300)), (f64::INFINITY, f64::INFINITY));
        assert!(exp2(-2000.0) < f64::MIN_POSITIVE);
    }

    #[test]
    fn the_hyperbolic_tangent_matches_the_standard_library() {
        assert!(tanh(0.0).abs() < 1e-300);
        for x in (1..4_000).map(|i| f64::from(i) / 100.0) {
            assert!((tanh(x) / x.tanh() - 1.0).abs() < 1e-13, "{x}");
        }
    }
}
