use core::fmt;
use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{ControlError, ControlProblem, line};
use crate::budget::{ControlMode, ControlSetting, ControlSnapshot, ControlledBudget, RetryControl};
use crate::{Breaker, Budget, FailureKind, Outcome, guard::BudgetPermit, guard::Now};

/// The operator controls of a program, by the names of its targets: see the [module](super).
///
/// A handle: clones are the same controls. Moving one takes a lock and all guards of its targets; a retry that is asked for
/// takes no lock and reads one word. Each name is kept for as long as the operator controls are, so names that anybody outside can
/// make up do not belong here. Breakers are not kept alive.
#[derive(Clone, Default)]
pub struct RetryControls {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// What was said of every target that is not named.
    others: Option<ControlSetting>,
    named: BTreeMap<Arc<str>, ControlSetting>,
    targets: BTreeMap<Arc<str>, Target>,
}

#[derive(Default)]
struct Target {
    switch: Arc<RetryControl>,
    breakers: Vec<Weak<dyn Breaker>>,
}

/// Stands for every target that is not named.
const OTHERS: &str = "*";

impl RetryControls {
    /// The environment variable that [`from_env`](Self::from_env) reads.
    pub const ENV: &'static str = "STAGGER_CONTROL";

    /// Every target is enforced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Set as the environment variable [`STAGGER_CONTROL`](Self::ENV) says, if there is one: a line as
    /// [`apply`](Self::apply) takes it. It is read now, and not again.
    ///
    /// # Errors
    /// Everything that is wrong with it, with the way out.
    pub fn from_env() -> Result<Self, ControlError> {
        let controls = Self::new();
        match env::var(Self::ENV) {
            Ok(line) => controls.apply(&line).map(|_| controls),
            Err(VarError::NotPresent) => Ok(controls),
            Err(VarError::NotUnicode(_)) => Err(ControlProblem::NotText(Self::ENV).into()),
        }
    }

    /// Moves the operator controls as this line says, all or, if anything is wrong with it, none; gives the names in it that nobody
    /// has joined under yet. These get their setting when somebody does; if nobody is to come, they are misspelt.
    ///
    /// # Errors
    /// Everything that is wrong with the line, with the way out.
    pub fn apply(&self, line: &str) -> Result<Vec<Arc<str>>, ControlError> {
        let settings = line::parse(line)?;
        let mut inner = self.lock();
        inner.set(&settings);
        let is_unknown = |name: &&str| *name != OTHERS && !inner.targets.contains_key(*name);
        Ok(settings.into_iter().map(|(name, _)| name).filter(is_unknown).map(Arc::from).collect())
    }

    /// Moves the operator control of this target, or with `*` of all: to a [`ControlMode`], to a share of the retries
    /// ([`Ratio`](crate::Ratio)), or to both ([`ControlSetting`]).
    pub fn set(&self, target: &str, to: impl Into<ControlSetting>) {
        self.lock().set(&[(target, to.into())]);
    }

    /// Where the operator control of this target is, or will be when somebody joins under this name.
    #[must_use]
    pub fn setting(&self, target: &str) -> ControlSetting {
        self.lock().setting(target).unwrap_or_default()
    }

    /// Puts a budget under the control of this target. All budgets of one target share the control, its share of the retries
    /// included.
    #[must_use]
    pub fn budget<B: Budget>(&self, target: &str, budget: B) -> ControlledBudget<B, Arc<RetryControl>> {
        ControlledBudget::with_control(budget, Arc::clone(&self.lock().target(target).switch))
    }

    /// The same for a budget that others share.
    #[must_use]
    pub fn shared_budget(&self, target: &str, budget: Arc<dyn Budget>) -> Arc<dyn Budget> {
        Arc::new(self.budget(target, Shared(budget)))
    }

    /// Puts a breaker under the operator control of this target, which calls its [`Breaker::set_enforcement`]; not before the operator control is
    /// moved, if nothing was said of the target yet. Calls to these operator controls from in there block for ever.
    pub fn breaker(&self, target: &str, breaker: &Arc<dyn Breaker>) {
        let mut inner = self.lock();
        if let Some(setting) = inner.setting(target) {
            enforce(&**breaker, setting.mode());
        }
        let breakers = &mut inner.target(target).breakers;
        breakers.retain(|known| known.strong_count() > 0 && !Weak::ptr_eq(known, &Arc::downgrade(breaker)));
        breakers.push(Arc::downgrade(breaker));
    }

    /// Every target that somebody has joined under, by name, with where its operator control is and what it has counted.
    #[must_use]
    pub fn snapshots(&self) -> Vec<(Arc<str>, ControlSnapshot)> {
        let inner = self.lock();
        inner.targets.iter().map(|(name, target)| (Arc::clone(name), target.switch.snapshot())).collect()
    }

    /// What is set is set, also where a breaker has panicked meanwhile.
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
            let is_meant = others.is_some() || settings.iter().any(|(named, _)| **named == **name);
            if let (true, Some(setting)) = (is_meant, self.setting(name)) {
                target.switch.set(setting);
                let breakers = target.breakers.iter().filter_map(Weak::upgrade);
                breakers.for_each(|breaker| enforce(&*breaker, setting.mode()));
            }
        }
    }

    /// What was said of this target.
    fn setting(&self, target: &str) -> Option<ControlSetting> {
        self.named.get(target).copied().or(self.others)
    }

    /// The target of this name, where it was said to be.
    fn target(&mut self, name: &str) -> &mut Target {
        let setting = self.setting(name).unwrap_or_default();
        self.targets.entry(Arc::from(name)).or_insert_with(|| {
            let target = Target::default();
            target.switch.set(setting);
            target
        })
    }
}

fn enforce(breaker: &dyn Breaker, mode: ControlMode) {
    if let Some(enforcement) = mode.enforcement() {
        breaker.set_enforcement(enforcement);
    }
}

impl fmt::Debug for RetryControls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.snapshots()).finish()
    }
}

/// A budget that others share, where one is asked for by value.
#[derive(Debug)]
struct Shared(Arc<dyn Budget>);

impl Budget for Shared {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.0.on_first_attempt(now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        self.0.try_acquire(kind, now)
    }

    fn record(&self, loan: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.0.record(loan, outcome, now);
    }

    fn release(&self, loan: BudgetPermit) {
        self.0.release(loan);
    }

    fn available(&self) -> Option<u64> {
        self.0.available()
    }

    fn is_unlimited(&self) -> bool {
        self.0.is_unlimited()
    }
}
