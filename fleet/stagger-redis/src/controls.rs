//! Operator controls that are set once for all processes of a fleet: the side of a process, which obeys them, and that
//! of a program that sets them.

use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::Script;
use stagger::control::{ControlError, RetryControls};
use stagger_lease::process::RESPONSE_TIMEOUT;

use crate::connection::{Address, Connection};
use crate::error::{SettingsError, SettingsProblem};
use crate::keys::{changes_key, controls_key};
use crate::observe::FleetEvent;

/// The store's side of a change.
const SOURCE: &str = include_str!("script/set_controls.lua");

/// The longest note, in bytes.
const LONGEST_NOTE: usize = 1_024;

/// The operator controls of a namespace in the store, for a program that shows or changes them.
///
/// Processes obey them with [`Fleet::controls`](crate::Fleet::controls). The text is that of
/// [`RetryControls::apply`](stagger::control::RetryControls::apply); targets that it does not name are enforced.
///
/// Each call connects if necessary (500 ms at most, 1 s to find a Sentinel's primary) and waits for the reply (250 ms
/// at most).
pub struct ControlStore {
    connection: Connection,
    keys: [String; 2],
    script: Script,
}

/// Operator controls, as the store has them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredControls {
    /// The text.
    pub text: String,
    /// The note of the change: its time, author and reason.
    pub note: String,
    /// The version, which every change makes larger.
    pub version: u64,
    /// How long ago they were set.
    pub age: Duration,
    /// How long they stay in force: `None` without an end, zero after it.
    pub ends_in: Option<Duration>,
}

/// Why operator controls could not be read or set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlStoreError {
    /// The store cannot be reached, does not answer, or has answered with an error: the reason, in words.
    Unreachable(String),
    /// The text or the note is too long, or the text has a problem. Nothing was sent.
    Invalid(String),
    /// Another program has changed them since they were read; nothing was set. They are now these.
    Changed(Box<StoredControls>),
}

impl ControlStore {
    /// Creates a store without connecting. `url` is its address, such as `rediss://host:6379/0`.
    ///
    /// # Errors
    /// Every problem at once: an address that cannot be used, a namespace without a name or with one of more than 128
    /// bytes.
    pub fn new(url: &str, namespace: &str) -> Result<Self, SettingsError> {
        let mut problems = SettingsProblem::of_name(namespace);
        let connection = Connection::new(Address::Server(url), RESPONSE_TIMEOUT).map_err(|reason| {
            problems.insert(0, SettingsProblem::Url(reason));
        });
        SettingsError::check(problems)?;
        // It has not failed: there is no problem.
        let connection = connection.map_err(|()| SettingsProblem::Url(String::new()))?;
        let keys = [controls_key(namespace), changes_key(namespace)];
        Ok(Self { connection, keys, script: Script::new(SOURCE) })
    }

    /// Returns the controls; `None` if none were ever set.
    ///
    /// # Errors
    /// [`ControlStoreError::Unreachable`].
    pub async fn read(&mut self) -> Result<Option<StoredControls>, ControlStoreError> {
        Ok(self.call(-1, "", "", None).await?.1)
    }

    /// Sets the controls, for `length` or without an end, if they are still those of `version`, which is 0 if none were
    /// ever set. Returns them as they are then. A note is one line. The last 100 changes are kept.
    ///
    /// # Errors
    /// [`ControlStoreError::Changed`] if they are not of that version any more, [`ControlStoreError::Invalid`] if the
    /// text has more than 16 KiB or a problem or the note has more than 1 KiB, and [`ControlStoreError::Unreachable`],
    /// after which they may be set or not.
    pub async fn set(
        &mut self,
        version: u64,
        text: &str,
        note: &str,
        length: Option<Duration>,
    ) -> Result<StoredControls, ControlStoreError> {
        check(text).map_err(ControlStoreError::Invalid)?;
        if note.len() > LONGEST_NOTE {
            let reason = format!("the note has {} bytes: use at most {LONGEST_NOTE}", note.len());
            return Err(ControlStoreError::Invalid(reason));
        }
        let version = i64::try_from(version).unwrap_or(i64::MAX);
        match self.call(version, text, note, length).await? {
            (true, Some(controls)) => Ok(controls),
            (_, Some(controls)) => Err(ControlStoreError::Changed(Box::new(controls))),
            (_, None) => Err(ControlStoreError::Unreachable("the controls were removed in the meantime".to_owned())),
        }
    }

    async fn call(
        &mut self,
        version: i64,
        text: &str,
        note: &str,
        length: Option<Duration>,
    ) -> Result<(bool, Option<StoredControls>), ControlStoreError> {
        self.connection.open().await.map_err(ControlStoreError::Unreachable)?;
        // A century, at most.
        let length = length.map_or(-1, |length| i64::try_from(length.as_micros()).unwrap_or(i64::MAX).min(1 << 51));
        let mut call = self.script.prepare_invoke();
        call.key(&self.keys).arg(version).arg(text).arg(note).arg(length);
        let (numbers, texts): (Vec<i64>, Vec<Vec<u8>>) =
            self.connection.call(&call).await.map_err(ControlStoreError::Unreachable)?;
        let is_set = numbers.first() == Some(&1);
        let [_, version, age, left] = numbers[..] else {
            return Err(ControlStoreError::Unreachable("the reply is not one of the script".to_owned()));
        };
        let mut texts = texts.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned());
        let micros = |number: i64| u64::try_from(number).map(Duration::from_micros);
        if version <= 0 {
            // None were ever set.
            return Ok((is_set, None));
        }
        let controls = StoredControls {
            text: texts.next().unwrap_or_default(),
            note: texts.next().unwrap_or_default(),
            version: version.unsigned_abs(),
            age: micros(age).unwrap_or_default(),
            ends_in: micros(left).ok(),
        };
        Ok((is_set, Some(controls)))
    }
}

impl fmt::Debug for ControlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password.
        f.debug_struct("ControlStore").field("key", &self.keys[0]).finish_non_exhaustive()
    }
}

impl fmt::Display for ControlStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => {
                write!(f, "the store did not answer ({reason}): check its address, and try again")
            }
            Self::Invalid(reason) => f.write_str(reason),
            Self::Changed(now) => {
                write!(f, "the controls were changed in the meantime ({}): look at them, and try again", now.note)
            }
        }
    }
}

impl core::error::Error for ControlStoreError {}

/// The longest text of controls, in bytes.
const LONGEST_TEXT: usize = 16 * 1_024;

/// Resets every target.
const RESET: &str = "*=enforced";

/// What the store replied about the operator controls. Lengths are microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ControlsReply {
    /// 0 if nothing was ever set.
    pub(crate) version: u64,
    /// How long ago they were set.
    pub(crate) age: u64,
    /// How long they stay in force; `None` for no end.
    pub(crate) left: Option<u64>,
    /// The text and the note of the change, if the version is another than that of the process.
    pub(crate) news: Option<(String, String)>,
}

/// The operator controls of a fleet in one process. Times are microseconds of the process's clock.
#[derive(Debug)]
pub(crate) struct ObeyedControls {
    controls: RetryControls,
    known: Mutex<Known>,
}

/// What a process knows of the controls in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) version: u64,
    /// Before the clock began if it is negative.
    pub(crate) set_at: i64,
    /// When they end; `None` if they do not, or have ended.
    pub(crate) ends_at: Option<u64>,
    /// When the store last replied.
    pub(crate) confirmed_at: Option<u64>,
    /// Whether the text of this version is in force. If not, it was rejected or has ended.
    pub(crate) is_obeyed: bool,
}

impl ObeyedControls {
    pub(crate) fn new(controls: RetryControls) -> Self {
        Self { controls, known: Mutex::default() }
    }

    /// Returns what the process knows.
    pub(crate) fn known(&self) -> Known {
        *self.lock()
    }

    /// Takes over what the store replied, and returns what to tell about it. A store without controls changes nothing:
    /// it may have lost them.
    pub(crate) fn on_reply(&self, reply: &ControlsReply, now: u64) -> Option<FleetEvent> {
        let mut known = self.lock();
        known.confirmed_at = Some(now);
        if reply.version == 0 {
            return None;
        }
        known.set_at = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub_unsigned(reply.age);
        let ends_at = reply.left.map(|left| now.saturating_add(left));
        if let Some((text, note)) = &reply.news
            && reply.version != known.version
        {
            known.version = reply.version;
            if reply.left == Some(0) {
                // It has ended before this process knew of it.
                return if known.is_obeyed { Some(self.reset(&mut known)) } else { None };
            }
            return Some(match apply(&self.controls, text) {
                Ok(()) => {
                    known.is_obeyed = true;
                    known.ends_at = ends_at;
                    FleetEvent::ControlsChanged { note: note.clone() }
                }
                // The former stay in force, until their end.
                Err(reason) => {
                    known.is_obeyed = false;
                    FleetEvent::ControlsRejected { reason }
                }
            });
        }
        if known.is_obeyed {
            known.ends_at = ends_at;
        }
        drop(known);
        self.tick(now)
    }

    /// Notes the time: after their end the controls are reset, whether the store is there or not.
    pub(crate) fn tick(&self, now: u64) -> Option<FleetEvent> {
        let mut known = self.lock();
        match known.ends_at {
            Some(end) if now >= end => Some(self.reset(&mut known)),
            _ => None,
        }
    }

    fn reset(&self, known: &mut Known) -> FleetEvent {
        known.is_obeyed = false;
        known.ends_at = None;
        // It is a valid text.
        let _ = self.controls.apply(RESET);
        FleetEvent::ControlsEnded
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Returns how long ago the controls were set, by the store's clock.
    pub(crate) fn age(&self, now: u64) -> Duration {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        Duration::from_micros(u64::try_from(now.saturating_sub(self.set_at)).unwrap_or(0))
    }
}

/// Applies a text to all targets: those that it does not name are reset, also if it has no entry for `*`.
fn apply(controls: &RetryControls, text: &str) -> Result<(), String> {
    check(text)?;
    let complete = format!("{RESET}\n{text}");
    // With an entry for `*` it is complete.
    let applied = controls.apply(&complete).or_else(|_| controls.apply(text));
    applied.map(drop).map_err(|error: ControlError| error.to_string())
}

/// Returns what is wrong with a text of controls.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.len() > LONGEST_TEXT {
        return Err(format!("the controls have {} bytes: use at most {LONGEST_TEXT}", text.len()));
    }
    RetryControls::new().apply(text).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ControlsReply = ControlsReply { version: 0, age: 0, left: None, news: None };

    fn reply(version: u64, text: &str, left: Option<u64>) -> ControlsReply {
        ControlsReply { version, age: 5_000_000, left, news: Some((text.to_owned(), "why".to_owned())) }
    }

    fn setting(obeyed: &ObeyedControls, target: &str) -> String {
        obeyed.controls.setting(target).to_string()
    }

    #[test]
    fn what_is_set_is_obeyed_and_targets_that_are_not_named_are_reset() {
        let obeyed = ObeyedControls::new(RetryControls::new());
        obeyed.controls.apply("db=off; web=observed").unwrap();
        assert_eq!(obeyed.on_reply(&NONE, 0), None, "nothing was ever set");
        assert_eq!(setting(&obeyed, "db"), "off", "as the environment has it");
        let changed = Some(FleetEvent::ControlsChanged { note: "why".to_owned() });
        assert_eq!(obeyed.on_reply(&reply(1, "api=25%", None), 0), changed);
        assert_eq!(["api", "db"].map(|target| setting(&obeyed, target)), ["enforced 25%", "enforced"]);
        assert_eq!(obeyed.on_reply(&reply(2, "*=no-retries\napi=off", None), 0), changed);
        assert_eq!(["api", "db"].map(|target| setting(&obeyed, target)), ["off", "no-retries"]);
        let same = ControlsReply { news: None, ..reply(2, "", None) };
        assert_eq!((obeyed.on_reply(&same, 9), setting(&obeyed, "api")), (None, "off".to_owned()));
    }

    #[test]
    fn a_store_that_has_lost_them_changes_nothing() {
        let obeyed = ObeyedControls::new(RetryControls::new());
        let _ = obeyed.on_reply(&reply(1, "api=off", Some(100)), 0);
        let known = obeyed.known();
        assert_eq!(obeyed.on_reply(&NONE, 1), None);
        assert_eq!(
            (setting(&obeyed, "api"), obeyed.known()),
            ("off".to_owned(), Known { confirmed_at: Some(1), ..known })
        );
        assert_eq!(obeyed.tick(100), Some(FleetEvent::ControlsEnded), "their end stays as well");
    }

    #[test]
    fn a_text_that_cannot_be_applied_leaves_the_former_in_force_and_is_told_once() {
        let obeyed = ObeyedControls::new(RetryControls::new());
        let _ = obeyed.on_reply(&reply(1, "api=off", Some(10)), 0);
        for (version, text, want) in
            [(2, "api=none", "unknown setting `none`"), (3, &"#".repeat(16_385), "16385 bytes")]
        {
            let Some(FleetEvent::ControlsRejected { reason }) = obeyed.on_reply(&reply(version, text, None), 1) else {
                panic!("version {version}")
            };
            assert!(reason.contains(want), "{reason}");
            let again = ControlsReply { news: None, ..reply(version, "", None) };
            assert_eq!((obeyed.on_reply(&again, 2), setting(&obeyed, "api")), (None, "off".to_owned()));
        }
        let known = obeyed.known();
        assert_eq!((known.version, known.is_obeyed), (3, false));
        assert_eq!(obeyed.tick(10), Some(FleetEvent::ControlsEnded), "the end of the former");
    }

    #[test]
    fn controls_end_by_themselves_once_also_without_the_store() {
        let obeyed = ObeyedControls::new(RetryControls::new());
        let _ = obeyed.on_reply(&reply(1, "*=no-retries", Some(100)), 1_000);
        assert_eq!((obeyed.tick(1_099), setting(&obeyed, "api")), (None, "no-retries".to_owned()));
        assert_eq!(
            (obeyed.tick(1_100), setting(&obeyed, "api")),
            (Some(FleetEvent::ControlsEnded), "enforced".to_owned())
        );
        assert_eq!(obeyed.tick(1_101), None);
        let ended = ControlsReply { news: None, ..reply(1, "", Some(0)) };
        assert_eq!(obeyed.on_reply(&ended, 1_102), None);
        // A process that begins afterwards.
        let later = ObeyedControls::new(RetryControls::new());
        assert_eq!(later.on_reply(&reply(1, "*=no-retries", Some(0)), 0), None);
        assert_eq!(setting(&later, "api"), "enforced");
    }

    #[test]
    fn the_age_is_that_of_the_store() {
        let obeyed = ObeyedControls::new(RetryControls::new());
        let _ = obeyed.on_reply(&reply(1, "api=off", None), 2_000_000);
        assert_eq!(obeyed.known().age(2_000_000), Duration::from_secs(5));
        assert_eq!(obeyed.known().age(9_000_000), Duration::from_secs(12));
    }
}
