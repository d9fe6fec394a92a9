use core::time::Duration;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::stdio::{stderr, stdout};
use signal_hook::consts::SIGPIPE;
use stagger_core::{FailureKind, Instant};

use super::advice::{Advice, AdviceFile};
use super::attempt::{Attempt, Finished, Surroundings};
use super::ended::{Ended, NotRun};
use super::fd;
use super::judge::{Evidence, Patterns, Verdict, Why};
use super::launch::{Circumstances, Launch, Route};
use super::log::{Count, Event, Scene};
use super::pattern::Watch;
use super::settings::Settings;
use super::signals::Caught;
use super::spill::Spill;
use super::stdin::Feed;
use super::stream::Stream;
use crate::error::CliError;

/// Makes one attempt after the other, and says what each has come to.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    settings: &'a Settings,
    feed: Feed,
    launch: Launch,
    advice: Option<AdviceFile>,
    last_exit: Option<u8>,
    /// How often in a row the command did what was wanted.
    streak: u32,
    /// That failed attempts write to standard output was pointed out.
    has_noted_spill: bool,
    stdout_is_tty: bool,
}

/// What is told to an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) count: Count,
    /// How long it may run.
    pub(super) limit: Option<Duration>,
    /// When the run began.
    pub(super) began: Instant,
}

/// An attempt that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) ended: Ended,
    pub(super) took: Duration,
    pub(super) upshot: Upshot,
}

/// What an attempt has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upshot {
    /// What was wanted.
    Done,
    /// What was wanted, though not yet often enough in a row.
    Again,
    /// A failure that another attempt may mend, and how long the command asked to wait.
    Retry { kind: FailureKind, asked: Option<Duration> },
    /// A failure that none will mend.
    Stop(Why),
    /// Somebody wants the run to end.
    Interrupted(Caught),
    /// What was wanted, and nobody takes its output.
    Unread,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        feed: Feed,
        launch: Launch,
        advice: Option<AdviceFile>,
        stdout_is_tty: bool,
    ) -> Self {
        Self { settings, feed, launch, advice, last_exit: None, streak: 0, has_noted_spill: false, stdout_is_tty }
    }

    /// # Errors
    /// stagger itself failed: the output cannot be held back or written.
    pub(super) fn attempt(&mut self, terms: Terms, around: &mut Surroundings<'_>) -> Result<Trial, CliError> {
        around.console.tell(&Event::Attempting(terms.count));
        if terms.count.n > 1 && self.feed.has_run_dry() {
            around.console.note("standard input is at its end: an earlier attempt has read it; use --stdin replay");
        }
        let since = around.clock.now();
        let spill = Spill::before();
        let mut made = self.make(terms, since, around)?;
        around.console.hide();
        let took = around.clock.now().saturating_since(since);
        let (ended, interrupted) = (made.ended, made.interrupted);
        self.last_exit = Some(ended.code());

        let advice = self.advice.as_ref().map(AdviceFile::take).unwrap_or_default();
        for word in &advice.unknown {
            around.console.warn(&format!("`{word}` is no advice; write retry-after=SECONDS or stop"));
        }
        let upshot = match interrupted {
            Some(caught) => Upshot::Interrupted(caught),
            None => self.upshot(&made, &advice),
        };
        let released = Self::release(&mut made, upshot, around);
        let upshot = released.map_err(|error| CliError::io("cannot write the command's output", error))?;
        if !matches!(upshot, Upshot::Done | Upshot::Interrupted(_)) {
            self.note_spill(spill.bytes().max(made.stdout.seen), around);
        }
        Ok(Trial { ended, took, upshot })
    }

    fn make(&mut self, terms: Terms, now: Instant, around: &mut Surroundings<'_>) -> Result<Finished<'a>, CliError> {
        let settings = &self.settings.child;
        let judge = &self.settings.judge;
        let held = [settings.hold_stdout, settings.hold_stderr];
        let watched = [!judge.stdout.is_empty(), !judge.stderr.is_empty()];
        let routes = [0, 1].map(|i| if held[i] || watched[i] { Route::Pipe } else { Route::Inherit });
        let circumstances = Circumstances {
            count: terms.count,
            last_exit: self.last_exit,
            elapsed: now.saturating_since(terms.began),
            advice: self.advice.as_ref().map(AdviceFile::path),
        };
        let mut child = match self.launch.start(&mut self.feed, routes, &circumstances) {
            Ok(child) => child,
            Err(error) => {
                around.console.warn(&error.message);
                return Ok(Finished::not_run(error.reason));
            }
        };
        let until = terms.limit.map(|limit| now.saturating_add(limit));
        // Nothing that the command writes may get into a line that is drawn while it runs.
        if settings.hold_stderr && (settings.hold_stdout || !self.stdout_is_tty) {
            around.console.show(Scene::Running { count: terms.count, until, since: now, began: terms.began });
        }
        let out = stream(child.stdout.take(), held[0], stdout(), &judge.stdout);
        let err = stream(child.stderr.take(), held[1], stderr(), &judge.stderr);
        let finished = Attempt::new(child, out, err, settings.stop, until).supervise(around);
        finished.map_err(|error| CliError::io("cannot look after the command", error))
    }

    /// What it comes to, if nobody has interfered.
    fn upshot(&mut self, made: &Finished<'_>, advice: &Advice) -> Upshot {
        let verdict = self.settings.judge.verdict(&Evidence {
            ended: made.ended,
            stdout: &made.stdout.watch,
            stderr: &made.stderr.watch,
            advised_to_stop: advice.stop,
            reader_is_gone: made.ended == Ended::Signal(SIGPIPE) && stdout_has_no_reader(),
        });
        self.streak = if verdict == Verdict::Reached { self.streak + 1 } else { 0 };
        match verdict {
            Verdict::Reached if self.streak >= self.settings.consecutive => Upshot::Done,
            Verdict::Reached => Upshot::Again,
            Verdict::Stop(why) => Upshot::Stop(why),
            Verdict::Retry => {
                let kind = match (made.ended, advice.retry_after) {
                    (Ended::NotRun(NotRun::NoRoom), _) => FailureKind::LocalExhaustion,
                    // Whoever tells us when to come back has too much to do now.
                    (_, Some(_)) => FailureKind::Throttled,
                    (_, None) => FailureKind::Transient,
                };
                Upshot::Retry { kind, asked: advice.retry_after }
            }
        }
    }

    /// Writes what was held back: to standard output only what the attempt that counts has written there.
    fn release(made: &mut Finished<'_>, upshot: Upshot, around: &mut Surroundings<'_>) -> io::Result<Upshot> {
        let done = upshot == Upshot::Done;
        let end = Arc::clone(around.signals.end_flag());
        let released = made.stdout.release(if done { stdout() } else { stderr() }, &end);
        // Nobody may be there to hear it; there is no better place to say so.
        let _ = made.stderr.release(stderr(), &end);
        match released {
            Err(error) if done && error.kind() == io::ErrorKind::Interrupted => {
                Ok(around.signals.take_idle(|| {}).map_or(upshot, Upshot::Interrupted))
            }
            Err(error) if done && error.kind() == io::ErrorKind::BrokenPipe => Ok(Upshot::Unread),
            Err(error) if done => Err(error),
            _ => Ok(upshot),
        }
    }

    /// Says once that whoever reads standard output gets the failed attempts too.
    fn note_spill(&mut self, bytes: u64, around: &mut Surroundings<'_>) {
        if bytes == 0 || self.has_noted_spill || self.settings.child.hold_stdout || self.stdout_is_tty {
            return;
        }
        self.has_noted_spill = true;
        let amount = amount(bytes);
        around.console.note(&format!(
            "this attempt already wrote {amount} to standard output; use -O to emit only the successful attempt"
        ));
    }
}

fn stream<'a>(pipe: Option<OwnedFd>, held: bool, ours: BorrowedFd<'static>, patterns: &'a Patterns) -> Stream<'a> {
    let watch = Watch::new(patterns.all());
    match pipe {
        Some(pipe) if held => Stream::held(pipe, watch),
        Some(pipe) => Stream::passed(pipe, ours, watch),
        None => Stream::inherited(),
    }
}

fn stdout_has_no_reader() -> bool {
    fd::ready(stdout(), PollFlags::OUT).contains(PollFlags::ERR)
}

/// "4.1 kB"
fn amount(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 999.95 {
            break;
        }
        amount /= 1000.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_at_most_four_figures() {
        for (bytes, want) in [
            (1, "1 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (4_096, "4.1 kB"),
            (999_999, "1.0 MB"),
            (100_000_000, "100.0 MB"),
        ] {
            assert_eq!(amount(bytes), want);
        }
    }
}
