//! Blocking code: waiting for a file that another thread is about to write.
//!
//! ```sh
//! cargo run -p stagger --example blocking_file
//! ```

use core::time::Duration;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::{env, fs, process, thread};

use stagger::{Policy, blocking, policy};

/// At most 10 attempts; each wait is drawn from an interval whose upper bound doubles from 5 ms to at most 100 ms.
const POLICY: Policy = policy!(exponential(ms(5), ms(100)).max_attempts(10));

fn read(path: &Path) -> io::Result<String> {
    blocking::retry(&POLICY, || fs::read_to_string(path))
        // Without this rule, a missing file is a permanent error.
        .when(|error| error.kind() == ErrorKind::NotFound)
        .on_event(|event| println!("attempt {}: {:?}", event.attempt, event.action))
        .run()
}

fn main() -> io::Result<()> {
    let path = env::temp_dir().join(format!("stagger-example-{}", process::id()));
    let writer = thread::spawn({
        let path = path.clone();
        move || {
            thread::sleep(Duration::from_millis(20));
            // Under another name first, so that no reader sees half of it.
            let unfinished = path.with_extension("new");
            fs::write(&unfinished, "here it is")?;
            fs::rename(unfinished, path)
        }
    });

    let text = read(&path)?;
    println!("{text}");
    assert_eq!(text, "here it is");

    writer.join().map_err(|_| io::Error::other("the writer panicked"))??;
    fs::remove_file(path)
}
