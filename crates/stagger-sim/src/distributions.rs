//! Distributions computed from random bits with additions, multiplications and square roots only, so that results are
//! identical on every platform.

/// Returns the standard normal deviate for 64 random bits: the quantile at the fraction that they represent.
///
/// Source: M. Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988); good to 16 digits.
#[inline]
pub(crate) fn normal(bits: u64) -> f64 {
    let unit_interval = unit_interval(bits);
    let q = unit_interval - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * rational(&CENTRAL, r);
    }
    let r = (-ln(unit_interval.min(1.0 - unit_interval))).sqrt();
    let far = if r <= 5.0 { rational(&INTERMEDIATE, r - 1.6) } else { rational(&TAIL, r - 5.0) };
    if q < 0.0 { -far } else { far }
}

/// Returns the exponential deviate with mean 1 for 64 random bits.
#[inline]
pub(crate) fn exponential(bits: u64) -> f64 {
    -ln(unit_interval(bits))
}

/// Returns a gamma deviate of this shape, above 0, with mean 1, from as many random bits as it takes.
///
/// Source: G. Marsaglia and W. W. Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (2000), with
/// their step for shapes below 1.
pub(crate) fn gamma(shape: f64, mut bits: impl FnMut() -> u64) -> f64 {
    let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let drawn = loop {
        let x = normal(bits());
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if -exponential(bits()) < 0.5 * x * x + d - d * v + d * ln(v) {
            break d * v;
        }
    };
    let boost = if shape < 1.0 { exp(-exponential(bits()) / shape) } else { 1.0 };
    drawn * boost / shape
}

/// Returns the exponential of a number that is not above 0.
fn exp(x: f64) -> f64 {
    let halvings = (-x / core::f64::consts::LN_2).round();
    if halvings >= 1_022.0 {
        return 0.0;
    }
    let rest = x + halvings * core::f64::consts::LN_2;
    let sum = (1..18).rev().fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    sum * f64::from_bits((1_023 - halvings as u64) << 52)
}

/// Returns the fraction in (0, 1) for 64 random bits: the middle of one of 2^52 intervals, so it is never 0 or 1.
pub(crate) fn unit_interval(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Returns the natural logarithm of a normal number above 0.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1_023 << 52);
    // Not a branch: it would be mispredicted four times of ten.
    let is_large = mantissa > core::f64::consts::SQRT_2;
    let exponent = (bits >> 52) as i64 - 1_023 + i64::from(is_large);
    let mantissa = mantissa * [1.0, 0.5][usize::from(is_large)];
    // ln m = 2 artanh z, whose series converges within eleven terms for |z| < 0.172.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let sum = (0..11).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * z * sum
}

/// Evaluates the quotient of two polynomials, whose coefficients are given from the highest power down.
fn rational([above, below]: &[[f64; 8]; 2], r: f64) -> f64 {
    let at = |coefficients: &[f64; 8]| coefficients.iter().fold(0.0, |sum, coefficient| sum * r + coefficient);
    at(above) / at(below)
}

const CENTRAL: [[f64; 8]; 2] = [
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
];

const INTERMEDIATE: [[f64; 8]; 2] = [
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

const TAIL: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_049e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use stagger_core::Seed;

    use super::*;

    fn at(unit_interval: f64) -> f64 {
        normal((unit_interval * 2_f64.powi(64)) as u64)
    }

    #[test]
    fn normal_quantiles_match_published_tables() {
        for (unit_interval, want) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.95, 1.644_853_626_951_472_7),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_6),
            (0.001, -3.090_232_306_167_813_6),
            (1e-9, -5.997_807_015_007_686),
            (1e-13, -7.348_796_102_818_6),
        ] {
            // With 53 bits, a tail of 1e-13 has only ten significant bits.
            let slack = if unit_interval < 1e-8 { 1e-4 } else { 1e-9 };
            assert!((at(unit_interval) - want).abs() < slack, "{unit_interval}: {} is not {want}", at(unit_interval));
        }
    }

    #[test]
    fn extreme_deviates_are_finite() {
        assert!(exponential(0).is_finite() && exponential(u64::MAX) >= 0.0);
        assert!(normal(0) < -8.0 && normal(0).is_finite(), "{}", normal(0));
        assert!(normal(u64::MAX) > 8.0 && normal(u64::MAX).is_finite());
    }

    #[test]
    fn deviates_have_their_mean_and_mean_square() {
        let count = 100_000;
        let normal: (fn(u64) -> f64, _, _, _) = (normal, 0.0, 1.0, 0.023);
        // Five standard errors: 1/√n for the mean, and for the square √2/√n or √20/√n.
        for (deviate, mean, square, slack) in [normal, (exponential, 1.0, 2.0, 0.071)] {
            let draws: Vec<_> = (0..count).map(|n| deviate(Seed::new(1).draw(n))).collect();
            let got_mean = draws.iter().sum::<f64>() / count as f64;
            let got_square = draws.iter().map(|x| x * x).sum::<f64>() / count as f64;
            assert!((got_mean - mean).abs() < 0.016 && (got_square - square).abs() < slack, "{got_mean} {got_square}");
        }
    }

    /// Mean 1, and a variance of 1 / shape, within five standard errors.
    #[test]
    fn gamma_deviates_have_their_mean_and_variance() {
        let count = 100_000;
        for shape in [0.1, 0.5, 1.0, 4.0, 100.0] {
            let mut drawn = 0;
            let draws: Vec<_> = (0..count)
                .map(|_| {
                    gamma(shape, || {
                        drawn += 1;
                        Seed::new(2).draw(drawn)
                    })
                })
                .collect();
            let mean = draws.iter().sum::<f64>() / f64::from(count);
            let variance = draws.iter().map(|x| (x - 1.0).powi(2)).sum::<f64>() / f64::from(count);
            let error = (1.0 / shape / f64::from(count)).sqrt();
            // The fourth moment of a gamma deviate is 3 + 6 / shape in squares of the variance.
            let spread = ((2.0 + 6.0 / shape) / f64::from(count)).sqrt();
            assert!((mean - 1.0).abs() < 5.0 * error, "{shape}: {mean}");
            assert!((variance * shape - 1.0).abs() < 5.0 * spread, "{shape}: {variance}");
        }
    }

    #[test]
    fn the_exponential_matches_the_platform() {
        for n in 0..1_900 {
            let x = -f64::from(n) * 0.37;
            assert!((exp(x) - x.exp()).abs() <= 1e-13 * x.exp(), "{x}: {} is not {}", exp(x), x.exp());
        }
    }

    #[test]
    fn the_logarithm_matches_the_platform() {
        for n in 1..2_000 {
            let x = f64::from(n).recip() * 0.999;
            assert!((ln(x) - x.ln()).abs() < 4e-15, "{x}: {} is not {}", ln(x), x.ln());
        }
    }
}
