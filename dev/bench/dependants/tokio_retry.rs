use std::io;

use tokio_retry::Retry;
use tokio_retry::strategy::{ExponentialBackoff, jitter};

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let delays = ExponentialBackoff::from_millis(2).factor(50).map(jitter).take(3);
    let read = runtime.block_on(Retry::start(delays, || async { read() }))?;
    println!("{}", read.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
