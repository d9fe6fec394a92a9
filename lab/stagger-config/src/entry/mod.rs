//! What a file says about retries.

mod budget;
mod remark;
mod setting;
mod settings;

use core::time::Duration;

use stagger_core::{Jitter, Policy, Ratio, profile};

use crate::format::Format;
use crate::position::Span;

pub use budget::RetryBudget;
pub use remark::{Remark, RemarkKind};
pub use setting::{Limit, Origin, Setting};
pub use settings::Settings;

/// One place of a configuration at which its system retries, restarts, probes, or limits these.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The system that reads this part of the file.
    pub format: Format,
    /// What is repeated.
    pub kind: EntryKind,
    /// The path of the part within the file, such as `VirtualService/reviews.http[0]`.
    pub path: String,
    /// The part of the file. If the settings are defaults of the system, the part that they apply to.
    pub span: Span,
    /// What the file states and what applies by default.
    pub settings: Settings,
    /// Whether an operation may be carried out twice, because the system repeats it whatever its method is, after the
    /// server may have processed it. `None` if the file does not say.
    pub may_repeat_unsafe: Option<bool>,
    /// What cannot be said in terms of a policy, what has no effect, and what is invalid, in the order of the file.
    pub remarks: Vec<Remark>,
}

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A call to another service.
    Call,
    /// A call that is made once, of which the file only limits the time.
    Timeout,
    /// A resource that the system itself fetches.
    Fetch,
    /// A step of a workflow.
    Step,
    /// A process, which is started again.
    Restart,
    /// A probe of an instance's health; its attempts are the failures in a row after which the system acts.
    Probe,
    /// A limit of the retries of other entries.
    Limit,
}

impl Entry {
    /// Returns the policy of this entry: attempts, delays and jitter as the system draws it. Limits of time are not
    /// part of it, but circumstances.
    ///
    /// `None` if the file does not say how many attempts are made or how long the first delay is, or if the system
    /// refuses the values, such as a cap below the base.
    ///
    /// ```
    /// # use stagger_config::read;
    /// let file = "[Service]\nRestart=always\nRestartSec=5s\nStartLimitIntervalSec=0\n";
    /// let policy = read(file, None)?[0].policy().unwrap();
    /// assert_eq!(policy.to_string(), "constant base=5s jitter=none max-attempts=inf");
    /// # Ok::<(), stagger_config::ReadError>(())
    /// ```
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        let settings = &self.settings;
        let attempts = settings.attempts?.value;
        if attempts == Limit::At(1) {
            return Policy::stop().build().ok();
        }
        let base = settings.base?.value;
        let cap = settings.cap.map_or(Limit::None, |cap| cap.value);
        let multiplier = settings.multiplier.map_or(1.0, |multiplier| multiplier.value);
        let is_constant = (multiplier - 1.0).abs() < f64::EPSILON;
        let growing = match settings.step {
            _ if base.is_zero() => Policy::zero(),
            Some(step) => Policy::linear(base, step.value, cap.at().unwrap_or(Duration::MAX)),
            None if is_constant => Policy::constant(base),
            None => Policy::exponential(base, cap.at().unwrap_or(Duration::MAX)).multiplier(multiplier),
        };
        let grows = !base.is_zero() && (settings.step.is_some() || !is_constant);
        let capped = if grows && cap == Limit::None { growing.uncapped() } else { growing };
        let limited = match attempts {
            Limit::At(attempts) => capped.max_attempts(attempts),
            Limit::None => capped.unlimited_attempts(),
        };
        let limited = if base.is_zero() { limited } else { limited.jitter(self.drawn_jitter(is_constant)) };
        limited.build().ok()
    }

    /// Returns the jitter as this system draws it, which differs from the textbook's for some.
    fn drawn_jitter(&self, is_constant: bool) -> Jitter {
        let jitter = self.settings.jitter.map_or(Jitter::None, |jitter| jitter.value);
        match (self.format, jitter) {
            // Whole milliseconds.
            (Format::Envoy | Format::Istio | Format::EnvoyGateway, Jitter::Full) => profile::ENVOY.policy().jitter(),
            (Format::DotNet | Format::Polly, Jitter::Decorrelated) if is_constant || self.settings.step.is_some() => {
                Jitter::Factor(Ratio::percent(25))
            }
            (Format::DotNet | Format::Polly, Jitter::Decorrelated) => profile::POLLY_V8.policy().jitter(),
            _ => jitter,
        }
    }

    pub(crate) fn new(format: Format, kind: EntryKind, path: impl Into<String>, span: Span) -> Self {
        Self {
            format,
            kind,
            path: path.into(),
            span,
            settings: Settings::default(),
            may_repeat_unsafe: None,
            remarks: Vec::new(),
        }
    }
}
