use std::io;

use backoff::{Error, ExponentialBackoff};

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let read_async = runtime.block_on(async {
        backoff::future::retry(ExponentialBackoff::default(), || async { read().map_err(Error::transient) }).await
    })?;
    let read_blocking = backoff::retry(ExponentialBackoff::default(), || read().map_err(Error::transient));
    let Ok(read_blocking) = read_blocking else { return Ok(()) };
    println!("{} {}", read_async.len(), read_blocking.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
