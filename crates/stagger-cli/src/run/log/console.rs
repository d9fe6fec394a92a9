use core::sync::atomic::AtomicBool;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use stagger_core::Instant;

use super::super::args::LogFormat;
use super::super::fd;
use super::event::Event;
use super::live::{Live, Scene};
use super::people::Look;
use super::{json, key_value, people};
use crate::error::CliError;
use crate::term::{self, Term};

/// Where and how a run is told.
#[derive(Clone, Debug)]
pub(in crate::run) struct LogSettings {
    pub(in crate::run) format: LogFormat,
    pub(in crate::run) file: Option<PathBuf>,
    pub(in crate::run) verbose: bool,
}

/// Tells what happens. Nothing that it says reaches standard output, and that it cannot be heard never fails a run.
#[derive(Debug)]
pub(in crate::run) struct Console {
    voice: Voice,
    verbose: bool,
    /// Instead of standard error.
    file: Option<File>,
    live: Option<Live>,
    /// A signal wants the run to end; nobody waits for a reader then.
    end: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
enum Voice {
    People(Look),
    KeyValue,
    Json,
    /// Warnings only.
    Silent,
}

impl Console {
    /// # Errors
    /// The log file cannot be opened.
    pub(in crate::run) fn new(settings: &LogSettings, term: &Term, end: Arc<AtomicBool>) -> Result<Self, CliError> {
        let open = |path: &PathBuf| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|error| CliError::io(format_args!("--log-file: cannot open {}", path.display()), error))
        };
        let file = settings.file.as_ref().map(open).transpose()?;
        let voice = match settings.format {
            LogFormat::Off => Voice::Silent,
            LogFormat::Json => Voice::Json,
            LogFormat::Human if file.is_none() && term.stderr.tty => {
                Voice::People(Look { color: term.stderr.color, utf8: term.utf8, verbose: settings.verbose })
            }
            LogFormat::Human => Voice::KeyValue,
        };
        let live = match voice {
            Voice::People(look) if term.stderr.redraws => Some(Live::new(look.utf8)),
            _ => None,
        };
        Ok(Self { voice, verbose: settings.verbose, file, live, end })
    }

    /// Tells what has happened.
    pub(in crate::run) fn tell(&mut self, event: &Event<'_>) {
        match self.voice {
            Voice::People(look) => {
                if let Some(line) = people::line(event, look) {
                    let text = line.render(term::stderr_width(), look.color);
                    self.clear();
                    let fresh = self.fresh_line();
                    self.write(&format!("{fresh}{text}\n"));
                }
            }
            Voice::KeyValue => self.write_line(key_value::line(event, self.verbose)),
            Voice::Json => self.write_line(json::line(event)),
            Voice::Silent => {
                let warning = Some(event).filter(|event| matches!(event, Event::Warning(_)));
                self.write_line(warning.and_then(|event| key_value::line(event, self.verbose)));
            }
        }
    }

    pub(in crate::run) fn note(&mut self, text: &str) {
        self.tell(&Event::Note(text));
    }

    pub(in crate::run) fn warn(&mut self, text: &str) {
        self.tell(&Event::Warning(text));
    }

    /// From now on this is what goes on.
    pub(in crate::run) fn show(&mut self, scene: Scene) {
        if let Some(live) = &mut self.live {
            live.show(scene);
        }
    }

    /// Nothing goes on any more.
    pub(in crate::run) fn hide(&mut self) {
        self.clear();
        if let Some(live) = &mut self.live {
            live.hide();
        }
    }

    /// Draws what goes on, if it is time to.
    pub(in crate::run) fn tick(&mut self, now: Instant) {
        let Voice::People(look) = self.voice else { return };
        let Some(line) = self.live.as_mut().and_then(|live| live.tick(now)) else { return };
        // The last column stays free: what fills it makes some terminals wrap.
        let text = line.render(term::stderr_width().saturating_sub(1), look.color);
        self.write(&format!("\r{text}{CLEAR_REST}"));
        if let Some(live) = &mut self.live {
            live.drawn = true;
        }
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(in crate::run) fn next_tick(&self) -> Option<Instant> {
        self.live.as_ref().and_then(Live::due)
    }

    /// Takes the live line off the terminal, until the next tick.
    pub(in crate::run) fn clear(&mut self) {
        if let Some(live) = &mut self.live
            && live.drawn
        {
            live.drawn = false;
            self.write(&format!("\r{CLEAR_REST}"));
        }
    }

    /// Brings the cursor to the beginning of a line, whether or not the command has ended its own: a line's length of
    /// spaces wraps from anywhere but the first column. (zsh calls it PROMPT_SP.)
    fn fresh_line(&self) -> String {
        match (&self.live, term::terminal_width()) {
            (Some(_), Some(columns)) => format!("{:columns$}\r{CLEAR_REST}", ""),
            _ => String::new(),
        }
    }

    fn write_line(&self, line: Option<String>) {
        if let Some(mut line) = line {
            line.push('\n');
            self.write(&line);
        }
    }

    fn write(&self, text: &str) {
        let to = match &self.file {
            Some(file) => file.as_fd(),
            None => rustix::stdio::stderr(),
        };
        let _ = fd::write_all(to, text.as_bytes(), &self.end);
    }
}

/// Erases from the cursor to the end of the line (ECMA-48 EL).
const CLEAR_REST: &str = "\x1b[K";
