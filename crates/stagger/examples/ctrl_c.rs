//! A blocking program that Ctrl-C ends with exit code 130: the error itself says that the call was cancelled.
//!
//! ```sh
//! cargo run -p stagger --example ctrl_c 127.0.0.1:1   # press Ctrl-C
//! cargo run -p stagger --example ctrl_c               # interrupts itself; on Unix
//! ```

use std::env;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use stagger::{Cancel, Policy, StopReason, blocking, policy};

const POLICY: Policy = policy!(constant(secs(30)).unlimited_attempts());

fn connect(address: &str) -> anyhow::Result<TcpStream> {
    let cancel = Cancel::new();
    let handle = cancel.clone();
    ctrlc::set_handler(move || handle.cancel())?;
    blocking::retry(&POLICY, || TcpStream::connect(address))
        .on_event(|event| println!("attempt {}: {:?}", event.attempt, event.action))
        .cancelled_by(&cancel)
        .run()
        .with_context(|| format!("cannot connect to {address}"))
}

fn main() -> ExitCode {
    let result = match env::args().nth(1) {
        Some(address) => connect(&address).map(drop),
        None => interrupt_a_child(),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    eprintln!("{error:#}");
    // The context, and anything else around the call's error, is looked through.
    match stagger::stop_reason(&*error) {
        Some(StopReason::Cancelled) => ExitCode::from(130),
        _ => ExitCode::FAILURE,
    }
}

/// Runs this program with an address where nothing listens, and interrupts it while it waits.
fn interrupt_a_child() -> anyhow::Result<()> {
    let mut child = Command::new(env::current_exe()?).arg("127.0.0.1:1").stdout(Stdio::piped()).spawn()?;
    // Open until the end, because the child prints another line.
    let mut output = BufReader::new(child.stdout.take().context("the output is piped")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    println!("{}", line.trim_end());
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    let code = child.wait()?.code();
    println!("exit code {code:?}");
    anyhow::ensure!(code == Some(130), "the exit code is not that of an interrupted program");
    Ok(())
}
