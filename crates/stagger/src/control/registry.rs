//! The controls of a program, by target name.

use core::fmt;
use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stagger_core::budget::{ControlSetting, ControlSnapshot, RetryControl};

use super::{ControlError, ControlProblem, line};

/// The operator controls of a program, by target name: see the [module](super).
///
/// Clones are handles to the same controls. Changing a control takes a lock; an attempt takes none, and reads one
/// atomic word for each guard. Every name is stored for as long as the controls exist, so do not use names that
/// untrusted input can create.
#[derive(Clone, Default)]
pub struct RetryControls {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Setting of every target without its own.
    others: Option<ControlSetting>,
    named: BTreeMap<Arc<str>, ControlSetting>,
    targets: BTreeMap<Arc<str>, Arc<RetryControl>>,
}

/// The name that stands for every target not named.
const OTHERS: &str = "*";

impl RetryControls {
    /// The environment variable read by [`from_env`](Self::from_env).
    pub const ENV: &'static str = "STAGGER_CONTROL";

    /// Creates controls with every target enforced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates controls set by the environment variable [`STAGGER_CONTROL`](Self::ENV), if it exists: a control line,
    /// as for [`apply`](Self::apply). The variable is read once, now.
    ///
    /// # Errors
    /// Returns all problems of the line, each with a way to fix it.
    pub fn from_env() -> Result<Self, ControlError> {
        let controls = Self::new();
        match env::var(Self::ENV) {
            Ok(line) => controls.apply(&line).map(|_| controls),
            Err(VarError::NotPresent) => Ok(controls),
            Err(VarError::NotUnicode(_)) => Err(ControlProblem::NotText(Self::ENV).into()),
        }
    }

    /// Applies a control line: all its settings, or none if the line has a problem. Returns the names in it that are
    /// not registered. These get their setting when they are registered; if that is not expected, they may be
    /// misspelled.
    ///
    /// # Errors
    /// Returns all problems of the line, each with a way to fix it.
    pub fn apply(&self, line: &str) -> Result<Vec<Arc<str>>, ControlError> {
        let settings = line::parse(line)?;
        let mut inner = self.lock();
        inner.set(&settings);
        let is_unknown = |name: &&str| *name != OTHERS && !inner.targets.contains_key(*name);
        Ok(settings.into_iter().map(|(name, _)| name).filter(is_unknown).map(Arc::from).collect())
    }

    /// Sets the control of this target, or with `*` of all targets: to a [`ControlMode`](crate::budget::ControlMode), a
    /// share of the retries ([`Ratio`](crate::Ratio)), or both ([`ControlSetting`]).
    pub fn set(&self, target: &str, to: impl Into<ControlSetting>) {
        self.lock().set(&[(target, to.into())]);
    }

    /// Returns the setting of this target, which a target not yet registered will have.
    #[must_use]
    pub fn setting(&self, target: &str) -> ControlSetting {
        self.lock().setting(target).unwrap_or_default()
    }

    /// Returns the control of this target, for guards that are used without a retrier: see
    /// [`Controlled`](crate::budget::Controlled). All guards of a target share it, and with it the share of the
    /// retries.
    #[must_use]
    pub fn control(&self, target: &str) -> Arc<RetryControl> {
        Arc::clone(self.lock().target(target))
    }

    /// Returns a snapshot of every registered target, by name: its setting and its counts.
    #[must_use]
    pub fn snapshots(&self) -> Vec<(Arc<str>, ControlSnapshot)> {
        let inner = self.lock();
        inner.targets.iter().map(|(name, target)| (Arc::clone(name), target.snapshot())).collect()
    }

    /// Locks the controls. Settings are complete even if a thread has panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn set(&mut self, settings: &[(&str, ControlSetting)]) {
        let others = settings.iter().find(|(name, _)| *name == OTHERS);
        if let Some((_, setting)) = others {
            self.others = Some(*setting);
            self.named.clear();
        }
        let named = settings.iter().filter(|(name, _)| *name != OTHERS);
        self.named.extend(named.map(|(name, setting)| (Arc::from(*name), *setting)));
        for (name, target) in &self.targets {
            let is_affected = others.is_some() || settings.iter().any(|(named, _)| **named == **name);
            if let (true, Some(setting)) = (is_affected, self.setting(name)) {
                target.set(setting);
            }
        }
    }

    /// Returns the setting that applies to this target, if one was made.
    fn setting(&self, target: &str) -> Option<ControlSetting> {
        self.named.get(target).copied().or(self.others)
    }

    /// Returns the target of this name, registering it with its setting if necessary.
    fn target(&mut self, name: &str) -> &Arc<RetryControl> {
        let setting = self.setting(name).unwrap_or_default();
        self.targets.entry(Arc::from(name)).or_insert_with(|| {
            let control = RetryControl::new();
            control.set(setting);
            Arc::new(control)
        })
    }
}

impl fmt::Debug for RetryControls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.snapshots()).finish()
    }
}
