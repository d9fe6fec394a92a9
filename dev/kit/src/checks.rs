//! Polls a future by hand, and checks the distribution of a sample and the schema of what is printed.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Polls a future up to `times` times and returns the last result.
pub fn poll_times<F: Future + ?Sized>(future: Pin<&mut F>, times: u32) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = future;
    for _ in 1..times {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(&mut cx) {
            return ready;
        }
    }
    future.poll(&mut cx)
}

/// Asserts that a sample in `[0, 1]` is uniform: a Kolmogorov-Smirnov test at a significance level of one in a million.
///
/// # Panics
/// If the sample is not uniform.
#[track_caller]
pub fn assert_uniform(mut sample: Vec<f64>) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample
        .iter()
        .enumerate()
        .map(|(i, x)| (x - i as f64 / n).abs().max((x - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    let limit = (2e6_f64.ln() / 2.0 / n).sqrt();
    assert!(distance < limit, "the largest distance from uniform is {distance}; limit {limit} ({n} draws)");
}

/// Asserts that the JSON schema in the file `path` of the crate at `root` is that of `T`.
///
/// After a change, the variable `STAGGER_BLESS=1` writes the file instead.
///
/// # Panics
///
/// If the file has another schema, or cannot be read or written.
#[cfg(feature = "schema")]
#[track_caller]
pub fn assert_published_schema<T: schemars::JsonSchema>(root: &str, path: &str) {
    let path = format!("{root}/{path}");
    let now = serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is JSON") + "\n";
    if std::env::var_os("STAGGER_BLESS").is_some() {
        std::fs::write(&path, &now).expect("the schema is written");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the schema file exists"), now);
}
