use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;

fn main() {
    println!("{:?}", StandardRetryStrategy::new());
}
