use std::io;

use backon::{BlockingRetryable, ExponentialBuilder, Retryable};

const POLICY: ExponentialBuilder = ExponentialBuilder::new().with_jitter();

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let read_async = runtime.block_on(async { Retryable::retry(|| async { read() }, POLICY).await })?;
    let read_blocking = BlockingRetryable::retry(read, POLICY).call()?;
    println!("{} {}", read_async.len(), read_blocking.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
