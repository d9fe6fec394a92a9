//! Checks `docs/guide/compared.md`: what the crates do on a bare call, and their versions.

use core::pin::Pin;
use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use backon::{ExponentialBuilder, Retryable as _};
use http::Extensions;
use reqwest::{Method, Request, Response, StatusCode};
use reqwest_middleware::Next;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use stagger::Policy;
use tokio::time::Instant;
use tower::retry::backoff::{Backoff as _, ExponentialBackoffMaker, MakeBackoff as _};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};

use super::delays::paused;

const PAGE: &str = include_str!("../../../../docs/guide/compared.md");
const LOCK: &str = include_str!("../../../../Cargo.lock");

/// The number of calls whose delays are drawn: with full jitter, the longest of so many is within 5 % of the ceiling
/// but once in 10⁸ times, and the shortest within 5 % of zero.
const CALLS: usize = 400;

/// Returns the cells of the first row that begins with these.
fn row(cells: &[&str]) -> Vec<&'static str> {
    let mut rows = PAGE.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    rows.find(|row| row.starts_with(cells)).unwrap_or_else(|| panic!("no row begins with {cells:?}"))
}

/// The times at which the attempts of a call were made.
#[derive(Clone, Default)]
struct Attempts(Arc<Mutex<Vec<Instant>>>);

impl Attempts {
    fn record(&self) {
        self.0.lock().unwrap().push(Instant::now());
    }

    /// Returns the delays between the attempts of the call so far, in milliseconds, and forgets them.
    fn delays(&self) -> Vec<f64> {
        let times = core::mem::take(&mut *self.0.lock().unwrap());
        times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1000.0).collect()
    }
}

/// Makes calls and compares the numbers of their attempts and their delays with the row of the page, on a paused clock
/// with a resolution of a millisecond.
fn compare(name: &str, call: &str, make: &impl AsyncFn(&Attempts)) {
    let cells = row(&[name, call]);
    let (attempts, delays) = (cells[2].parse::<usize>().unwrap(), cells[3]);
    let (is_random, numbers) = match delays.strip_prefix("up to ") {
        Some(ceilings) => (true, ceilings),
        None => (false, delays),
    };
    let numbers = numbers.trim_end_matches(" ms").split(", ").map(|number| number.parse().unwrap());
    let numbers: Vec<f64> = numbers.collect();
    assert_eq!((numbers.len(), is_random), (attempts - 1, cells[4] == "full"), "{cells:?}");
    paused(async {
        let seen = Attempts::default();
        let mut drawn = vec![Vec::new(); attempts - 1];
        for _ in 0..if is_random { CALLS } else { 3 } {
            make(&seen).await;
            let delays = seen.delays();
            assert_eq!(delays.len() + 1, attempts, "{name}");
            delays.into_iter().zip(&mut drawn).for_each(|(delay, drawn)| drawn.push(delay));
        }
        for (drawn, number) in drawn.iter().zip(numbers) {
            let longest = drawn.iter().copied().fold(0.0, f64::max);
            let shortest = drawn.iter().copied().fold(f64::MAX, f64::min);
            assert!(longest <= number + 1.5 && longest > 0.95 * number, "{name}: {longest} of {number}");
            assert!(if is_random { shortest < 0.05 * number + 1.5 } else { shortest >= number }, "{name}: {shortest}");
        }
    });
}

#[test]
fn a_bare_call_of_stagger() {
    compare("stagger", "`retry(&Policy::DEFAULT, …)`", &async |attempts| {
        let operation = async || {
            attempts.record();
            Err::<(), _>("down")
        };
        assert!(stagger::retry(&Policy::DEFAULT, operation).await.is_err());
    });
}

#[test]
fn a_bare_call_of_backon() {
    compare("backon", "`.retry(ExponentialBuilder::default())`", &async |attempts| {
        let operation = || async {
            attempts.record();
            Err::<(), _>("down")
        };
        assert!(operation.retry(ExponentialBuilder::default()).await.is_err());
    });
}

#[test]
fn a_bare_call_of_tower_resilience() {
    compare("tower-resilience", "`RetryLayer::builder().build()`", &async |attempts| {
        let attempts = attempts.clone();
        let service = ServiceBuilder::new()
            .layer(tower_resilience_retry::RetryLayer::<(), (), &str>::builder().build())
            .service(service_fn(move |()| {
                attempts.record();
                core::future::ready(Err::<(), _>("down"))
            }));
        assert!(service.oneshot(()).await.is_err());
    });
}

type Answer<'a> = Pin<Box<dyn Future<Output = reqwest_middleware::Result<Response>> + Send + 'a>>;

/// Helps the compiler to find the lifetimes of a middleware.
fn middleware<F: for<'a> Fn(Request, &'a mut Extensions, Next<'a>) -> Answer<'a>>(function: F) -> F {
    function
}

#[test]
fn a_bare_call_of_reqwest_retry_also_of_a_post() {
    compare("reqwest-retry", "`.build_with_max_retries(3)`", &async |attempts| {
        let attempts = attempts.clone();
        let busy = middleware(move |_, _, _| {
            attempts.record();
            let response = http::Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).body("").unwrap();
            Box::pin(core::future::ready(Ok(Response::from(response))))
        });
        let policy = ExponentialBackoff::builder().build_with_max_retries(3);
        let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
            .with(RetryTransientMiddleware::new_with_policy(policy))
            .with(busy)
            .build();
        let response = client.request(Method::POST, "http://service.invalid/").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    });
}

/// Sends a request with this client to a server that is always busy, and returns the number of requests.
fn requests(builder: reqwest::ClientBuilder) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    // The thread ends with the test process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            if lines.map_while(Result::ok).any(|line| line.is_empty()) {
                *count.lock().unwrap() += 1;
            }
            let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(busy.as_bytes());
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let response = runtime.block_on(builder.no_proxy().build().unwrap().get(url).send()).unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    *seen.lock().unwrap()
}

#[test]
fn a_bare_call_of_reqwest_makes_one_request_and_three_with_a_classifier() {
    let bare = requests(reqwest::Client::builder());
    assert_eq!(row(&["`reqwest::retry`", "`Client::new()`"])[2], bare.to_string());
    let policy = reqwest::retry::for_host("127.0.0.1").classify_fn(|attempt| match attempt.status() {
        Some(StatusCode::SERVICE_UNAVAILABLE) => attempt.retryable(),
        _ => attempt.success(),
    });
    let classified = requests(reqwest::Client::builder().retry(policy));
    assert_eq!(row(&["", "`for_host(…).classify_fn(…)`"])[2], classified.to_string());
}

#[test]
fn the_default_backoff_of_tower_doubles_from_50_ms_and_adds_up_to_99_percent() {
    assert!(PAGE.contains("delays double from 50 ms, without a cap in reach, and up to 99 % is added (**run**)"));
    paused(async {
        for (retry, base) in [50.0, 100.0, 200.0, 400.0].into_iter().enumerate() {
            let drawn = (0..CALLS).map(|_| {
                let mut backoff = ExponentialBackoffMaker::default().make_backoff();
                let delay = (0..=retry).map(|_| backoff.next_backoff().deadline() - Instant::now()).last().unwrap();
                delay.as_secs_f64() * 1000.0
            });
            let (shortest, longest) =
                drawn.fold((f64::MAX, 0.0_f64), |(low, high), delay| (low.min(delay), high.max(delay)));
            assert!(shortest >= base && longest <= 1.99 * base, "{base}: {shortest} to {longest}");
            assert!(shortest < 1.05 * base && longest > 1.94 * base, "{base}: {shortest} to {longest}");
        }
        let mut late = ExponentialBackoffMaker::default().make_backoff();
        let delay = (0..20).map(|_| late.next_backoff().deadline() - Instant::now()).last().unwrap();
        assert!(delay > Duration::from_secs(26_000), "{delay:?}");
    });
}

/// The crates may be in the lock file more than once, for other packages.
#[test]
fn the_versions_of_the_crates_are_those_of_the_lock_file() {
    let locked = |name: &str, version: &str| LOCK.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n"));
    for (row_of, name) in [
        ("backon", "backon"),
        ("reqwest-retry", "reqwest-retry"),
        ("`reqwest::retry`", "reqwest"),
        ("tower", "tower"),
        ("tower-resilience", "tower-resilience-retry"),
    ] {
        let (_, sources) = PAGE.split_once("## Sources").unwrap();
        let row = sources.lines().find(|line| line.starts_with(&format!("| {row_of} |"))).unwrap();
        let version = row.split('|').nth(2).unwrap().trim().trim_start_matches("retry ").split(',').next().unwrap();
        assert!(locked(name, version), "{name} {version}");
        assert!(row.contains(&format!("/{version}/")), "{row}");
    }
}
