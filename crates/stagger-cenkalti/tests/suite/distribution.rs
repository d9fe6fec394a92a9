use stagger::Seed;
use stagger_cenkalti::{BackOff, ExponentialBackOff};

use super::support::{assert_uniform, ms};

#[test]
fn delays_are_uniform_around_the_interval_at_every_retry() {
    let mut backoffs: Vec<_> =
        (0..10_000).map(|n| ExponentialBackOff::options().seed(Seed::new(n)).build().unwrap()).collect();
    for _ in 0..6 {
        let share = |b: &mut ExponentialBackOff| {
            let interval = b.current_interval().as_secs_f64();
            b.next_backoff().unwrap().as_secs_f64() / interval - 0.5
        };
        assert_uniform(backoffs.iter_mut().map(share).collect());
    }
}

#[test]
fn successive_delays_of_a_backoff_are_uniform() {
    let options = ExponentialBackOff::options().multiplier(1.0).max_elapsed_time(None).seed(Seed::new(7));
    let mut b = options.build().unwrap();
    assert_uniform((0..20_000).map(|_| b.next_backoff().unwrap().as_secs_f64() / 0.5 - 0.5).collect());
}

#[test]
fn the_mean_delay_is_the_interval() {
    let mut b = ExponentialBackOff::options().multiplier(1.0).max_elapsed_time(None).build().unwrap();
    let n = 20_000;
    let mean = (0..n).map(|_| b.next_backoff().unwrap().as_secs_f64()).sum::<f64>() / f64::from(n);
    // The standard deviation of a delay is 500 ms / √12. Allows five standard errors of the mean.
    assert!((mean - 0.5).abs() < 5.0 * 0.5 / 12.0_f64.sqrt() / f64::from(n).sqrt(), "{mean}");
    assert_eq!(b.current_interval(), ms(500));
}
