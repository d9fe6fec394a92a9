use std::io;

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let read = runtime.block_on(async { read() })?;
    println!("{}", read.len());
    Ok(())
}

fn read() -> io::Result<Vec<u8>> {
    std::fs::read("/etc/hostname")
}
