use core::fmt;
use core::time::Duration;

use redis::Script;

use crate::controls::obeyed::check;
use crate::error::{SettingsError, SettingsProblem};
use crate::store::connection::{Address, Connection};
use crate::store::keys::{changes_key, controls_key};

/// The store's side of a change.
const SOURCE: &str = include_str!("../store/set_controls.lua");

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
        let connection = Connection::new(Address::Server(url)).map_err(|reason| {
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
        let controls = (version > 0).then(|| StoredControls {
            text: texts.next().unwrap_or_default(),
            note: texts.next().unwrap_or_default(),
            version: version.unsigned_abs(),
            age: micros(age).unwrap_or_default(),
            ends_in: micros(left).ok(),
        });
        Ok((is_set, controls))
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
