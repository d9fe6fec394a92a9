use core::time::Duration;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::stdio::{stderr, stdout};
use stagger::time::Clock;
use stagger_core::{FailureKind, Instant};
use stagger_terminal::output::error::CliError;

use super::advice::{Advice, AdviceFile};
use super::attempt::{Attempt, Finished, RunContext, TimedOut, earlier};
use super::classifier::{Classification, Observation};
use super::fd::{stdout_has_no_reader, stdout_is_pipe, stdout_position};
use super::http::{Finding, Verdict};
use super::launch::{AdviceEnv, AttemptEnv, Launcher, Redirect};
use super::log::{Activity, Count, Event};
use super::patterns::{LineMatcher, Patterns};
use super::settings::Settings;
use super::signals::CaughtSignal;
use super::status::{AttemptStatus, NoRetryReason, NotRun};
use super::stdin::StdinSource;
use super::stream::{Relay, Stream};

/// Makes the attempts of a run, one at a time, and determines the outcome of each.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    settings: &'a Settings<'a>,
    stdin: StdinSource,
    launcher: Launcher,
    advice: Option<AdviceFile>,
    last_exit: Option<u8>,
    /// Number of consecutive attempts that reached the `--until` outcome.
    successes_in_a_row: u32,
    /// Whether the note about the output of failed attempts was logged.
    noted_partial_output: bool,
    /// Whether the note about processes in the background was logged.
    noted_background: bool,
    stdout_is_tty: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptResult {
    pub(super) status: AttemptStatus,
    pub(super) took: Duration,
    pub(super) outcome: AttemptOutcome,
    /// The status of the HTTP response.
    pub(super) http_status: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The `--until` outcome was reached.
    Success,
    /// The `--until` outcome was reached, but not yet `--consecutive` times in a row.
    RepeatSuccess,
    /// A retryable failure, with the delay that the command requested.
    Retry {
        kind: FailureKind,
        retry_after: Option<Duration>,
    },
    Stop(NoRetryReason),
    /// The time limit of the run has ended it.
    TimeLimit,
    /// A signal requested the end of the run.
    Interrupted(CaughtSignal),
    /// The `--until` outcome was reached, but standard output is closed.
    StdoutClosed,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        settings: &'a Settings<'a>,
        stdin: StdinSource,
        launcher: Launcher,
        advice: Option<AdviceFile>,
        stdout_is_tty: bool,
    ) -> Self {
        Self {
            settings,
            stdin,
            launcher,
            advice,
            last_exit: None,
            successes_in_a_row: 0,
            noted_partial_output: false,
            noted_background: false,
            stdout_is_tty,
        }
    }

    pub(super) fn attempt(&mut self, count: Count, context: &mut RunContext<'_>) -> Result<AttemptResult, CliError> {
        context.logger.log(&Event::Attempting(count));
        if count.n > 1 && self.stdin.is_exhausted() {
            context.logger.note(
                "standard input is exhausted: an earlier attempt has read it; use --stdin replay to give each attempt \
                 a copy",
            );
        }
        let since = context.clock.now();
        let position = stdout_position();
        let mut finished = self.run_command(count, since, context)?;
        context.logger.hide();
        let took = context.clock.now().saturating_since(since);
        let client = self.settings.http.as_ref();
        let advice = match (&self.advice, client.filter(|client| client.writes_log())) {
            (Some(file), Some(client)) => {
                let cancelled = &*context.signals.terminate;
                file.take_log(client, Relay { matcher: &mut finished.stderr.matcher, cancelled })
            }
            (Some(file), None) => file.take(),
            (None, _) => Ok(Advice::default()),
        };
        let advice = advice.unwrap_or_else(|error| {
            context.logger.warn(&format!("{error}; it was ignored and replaced"));
            Advice::default()
        });
        let http = Finding::new(client, self.settings.announced_waits(), finished.status, advice.response.as_ref());
        finished.status = http.status;
        let status = finished.status;
        self.last_exit = Some(status.code());
        for word in &advice.unknown {
            context.logger.warn(&format!("invalid advice `{word}`; write retry-after=SECONDS or stop"));
        }
        let outcome = match finished.interrupted {
            Some(caught) => AttemptOutcome::Interrupted(caught),
            // Also with --until timeout, which is about the attempts.
            None if finished.timed_out == Some(TimedOut::Run) => AttemptOutcome::TimeLimit,
            None => self.outcome(&finished, &advice, &http),
        };
        let outcome = self.end_background(&mut finished, outcome, context)?;
        let released = Self::release(&mut finished, outcome, context);
        let outcome = released.map_err(|error| CliError::io("cannot write the command's output", error))?;
        if !matches!(outcome, AttemptOutcome::Success | AttemptOutcome::Interrupted(_)) {
            let written = match (position, stdout_position()) {
                (Some(before), Some(now)) => now.saturating_sub(before),
                _ => 0,
            };
            let retries = matches!(outcome, AttemptOutcome::Retry { .. } | AttemptOutcome::RepeatSuccess)
                && count.max.is_none_or(|max| count.n < max.get());
            self.note_partial_output(written.max(finished.stdout.bytes_seen), retries, context);
        }
        let http_status = http.http_status.map(|status| status.as_u16());
        Ok(AttemptResult { status, took, outcome, http_status })
    }

    fn run_command(
        &mut self,
        count: Count,
        now: Instant,
        context: &mut RunContext<'_>,
    ) -> Result<Finished<'a>, CliError> {
        let Settings { args, classifier, .. } = self.settings;
        let held = [args.hold_stdout, args.hold_stderr];
        let watched = [!classifier.stdout.is_empty(), !classifier.stderr.is_empty()];
        let redirects = [0, 1].map(|i| if held[i] || watched[i] { Redirect::Pipe } else { Redirect::Inherit });
        let env = AttemptEnv {
            count,
            last_exit: self.last_exit,
            elapsed: now.saturating_since(context.started),
            advice: match &self.advice {
                _ if self.settings.nesting.stands_down_for.is_some() => AdviceEnv::Outer,
                Some(file) => AdviceEnv::File(file.path()),
                None => AdviceEnv::None,
            },
            retried_by: self.settings.nesting.retried_by,
        };
        let mut child = match self.launcher.start(&mut self.stdin, redirects, &env) {
            Ok(child) => child,
            Err(error) => {
                context.logger.warn(&error.message);
                return Ok(Finished::not_run(error.reason));
            }
        };
        let until = self.settings.timeout.map(|timeout| now.saturating_add(timeout));
        // The output of the command must not mix with a status line that is drawn while it runs.
        if args.hold_stderr && (args.hold_stdout || !self.stdout_is_tty) {
            let until = earlier(until, context.ends_at);
            context.logger.show(Activity::Running { count, until, since: now, run_started: context.started });
        }
        let out = stream(child.stdout.take(), held[0], stdout(), &classifier.stdout);
        let err = stream(child.stderr.take(), held[1], stderr(), &classifier.stderr);
        Attempt::new(child, out, err, self.settings.termination, until, context.ends_at).supervise(context)
    }

    /// Determines the outcome of an attempt that was not interrupted.
    fn outcome(&mut self, finished: &Finished<'_>, advice: &Advice, http: &Finding) -> AttemptOutcome {
        let classification = self.settings.classifier.classify(&Observation {
            status: finished.status,
            stdout: &finished.stdout.matcher,
            stderr: &finished.stderr.matcher,
            stop_advised: advice.stop,
            http,
            reader_gone: stdout_has_no_reader(),
        });
        self.successes_in_a_row =
            if classification == Classification::Reached { self.successes_in_a_row + 1 } else { 0 };
        match classification {
            Classification::Reached if self.successes_in_a_row >= self.settings.args.consecutive.get() => {
                AttemptOutcome::Success
            }
            Classification::Reached if !http.is_safe => AttemptOutcome::Stop(NoRetryReason::UnsafeToRetry),
            Classification::Reached => AttemptOutcome::RepeatSuccess,
            Classification::Stop(reason) => AttemptOutcome::Stop(reason),
            Classification::Retry => {
                // The command's own instruction takes precedence over the server's.
                let retry_after = advice.retry_after.or(http.retry_after);
                let kind = match (finished.status, http.verdict) {
                    (AttemptStatus::NotRun(NotRun::ResourceLimit), _) => FailureKind::LocalExhaustion,
                    (_, Some(Verdict::Retryable(kind))) if advice.retry_after.is_none() => kind,
                    // A requested delay means that the server is overloaded.
                    _ if retry_after.is_some() => FailureKind::Throttled,
                    _ => FailureKind::Transient,
                };
                AttemptOutcome::Retry { kind, retry_after }
            }
        }
    }

    /// Ends the processes that an attempt has left in the background, unless it was the one that the run is about.
    /// Returns the outcome, which is another one if a signal requests the end of the run meanwhile.
    fn end_background(
        &mut self,
        finished: &mut Finished<'_>,
        outcome: AttemptOutcome,
        context: &mut RunContext<'_>,
    ) -> Result<AttemptOutcome, CliError> {
        if outcome == AttemptOutcome::Success || self.settings.args.keep_background {
            return Ok(outcome);
        }
        let was_ended = finished.end_background(self.settings.termination, context)?;
        if let Some(caught) = finished.interrupted {
            return Ok(AttemptOutcome::Interrupted(caught));
        }
        if was_ended && !self.noted_background {
            self.noted_background = true;
            context.logger.note(
                "this attempt left processes in the background, which were ended; to keep such processes, add \
                 --keep-background",
            );
        }
        Ok(outcome)
    }

    /// Writes the buffered output: standard output of a successful attempt to standard output, all else to standard
    /// error.
    fn release(
        finished: &mut Finished<'_>,
        outcome: AttemptOutcome,
        context: &mut RunContext<'_>,
    ) -> io::Result<AttemptOutcome> {
        let done = outcome == AttemptOutcome::Success;
        let end = Arc::clone(&context.signals.terminate);
        let released = finished.stdout.release(if done { stdout() } else { stderr() }, &end);
        // Ignored: if standard error is closed, there is no other place to report it.
        let _ = finished.stderr.release(stderr(), &end);
        match released {
            Err(error) if done && error.kind() == io::ErrorKind::Interrupted => {
                Ok(context.signals.take_idle(|| {}).map_or(outcome, AttemptOutcome::Interrupted))
            }
            Err(error) if done && error.kind() == io::ErrorKind::BrokenPipe => Ok(AttemptOutcome::StdoutClosed),
            Err(error) if done => Err(error),
            _ => Ok(outcome),
        }
    }

    /// Logs once that the reader of standard output also receives the output of failed attempts.
    /// What a command writes to a pipe itself cannot be counted, so the note about a pipe precedes the first retry.
    fn note_partial_output(&mut self, bytes: u64, retries: bool, context: &mut RunContext<'_>) {
        if self.noted_partial_output || self.settings.args.hold_stdout || self.stdout_is_tty {
            return;
        }
        let is_counted = !self.settings.classifier.stdout.is_empty();
        let what = match bytes {
            0 if !retries || is_counted || !stdout_is_pipe() => return,
            0 => "standard output is a pipe: its reader also receives what failed attempts write".to_owned(),
            bytes => format!("this attempt already wrote {} to standard output", amount(bytes)),
        };
        self.noted_partial_output = true;
        context.logger.note(&format!("{what}; use -O to emit only the output of the successful attempt"));
    }
}

fn stream<'a>(pipe: Option<OwnedFd>, held: bool, ours: BorrowedFd<'static>, patterns: &'a Patterns) -> Stream<'a> {
    let matcher = LineMatcher::new(patterns.all());
    match pipe {
        Some(pipe) if held => Stream::buffered(pipe, matcher),
        Some(pipe) => Stream::forwarded(pipe, ours, matcher),
        None => Stream::inherited(),
    }
}

/// Formats a number of bytes: "4.1 kB".
pub(super) fn amount(bytes: u64) -> String {
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
    fn amounts_have_at_most_four_digits() {
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
