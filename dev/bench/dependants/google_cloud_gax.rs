use google_cloud_gax::backoff_policy::BackoffPolicy;
use google_cloud_gax::exponential_backoff::ExponentialBackoffBuilder;
use google_cloud_gax::retry_state::RetryState;

fn main() {
    let backoff = ExponentialBackoffBuilder::new().clamp();
    println!("{:?}", backoff.on_failure(&RetryState::new(true)));
}
