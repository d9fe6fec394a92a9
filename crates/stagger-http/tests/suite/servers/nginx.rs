//! 1,000 clients of an nginx that limits their rate and sends `Retry-After`.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::any;
use http::{Method, Request};
use stagger::{Policy, Ratio, Retrier};
use stagger_http::attempt_number;
use stagger_kit::{Port, Program, Ready, Server, Signal, raise_descriptor_limit};
use tokio::time::Instant;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

use super::{Body, hyper, layer, on_threads, request, serve};

const CLIENTS: usize = 1000;
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Starts an nginx with these lines in its `http` block.
pub(super) fn start(directory: &Path, port: &Port, http: &str) -> Server {
    let (path, listens) = (directory.display(), port.address());
    let config = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\n\
         events {{ worker_connections 4000; }}\n\
         http {{\n\
             client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};\n\
             uwsgi_temp_path {path}; scgi_temp_path {path};\n\
             {http}\n\
         }}\n"
    );
    let file = directory.join("nginx.conf");
    fs::write(&file, config).unwrap();
    let program = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(directory);
    Server::start(program, Ready::Port(listens), Duration::from_secs(20)).unwrap()
}

/// Starts an nginx in front of `upstream` that forwards one request a minute and responds to all others with `status`
/// and `Retry-After: 2`. It logs the time of each request, in seconds with milliseconds, and its query.
fn nginx(directory: &Path, port: &Port, upstream: SocketAddr, status: u16) -> Server {
    let http = format!(
        "log_format arrivals '$msec $query_string';\n\
         access_log {path}/arrivals arrivals;\n\
         limit_req_zone $server_addr zone=one:1m rate=1r/m;\n\
         server {{\n\
             listen {listens} backlog=2000;\n\
             location / {{\n\
                 limit_req zone=one; limit_req_status {status};\n\
                 add_header Retry-After {told} always;\n\
                 proxy_pass http://{upstream};\n\
             }}\n\
         }}",
        path = directory.display(),
        listens = port.address(),
        told = RETRY_AFTER.as_secs()
    );
    start(directory, port, &http)
}

/// Returns the arrival times of the clients' second requests, by nginx's own clock and log.
fn second_arrivals(directory: &Path) -> Vec<Duration> {
    let mut arrivals: HashMap<String, Vec<Duration>> = HashMap::new();
    for line in fs::read_to_string(directory.join("arrivals")).unwrap().lines() {
        let (seconds, client) = line.split_once(' ').unwrap();
        let at = Duration::from_secs_f64(seconds.parse().unwrap());
        arrivals.entry(client.to_owned()).or_default().push(at);
    }
    arrivals.into_values().filter(|times| times.len() == 2).map(|times| times[1]).collect()
}

/// Returns the maximum number of times within an interval of `length`.
fn busiest(mut times: Vec<Duration>, length: Duration) -> usize {
    times.sort_unstable();
    let within = |from: usize| times[from..].iter().take_while(|&&time| time < times[from] + length).count();
    (0..times.len()).map(within).max().unwrap_or_default()
}

/// The delays from a response to the next request, when that is passed to the HTTP client.
type Waits = Arc<Mutex<Vec<Duration>>>;

async fn client(number: usize, address: SocketAddr, policy: Policy, waits: Waits) -> u16 {
    let (mut hyper, received) = (hyper(), Arc::new(Mutex::new(None::<Instant>)));
    let network = service_fn(move |request: Request<Body>| {
        let received = Arc::clone(&received);
        if attempt_number(request.extensions()) == 2 {
            waits.lock().unwrap().push(received.lock().unwrap().unwrap().elapsed());
        }
        let response = hyper.call(request);
        async move {
            let response = response.await;
            *received.lock().unwrap() = Some(Instant::now());
            response
        }
    });
    let request = request(Method::GET, address, &format!("/?{number}"), "");
    layer(Retrier::new(policy)).layer(network).oneshot(request).await.unwrap().status().as_u16()
}

/// Checks that the clients arrive after `Retry-After` and spread out.
///
/// The spread is the whole delay of 2 s, so 5 % of the clients arrive within each 100 ms; the bound is three times
/// that. With the default spread of half the delay it would be 10 %, and a machine that stalls for 50 ms would add half
/// of that.
fn clients_honor_retry_after_and_spread_out(status: u16) {
    let policy = Policy::DEFAULT.to_builder().max_attempts(2).hint_spread(Ratio::ONE).build().unwrap();
    raise_descriptor_limit(2 * CLIENTS as u64).unwrap();
    let (directory, port, waits) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap(), Waits::default());
    let statuses = on_threads(async {
        let upstream = serve(Router::new().route("/", any(|| async { "in" }))).await;
        let mut server = nginx(directory.path(), &port, upstream, status);
        let clients = (0..CLIENTS).map(|number| client(number, port.address(), policy, Arc::clone(&waits)));
        let mut statuses = Vec::new();
        for client in clients.map(tokio::spawn).collect::<Vec<_>>() {
            statuses.push(client.await.unwrap());
        }
        // nginx logs a request after responding, and writes all lines before it exits.
        server.stop(Signal::QUIT, Duration::from_secs(20)).unwrap();
        statuses
    });
    assert!(statuses.iter().all(|&got| got == 200 || got == status), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|&&got| got == 200).count(), 1, "one a minute");
    let waits = waits.lock().unwrap();
    assert_eq!(waits.len(), CLIENTS - 1);
    assert!(waits.iter().all(|&wait| wait >= RETRY_AFTER), "{:?}", waits.iter().min());
    let arrivals = second_arrivals(directory.path());
    assert_eq!(arrivals.len(), CLIENTS - 1);
    let busiest = busiest(arrivals, Duration::from_millis(100));
    assert!(busiest <= CLIENTS * 15 / 100, "{busiest} of {CLIENTS} within 100 ms");
}

#[test]
fn a_thousand_clients_spread_out_after_the_retry_after_of_a_429() {
    clients_honor_retry_after_and_spread_out(429);
}

#[test]
fn a_thousand_clients_spread_out_after_the_retry_after_of_a_503() {
    clients_honor_retry_after_and_spread_out(503);
}
