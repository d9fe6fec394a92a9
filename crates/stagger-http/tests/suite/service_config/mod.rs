//! gRPC service configs: parsing, rejection with problems, and round trips.

mod read;
mod write;

use core::time::Duration;

use stagger_http::service_config::ServiceConfig;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[track_caller]
fn read(json: &str) -> ServiceConfig {
    json.parse().unwrap_or_else(|error| panic!("{error}\n{json}"))
}
