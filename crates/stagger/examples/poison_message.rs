//! A poison message: its job aborts the worker. Each worker stores the messages with their attempts before it makes
//! one, so the message is delayed, counted and given up like any that fails, and no other message is lost with it. On
//! real time, with real processes and files, in about a second.
//!
//! ```sh
//! cargo run -p stagger --features serde --example poison_message
//! ```

use core::error::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use stagger::batch::{Batch, ItemResult};
use stagger::queue::{GiveUpReason, Pending, RetryQueue};
use stagger::{Outcome, Policy, Retrier, policy};

const POLICY: Policy = policy!(exponential(ms(50), secs(1)).max_attempts(5));
/// New messages are sent together, once: what fails continues in the queue.
const TOGETHER: Policy = policy!(constant(ms(50)).max_attempts(1));
/// The directory of the messages; set for the worker.
const DIRECTORY: &str = "POISON_MESSAGE_DIRECTORY";
const MESSAGES: [&str; 6] = ["apple", "banana", "malformed", "orange", "poison", "quince"];

/// Messages on disk, one file each.
struct Store(PathBuf);

impl Store {
    /// Replaces a file, so that either the old or the new text is there after a crash.
    fn write(&self, directory: &str, name: &str, text: &str) -> io::Result<()> {
        let (path, temporary) = (self.0.join(directory), self.0.join("temporary"));
        fs::create_dir_all(&path)?;
        let mut file = File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(temporary, path.join(name))?;
        File::open(path)?.sync_all()
    }

    fn read(&self, directory: &str) -> io::Result<Vec<(String, String)>> {
        let mut files = Vec::new();
        for file in fs::read_dir(self.0.join(directory))? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs::read_to_string(path)?));
        }
        files.sort();
        Ok(files)
    }

    fn put(&self, pending: &Pending<&String>) -> io::Result<()> {
        self.write("pending", pending.item, &serde_json::to_string(pending)?)
    }

    /// Moves a message to the done or dead ones. A crash in between leaves it in both places, and it is handled again.
    fn finish(&self, directory: &str, name: &str, text: &str) -> io::Result<()> {
        self.write(directory, name, text)?;
        fs::remove_file(self.0.join("pending").join(name))
    }
}

/// Handles one message; the caller has stored its attempt.
fn handle(store: &Store, message: &str) -> Result<(), &'static str> {
    let mut effects = File::options().append(true).create(true).open(store.0.join("effects")).map_err(|_| "no disk")?;
    match message {
        // What a stack overflow, a foreign library or the kernel's memory killer does to a process.
        "poison" => std::process::abort(),
        "malformed" => Err("not a fruit"),
        _ => writeln!(effects, "{message}").map_err(|_| "no disk"),
    }
}

fn outcome(error: &str) -> Outcome {
    if error == "not a fruit" { Outcome::Permanent } else { Outcome::TRANSIENT }
}

async fn work(store: &Store) -> Result<(), Box<dyn Error>> {
    let retrier = Retrier::new(POLICY).on_event(|event| println!("    attempt {}: {:?}", event.attempt, event.action));
    let mut queue = RetryQueue::new(retrier);
    let dead = |name: &str, attempts: u32, reason: GiveUpReason| -> io::Result<()> {
        store.finish("dead", name, &format!("{attempts} attempts, {reason:?}"))
    };
    let mut new = Vec::new();
    for (name, text) in store.read("pending")? {
        let pending: Pending<String> = serde_json::from_str(&text)?;
        if pending.paused.attempt() == 0 {
            new.push((name, pending));
            continue;
        }
        // It may have killed the last worker, so it is attempted alone from now on.
        match queue.restore(pending) {
            Ok(key) => queue.pending(key).map_or(Ok(()), |pending| store.put(&pending))?,
            Err(gave_up) => dead(&name, gave_up.attempts, gave_up.reason)?,
        }
    }

    let mut batch = Batch::new(TOGETHER, [] as [(&str, String); 0]).with_pending(new);
    while batch.next_attempt().await {
        for (_, pending) in batch.pending() {
            store.put(&pending)?;
        }
        let names: Vec<_> = batch.entries().iter().map(|entry| entry.id.clone()).collect();
        for name in names {
            if let Err(error) = handle(store, &name) {
                batch.failed(&name, outcome(error), error)?;
            }
        }
    }
    for result in batch.finish().items {
        match result {
            ItemResult::Succeeded(done) => store.finish("done", &done.id, "")?,
            other => {
                let Some(failed) = other.into_failed() else { continue };
                match queue.push_from_batch(failed) {
                    Ok(key) => queue.pending(key).map_or(Ok(()), |pending| store.put(&pending))?,
                    Err(gave_up) => dead(&gave_up.item.id, gave_up.attempts, gave_up.reason)?,
                }
            }
        }
    }

    while let Some(due) = queue.next().await {
        let job = due?;
        // The attempt counts from here on, whatever becomes of this process.
        store.put(&job.pending())?;
        match handle(store, &job.item) {
            Ok(()) => store.finish("done", &job.succeeded(), "")?,
            Err(error) => match queue.push_retry(job, outcome(error)) {
                Ok(queued) => queue.pending(queued.key).map_or(Ok(()), |pending| store.put(&pending))?,
                Err(gave_up) => dead(&gave_up.item, gave_up.attempts, gave_up.reason)?,
            },
        }
    }
    Ok(())
}

/// Starts workers until one has nothing left to do. Returns how many were killed.
fn supervise(directory: &Path) -> Result<u32, Box<dyn Error>> {
    let mut killed = 0;
    loop {
        let status = Command::new(std::env::current_exe()?).env(DIRECTORY, directory).status()?;
        match status.code() {
            Some(0) => return Ok(killed),
            Some(code) => return Err(format!("the worker failed with exit code {code}").into()),
            None => killed += 1,
        }
        println!("worker {killed} was killed: {status}");
        if killed > 20 {
            return Err("the workers are killed again and again".into());
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return work(&Store(directory.into())).await;
    }
    let directory = tempfile::tempdir()?;
    let store = Store(directory.path().to_owned());
    let mut new = RetryQueue::new(POLICY);
    for message in MESSAGES {
        new.push(message.to_owned(), core::time::Duration::ZERO)?;
    }
    for pending in new.into_pending() {
        store.put(&Pending::new(&pending.item, pending.left, pending.paused))?;
    }

    let killed = supervise(directory.path())?;
    let (done, dead) = (store.read("done")?, store.read("dead")?);
    let effects = fs::read_to_string(directory.path().join("effects"))?;
    println!("killed {killed} workers; done: {}; dead letters: {dead:?}", done.len());
    println!("effects: {:?}", effects.lines().collect::<Vec<_>>());
    assert_eq!(killed, 5, "as often as the policy has attempts");
    assert!(done.iter().map(|(name, _)| name.as_str()).eq(["apple", "banana", "orange", "quince"]));
    let letters: Vec<_> = dead.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let [("malformed", malformed), ("poison", "5 attempts, Stop(Attempts)")] = letters[..] else {
        return Err(format!("other dead letters than expected: {letters:?}").into());
    };
    assert!(malformed.ends_with("Stop(Permanent)"), "{malformed}");
    // At least once: the first worker was killed after it had handled some messages, and before it could store that.
    assert!(effects.lines().filter(|line| *line == "apple").count() >= 2);
    assert!(store.read("pending")?.is_empty());
    Ok(())
}
