use std::io;

use stagger::{Policy, policy};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let read_async = runtime.block_on(stagger::retry(&POLICY, async || read()))?;
    let read_blocking = stagger::blocking::retry(&POLICY, read).run()?;
    println!("{} {}", read_async.len(), read_blocking.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
