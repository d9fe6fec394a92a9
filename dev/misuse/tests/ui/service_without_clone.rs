use stagger::{Policy, Retrier};
use stagger_http::tower::RetryLayer;
use tower::ServiceBuilder;

struct Connection;

fn main() {
    let _ = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(Policy::DEFAULT))).service(Connection);
}
