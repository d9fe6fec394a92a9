use std::time::SystemTime;

use serde::Serialize;

/// What each JSON line of a log says besides its event: when it was written, and by which run.
#[derive(Debug, Serialize)]
pub struct Stamp<'a> {
    /// RFC 3339, UTC.
    time: String,
    run: &'a RunId,
}

impl<'a> Stamp<'a> {
    pub fn new(run: &'a RunId, time: SystemTime) -> Self {
        Self { time: humantime::format_rfc3339_micros(time).to_string(), run }
    }
}

/// Identifies a run among all that append to a log, also on other machines and with the same seed.
#[derive(Clone, Debug, Serialize)]
pub struct RunId(String);

impl RunId {
    pub fn random() -> Self {
        Self(format!("{:016x}", stagger::seed().get()))
    }
}
