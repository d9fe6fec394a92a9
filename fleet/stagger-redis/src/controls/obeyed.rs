use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stagger::control::{ControlError, RetryControls};

use crate::event::FleetEvent;

/// The longest text of controls, in bytes.
pub(crate) const LONGEST_TEXT: usize = 16 * 1_024;

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
        if let (Some((text, note)), false) = (&reply.news, reply.version == known.version) {
            known.version = reply.version;
            if reply.left == Some(0) {
                // It has ended before this process knew of it.
                return core::mem::take(&mut known.is_obeyed).then(|| self.reset(&mut known));
            }
            return Some(match apply(&self.controls, text) {
                Ok(()) => {
                    (known.is_obeyed, known.ends_at) = (true, ends_at);
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
        if known.ends_at.is_none_or(|end| now < end) {
            return None;
        }
        Some(self.reset(&mut known))
    }

    fn reset(&self, known: &mut Known) -> FleetEvent {
        (known.is_obeyed, known.ends_at) = (false, None);
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
