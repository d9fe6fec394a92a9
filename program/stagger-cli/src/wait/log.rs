use core::time::Duration;
use std::io::{self, Write};
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use stagger::time::{Clock, Tokio};
use stagger_core::{Instant, Policy};
use stagger_terminal::output::line::{CLEAR_REST, DIM, Line, PLAIN, SHOW_AFTER, short, spinner, tenths};
use stagger_terminal::output::terminal::{self, Term};
use stagger_terminal::output::write::{RunId, Stamp};

use super::args::WaitLogFormat;
use super::poll::Attempt;
use super::settings::{Need, Settings};
use super::target::Target;

const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();

/// The schema of the lines; its number changes when a field is removed or changes its meaning.
const SCHEMA: &str = "stagger.wait/1";

/// Tells on standard error how the wait goes. A failure to write never fails the wait.
#[derive(Debug)]
pub(super) struct Log {
    style: LogStyle,
    verbose: bool,
    color: bool,
    utf8: bool,
    live: bool,
    drawn: bool,
    frame: usize,
    started: Instant,
    limit: Option<Duration>,
    need: Need,
    seed: u64,
    run: RunId,
    targets: Vec<TargetState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogStyle {
    /// On a terminal.
    Human,
    /// For humans, in a pipe or file.
    Plain,
    Json,
    Off,
}

/// What is known of a target, as in the last JSON line.
#[derive(Clone, Debug, Serialize)]
struct TargetState {
    target: String,
    ready: bool,
    /// Attempts that have begun: the last one may not have ended.
    attempts: u64,
    /// What is true while the first attempt has not ended.
    #[serde(skip)]
    unanswered: &'static str,
    /// Why the last attempt did not find it ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    #[serde(flatten)]
    stamp: Stamp<'a>,
    /// Since the start of the wait.
    elapsed_s: f64,
    #[serde(flatten)]
    event: Event<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Start { policy: String, seed: u64, targets: Vec<&'a str>, timeout_s: Option<f64> },
    Attempt { target: &'a str, n: u64, ready: bool, reason: Option<&'a str>, took_s: f64, next_s: Option<f64> },
    Ready { target: &'a str, attempts: u64 },
    Done { ok: bool, exit: u8, signal: Option<&'a str>, targets: &'a [TargetState] },
}

/// How the wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending<'a> {
    pub(super) exit: u8,
    pub(super) signal: Option<&'a str>,
    pub(super) why: &'a str,
}

impl Log {
    /// Must be called within the runtime, whose clock it reads.
    pub(super) fn new(settings: &Settings<'_>, term: &Term) -> Self {
        let style = match settings.args.log {
            _ if settings.args.quiet => LogStyle::Off,
            WaitLogFormat::Off => LogStyle::Off,
            WaitLogFormat::Json => LogStyle::Json,
            WaitLogFormat::Human if term.stderr.tty => LogStyle::Human,
            WaitLogFormat::Human => LogStyle::Plain,
        };
        let state = |target: &Target| TargetState {
            target: target.to_string(),
            ready: false,
            attempts: 0,
            unanswered: target.unanswered(),
            reason: None,
        };
        Self {
            style,
            verbose: settings.args.verbose,
            color: term.stderr.color,
            utf8: term.utf8,
            live: style == LogStyle::Human && term.stderr.redraws,
            drawn: false,
            frame: 0,
            started: Tokio.now(),
            limit: settings.timeout,
            need: settings.need,
            seed: settings.seed.get(),
            run: RunId::random(),
            targets: settings.targets.iter().map(state).collect(),
        }
    }

    pub(super) fn start(&mut self, policy: &Policy) {
        let timeout = self.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {}", short(limit)));
        if self.verbose {
            self.say(&Line::default().part(DIM, format_args!("{policy}, seed {}, {timeout}", self.seed)));
        }
        let targets = self.targets.iter().map(|state| state.target.as_str()).collect();
        let timeout_s = self.limit.map(|limit| limit.as_secs_f64());
        self.json(Event::Start { policy: policy.to_string(), seed: self.seed, targets, timeout_s });
    }

    /// Counts an attempt that begins.
    pub(super) fn begins(&mut self, index: usize) {
        if let Some(state) = self.targets.get_mut(index) {
            state.attempts += 1;
        }
    }

    /// Tells about an attempt that has ended.
    pub(super) fn attempt(&mut self, index: usize, attempt: &Attempt<'_>) {
        let Some(state) = self.targets.get_mut(index) else { return };
        state.reason = attempt.failure.map(|failure| failure.reason.clone());
        let state = state.clone();
        if self.verbose {
            let result = state.reason.as_deref().unwrap_or("ready");
            let line = Line::default()
                .part(DIM, format_args!("{}  ", state.target))
                .part(PLAIN, format_args!("attempt {}: {result} in {}", state.attempts, short(attempt.took)));
            let line = match attempt.next {
                Some(next) => line.part(DIM, format_args!(", next in {}", short(next))),
                None => line,
            };
            self.say(&line.wraps());
        }
        self.json(Event::Attempt {
            target: &state.target,
            n: state.attempts,
            ready: state.reason.is_none(),
            reason: state.reason.as_deref(),
            took_s: attempt.took.as_secs_f64(),
            next_s: attempt.next.map(|next| next.as_secs_f64()),
        });
    }

    pub(super) fn ready(&mut self, index: usize) {
        let elapsed = self.elapsed();
        let Some(state) = self.targets.get_mut(index) else { return };
        state.ready = true;
        let state = state.clone();
        let mark = if self.utf8 { "✓" } else { "+" };
        self.say_of(GREEN, mark, &state, &format!("ready after {}", short(elapsed)));
        self.json(Event::Ready { target: &state.target, attempts: state.attempts });
    }

    /// Tells the end, with the last reason of each target that is not ready, unless the wait was successful.
    pub(super) fn done(&mut self, ending: &Ending<'_>) {
        self.clear();
        let elapsed = short(self.elapsed());
        let mark = if self.utf8 { "✗" } else { "x" };
        for state in self.targets.clone() {
            if state.ready || ending.exit == 0 {
                continue;
            }
            let reason = match &state.reason {
                Some(reason) => reason,
                None if state.attempts == 0 => "no attempt has begun",
                None => state.unanswered,
            };
            self.say_of(RED, mark, &state, &format!("{} after {elapsed}: {reason}", ending.why));
        }
        let (exit, signal) = (ending.exit, ending.signal);
        self.json(Event::Done { ok: exit == 0, exit, signal, targets: &self.targets });
    }

    /// Redraws the status line.
    pub(super) fn tick(&mut self) {
        let elapsed = self.elapsed();
        if !self.live || elapsed < SHOW_AFTER {
            return;
        }
        if !terminal::is_foreground() {
            self.clear();
            return;
        }
        self.frame += 1;
        let line = self.status_line(elapsed);
        // The last column stays free: some terminals wrap when it is filled.
        let text = line.render(terminal::stderr_width().saturating_sub(1), self.color);
        self.drawn = true;
        write(&format!("\r{text}{CLEAR_REST}"));
    }

    fn status_line(&self, elapsed: Duration) -> Line {
        let line = Line::default().part(DIM, spinner(self.utf8, self.frame));
        let waiting: Vec<_> = self.targets.iter().filter(|state| !state.ready).collect();
        let (name, reason) = waiting
            .first()
            .map_or(("", ""), |state| (state.target.as_str(), state.reason.as_deref().unwrap_or("first attempt")));
        let of = self.limit.map(|limit| format!(" of {}", short(limit))).unwrap_or_default();
        // The time comes before the reason, because parts that do not fit are dropped from the end.
        let line = line.part(PLAIN, format_args!(" {}{of}", tenths(elapsed)));
        let line = match (self.targets.len(), self.need) {
            (1, _) => line,
            (all, Need::All) => line.part(DIM, format_args!("  {} of {all} ready", all - waiting.len())),
            (all, Need::Any) => line.part(DIM, format_args!("  any of {all}")),
        };
        line.part(PLAIN, format_args!("  {name}")).part(DIM, format_args!("  {reason}"))
    }

    fn elapsed(&self) -> Duration {
        Tokio.now().saturating_since(self.started)
    }

    fn say_of(&mut self, style: Style, mark: &str, state: &TargetState, what: &str) {
        let attempts = match state.attempts {
            1 => "1 attempt".to_owned(),
            n => format!("{n} attempts"),
        };
        let line = match self.style {
            LogStyle::Human => Line::default().part(style, mark).part(PLAIN, format_args!(" {}  {what}", state.target)),
            _ => Line::default().part(PLAIN, format_args!("{}: {what}", state.target)),
        };
        self.say(&line.part(DIM, format_args!(", {attempts}")).wraps());
    }

    /// Writes a finished line for humans; it is never cut off.
    fn say(&mut self, line: &Line) {
        if !matches!(self.style, LogStyle::Human | LogStyle::Plain) {
            return;
        }
        self.clear();
        let prefix = if self.style == LogStyle::Plain { "stagger: " } else { "" };
        write(&format!("{prefix}{}\n", line.render(usize::MAX, self.color)));
    }

    fn json(&self, event: Event<'_>) {
        if self.style != LogStyle::Json {
            return;
        }
        let elapsed_s = self.elapsed().as_secs_f64();
        let stamp = Stamp::new(&self.run, SystemTime::now());
        let envelope = Envelope { schema: SCHEMA, stamp, elapsed_s, event };
        if let Ok(line) = serde_json::to_string(&envelope) {
            write(&(line + "\n"));
        }
    }

    fn clear(&mut self) {
        if self.drawn {
            self.drawn = false;
            // In the background, the prompt of a shell is where it was.
            if terminal::is_foreground() {
                write(&format!("\r{CLEAR_REST}"));
            }
        }
    }
}

fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
