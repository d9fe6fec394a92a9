use core::sync::atomic::AtomicBool;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use stagger_core::Instant;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::CLEAR_REST;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::{self, Term};
use stagger_terminal::output::write::RunId;

use super::event::Event;
use super::human::{self, HumanStyle};
use super::status_line::{Activity, StatusLine};
use super::{json, key_value};
use crate::run::args::{LogFormat, RunArgs};
use crate::run::fd;

/// The log of a run. It never writes to standard output, and a failure to write never fails the run.
#[derive(Debug)]
pub(crate) struct Logger {
    style: LogStyle,
    verbose: bool,
    /// The log file; `None` for standard error.
    file: Option<LogFile>,
    live: Option<StatusLine>,
    /// Set when a signal requests the end of the run; a blocked write is then cancelled.
    terminate: Arc<AtomicBool>,
}

#[derive(Debug)]
struct LogFile {
    file: File,
    path: PathBuf,
    /// Whether a write has failed, which is reported once.
    has_failed: bool,
}

#[derive(Clone, Debug)]
enum LogStyle {
    Human(HumanStyle),
    KeyValue {
        color: bool,
    },
    Json(RunId),
    /// Only warnings.
    Off {
        color: bool,
    },
}

impl Logger {
    pub(crate) fn new(args: &RunArgs, term: &Term, terminate: Arc<AtomicBool>) -> Result<Self, CliError> {
        let open = |path: &PathBuf| {
            let file = fd::open_to_write("--log-file", path, OpenOptions::new().append(true))?;
            Ok(LogFile { file, path: path.clone(), has_failed: false })
        };
        let file = args.log_file.as_ref().map(open).transpose()?;
        let color = file.is_none() && term.stderr.color;
        let style = match args.log {
            _ if args.quiet => LogStyle::Off { color },
            LogFormat::Off => LogStyle::Off { color },
            LogFormat::Json => LogStyle::Json(RunId::random()),
            LogFormat::Human if file.is_none() && term.stderr.tty => {
                LogStyle::Human(HumanStyle { color, utf8: term.utf8, verbose: args.verbose })
            }
            LogFormat::Human => LogStyle::KeyValue { color },
        };
        let live = match &style {
            LogStyle::Human(style) if term.stderr.redraws => Some(StatusLine::new(style.utf8)),
            _ => None,
        };
        Ok(Self { style, verbose: args.verbose, file, live, terminate })
    }

    pub(crate) fn log(&mut self, event: &Event<'_>) {
        match &self.style {
            &LogStyle::Human(style) => {
                if let Some(line) = human::line(event, style) {
                    let text = line.render(terminal::stderr_width(), style.color);
                    self.clear();
                    let fresh = self.move_to_line_start();
                    self.write(&format!("{fresh}{text}\n"));
                }
            }
            &LogStyle::KeyValue { color } => {
                self.write_line(key_value::line(event, self.verbose).map(|line| line.render(usize::MAX, color)));
            }
            LogStyle::Json(run) => self.write_line(json::line(event, run, SystemTime::now())),
            &LogStyle::Off { color } => {
                if matches!(event, Event::Warning { .. }) {
                    self.write_line(key_value::line(event, self.verbose).map(|line| line.render(usize::MAX, color)));
                }
            }
        }
    }

    pub(crate) fn note(&mut self, message: &str) {
        self.log(&Event::Note { message });
    }

    pub(crate) fn warn(&mut self, message: &str) {
        self.log(&Event::Warning { message });
    }

    pub(crate) fn show(&mut self, activity: Activity) {
        if let Some(live) = &mut self.live {
            live.show(activity);
        }
    }

    pub(crate) fn hide(&mut self) {
        self.clear();
        if let Some(live) = &mut self.live {
            live.hide();
        }
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        let LogStyle::Human(style) = self.style else { return };
        let Some(line) = self.live.as_mut().and_then(|live| live.tick(now)) else { return };
        if !terminal::is_foreground() {
            self.clear();
            return;
        }
        // The last column stays free: some terminals wrap when it is filled.
        let text = line.render(terminal::stderr_width().saturating_sub(1), style.color);
        self.write(&format!("\r{text}{CLEAR_REST}"));
        if let Some(live) = &mut self.live {
            live.drawn = true;
        }
    }

    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.live.as_ref().and_then(StatusLine::due)
    }

    /// Erases the status line until the next tick.
    pub(crate) fn clear(&mut self) {
        if let Some(live) = &mut self.live
            && live.drawn
        {
            live.drawn = false;
            // In the background, the prompt of a shell is where it was.
            if terminal::is_foreground() {
                self.write(&format!("\r{CLEAR_REST}"));
            }
        }
    }

    /// Returns the characters that move the cursor to the start of a line, whether or not the output of the command
    /// ends with a newline: a full line of spaces wraps unless it starts in the first column (as with PROMPT_SP of
    /// zsh).
    fn move_to_line_start(&self) -> String {
        match (&self.live, terminal::terminal_width()) {
            (Some(_), Some(columns)) => format!("{:columns$}\r{CLEAR_REST}", ""),
            _ => String::new(),
        }
    }

    fn write_line(&mut self, line: Option<String>) {
        if let Some(mut line) = line {
            line.push('\n');
            self.write(&line);
        }
    }

    fn write(&mut self, text: &str) {
        let stderr = rustix::stdio::stderr();
        let Some(LogFile { file, path, has_failed }) = &mut self.file else {
            let _ = fd::write_all(stderr, text.as_bytes(), &self.terminate);
            return;
        };
        match fd::write_all(file.as_fd(), text.as_bytes(), &self.terminate) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && !*has_failed => {
                *has_failed = true;
                let path = path_shown(path);
                let warning =
                    format!("stagger: warning: cannot write the log to {path}: {error}; lines are missing in it\n");
                let _ = fd::write_all(stderr, warning.as_bytes(), &self.terminate);
            }
            _ => {}
        }
    }
}
