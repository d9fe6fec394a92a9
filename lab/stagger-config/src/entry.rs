//! What a file says about retries.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Jitter, Policy, Ratio, profile};

use crate::format::Format;
use crate::position::Span;

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
    /// Something about retries that is not read: the remarks name it, and nothing is concluded of it.
    Unread,
}

impl Entry {
    /// Returns the policy of this entry: attempts, delays and jitter as the system draws it. Limits of time are not
    /// part of it, but circumstances.
    ///
    /// `None` if a part of it is not known: the file does not say it, a placeholder without a default stands for it, or
    /// the system refuses the value. Also `None` if the values contradict each other, such as a cap below the base.
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
        // Without a delay there is nothing that could grow or be drawn. With one, what is absent is not known; a route
        // of the Gateway API states the least delays, which are read as the delays.
        let needs_growth = !base.is_zero() && self.format != Format::GatewayApi;
        let multiplier = match (settings.multiplier, settings.step) {
            (Some(multiplier), _) => multiplier.value,
            (None, None) if needs_growth => return None,
            (None, _) => 1.0,
        };
        if settings.jitter.is_none() && needs_growth {
            return None;
        }
        let is_constant = (multiplier - 1.0).abs() < f64::EPSILON;
        let grows = !base.is_zero() && (settings.step.is_some() || !is_constant);
        let cap = match settings.cap {
            Some(cap) => cap.value,
            None if grows => return None,
            None => Limit::None,
        };
        if cap == Limit::Unknown && grows {
            return None;
        }
        let growing = match settings.step {
            _ if base.is_zero() => Policy::zero(),
            Some(step) => Policy::linear(base, step.value, cap.at().unwrap_or(Duration::MAX)),
            None if is_constant => Policy::constant(base),
            None => Policy::exponential(base, cap.at().unwrap_or(Duration::MAX)).multiplier(multiplier),
        };
        if grows && self.is_cut(multiplier, cap) {
            return None;
        }
        let capped = if grows && cap == Limit::None { growing.uncapped() } else { growing };
        let limited = match attempts {
            Limit::At(attempts) => capped.max_attempts(attempts),
            Limit::None => capped.unlimited_attempts(),
            Limit::Unknown => return None,
        };
        let limited = if base.is_zero() { limited } else { limited.jitter(self.drawn_jitter(is_constant)) };
        limited.build().ok()
    }

    /// Returns the jitter as this system draws it, which differs from the textbook's for some.
    fn drawn_jitter(&self, is_constant: bool) -> Jitter {
        let jitter = Setting::value_or(self.settings.jitter, Jitter::None);
        match (self.format, jitter) {
            // Whole milliseconds.
            (Format::Envoy | Format::Istio | Format::EnvoyGateway, Jitter::Full) => profile::ENVOY.policy().jitter(),
            (Format::DotNet | Format::Polly, Jitter::Decorrelated) if is_constant || self.settings.step.is_some() => {
                Jitter::Factor(Ratio::percent(25))
            }
            (Format::DotNet | Format::Polly, Jitter::Decorrelated) => profile::POLLY_V8.policy().jitter(),
            // Cut at the cap after the draw, in whole milliseconds.
            (Format::Resilience4j, Jitter::Factor(factor)) if factor == Ratio::percent(50) && self.has_cap() => {
                profile::RESILIENCE4J.policy().jitter()
            }
            _ => jitter,
        }
    }

    fn has_cap(&self) -> bool {
        matches!(self.settings.cap, Some(Setting { value: Limit::At(_), .. }))
    }

    /// Returns whether this system cuts what it draws around the ceiling at the cap, and a delay reaches it, for which
    /// there is no jitter but that of its default factor.
    fn is_cut(&self, multiplier: f64, cap: Limit<Duration>) -> bool {
        let settings = &self.settings;
        let (Format::Resilience4j, Some(Jitter::Factor(factor)), Limit::At(cap), Some(base)) =
            (self.format, settings.jitter.map(|jitter| jitter.value), cap, settings.base)
        else {
            return false;
        };
        let retries = match settings.attempts.map(|attempts| attempts.value) {
            Some(Limit::At(attempts)) => f64::from(attempts.saturating_sub(2)),
            _ => f64::INFINITY,
        };
        let longest = base.value.as_secs_f64() * multiplier.powf(retries) * (1.0 + factor.as_f64());
        factor != Ratio::percent(50) && longest > cap.as_secs_f64()
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

/// The settings of an [`Entry`]: what the file states, and what applies because it does not.
///
/// `None` means that it cannot be said from the file, such as what an implementation of the Gateway API does by itself;
/// a limit that the file states, but whose value is filled in elsewhere, is [`Limit::Unknown`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Maximum number of attempts, the first one included.
    pub attempts: Option<Setting<Limit<u32>>>,
    /// Upper bound of the first delay.
    pub base: Option<Setting<Duration>>,
    /// Upper bound of every delay. `None` also if the delays do not grow.
    pub cap: Option<Setting<Limit<Duration>>>,
    /// Factor by which the upper bound grows with each retry.
    pub multiplier: Option<Setting<f64>>,
    /// Length by which the upper bound grows with each retry, in place of the factor.
    pub step: Option<Setting<Duration>>,
    /// Distribution of a delay below its upper bound.
    pub jitter: Option<Setting<Jitter>>,
    /// Time limit of one attempt.
    pub attempt_timeout: Option<Setting<Limit<Duration>>>,
    /// Time limit of all attempts and delays together.
    pub timeout: Option<Setting<Limit<Duration>>>,
    /// What limits the retries of all calls together.
    pub budget: Option<Setting<RetryBudget>>,
}

impl Settings {
    /// Returns whether at most one attempt is made.
    #[must_use]
    pub fn never_retries(&self) -> bool {
        match self.attempts {
            Some(attempts) => attempts.value == Limit::At(1),
            None => false,
        }
    }

    /// Removes the delays if there is nothing to delay.
    pub(crate) fn normalize(&mut self) {
        if self.never_retries() {
            self.base = None;
            self.cap = None;
            self.multiplier = None;
            self.step = None;
            self.jitter = None;
        }
    }

    /// Sets the same delay before each retry, without jitter.
    pub(crate) fn constant(mut self, delay: Setting<Duration>) -> Self {
        self.base = Some(delay);
        self.multiplier = Some(Setting::default(1.0));
        self.jitter = Some(Setting::default(Jitter::None));
        self
    }
}

/// A value and who set it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting<T> {
    /// The value, in the terms of this library: attempts count the first one, also if the system counts retries.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// Who set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The file, here.
    Stated(Span),
    /// The system, because the file does not state it.
    Default,
}

impl<T> Setting<T> {
    pub(crate) const fn stated(value: T, span: Span) -> Self {
        Self { value, origin: Origin::Stated(span) }
    }

    pub(crate) const fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Returns the value that is stated, or this one.
    pub(crate) fn value_or(stated: Option<Self>, default: T) -> T {
        match stated {
            Some(stated) => stated.value,
            None => default,
        }
    }

    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: convert(self.value), origin: self.origin }
    }

    /// Returns whether the file states the value.
    #[must_use]
    pub const fn is_stated(&self) -> bool {
        matches!(self.origin, Origin::Stated(_))
    }

    /// Returns where the file states the value.
    #[must_use]
    pub const fn span(&self) -> Option<Span> {
        match self.origin {
            Origin::Stated(span) => Some(span),
            Origin::Default => None,
        }
    }
}

/// What a reader has found at a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found<T> {
    /// Nothing: the default of the system applies.
    Absent,
    /// Something whose value is not known: a placeholder without a default, or what the system refuses.
    Unknown(Span),
    /// A value.
    Known(Setting<T>),
}

impl<T> Found<T> {
    /// Returns the value, or the default of the system if there is none. `None` if the value is not known.
    pub(crate) fn or(self, default: T) -> Option<Setting<T>> {
        match self {
            Self::Absent => Some(Setting::default(default)),
            Self::Unknown(_) => None,
            Self::Known(setting) => Some(setting),
        }
    }

    /// Returns the value as a limit, or the default of the system if there is none.
    pub(crate) fn limit_or(self, default: Limit<T>) -> Setting<Limit<T>> {
        match self {
            Self::Absent => Setting::default(default),
            Self::Unknown(span) => Setting::stated(Limit::Unknown, span),
            Self::Known(setting) => setting.map(Limit::At),
        }
    }

    /// Returns the value as a limit; `None` if nothing is stated.
    pub(crate) fn limit(self) -> Option<Setting<Limit<T>>> {
        match self {
            Self::Absent => None,
            stated => Some(stated.limit_or(Limit::Unknown)),
        }
    }

    /// Returns the value; `None` if nothing is stated, or if it is not known.
    pub(crate) fn known(self) -> Option<Setting<T>> {
        match self {
            Self::Known(setting) => Some(setting),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Returns where something is stated, also if it is not known.
    pub(crate) const fn span(&self) -> Option<Span> {
        match self {
            Self::Absent => None,
            Self::Unknown(span) => Some(*span),
            Self::Known(setting) => setting.span(),
        }
    }

    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Self::Absent => Found::Absent,
            Self::Unknown(span) => Found::Unknown(span),
            Self::Known(setting) => Found::Known(setting.map(convert)),
        }
    }

    /// Returns this, or the other one if nothing is stated here.
    pub(crate) fn or_else(self, other: Self) -> Self {
        match self {
            Self::Absent => other,
            stated => stated,
        }
    }
}

impl Found<u32> {
    /// Returns the attempts of so many retries, or of the system's default.
    pub(crate) fn retries_or(self, default: u32) -> Setting<Limit<u32>> {
        self.map(|retries| retries.saturating_add(1)).limit_or(Limit::At(default.saturating_add(1)))
    }
}

impl<T> Found<Limit<T>> {
    /// Returns the limit; `None` if nothing is stated.
    pub(crate) fn flat(self) -> Option<Setting<Limit<T>>> {
        match self {
            Self::Absent => None,
            stated => Some(stated.flat_or(Limit::Unknown)),
        }
    }

    /// Returns the limit, or the default of the system if there is none.
    pub(crate) fn flat_or(self, default: Limit<T>) -> Setting<Limit<T>> {
        match self {
            Self::Absent => Setting::default(default),
            Self::Unknown(span) => Setting::stated(Limit::Unknown, span),
            Self::Known(setting) => setting,
        }
    }
}

/// A value, or no limit, or one that is not known. Complete: a limit is nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit<T> {
    /// At most this.
    At(T),
    /// No limit.
    None,
    /// The file states a limit, and its value is not known: a placeholder without a default stands for it, or the
    /// system refuses it.
    Unknown,
}

impl Limit<u32> {
    /// Returns the attempts of so many retries; a negative number is no limit.
    pub(crate) fn of_retries(retries: i64) -> Self {
        match u32::try_from(retries) {
            Ok(retries) => Self::At(retries.saturating_add(1)),
            Err(_) => Self::None,
        }
    }
}

impl<T> Limit<T> {
    /// Returns the value, `None` if there is no limit or if it is not known.
    #[must_use]
    pub fn at(self) -> Option<T> {
        match self {
            Self::At(value) => Some(value),
            Self::None | Self::Unknown => None,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(value) => value.fmt(f),
            Self::None => f.write_str("no limit"),
            Self::Unknown => f.write_str("not known"),
        }
    }
}

/// What limits the retries of all calls together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RetryBudget {
    /// Nothing.
    Unlimited,
    /// At most this many retries at the same time.
    Concurrent(u32),
    /// At most this share of the active requests may be retries, but at least so many.
    ShareOfActive {
        /// Share, 0 to 1.
        ratio: f64,
        /// Number of retries that are always allowed at the same time.
        least: u32,
    },
    /// Retries are at most this share of the requests of a period, and so many more.
    Ratio {
        /// Share, 0 to 1 and above.
        ratio: f64,
        /// Retries per second that are always allowed.
        least_per_second: f64,
        /// The period.
        period: Duration,
    },
    /// Tokens that failures take and successes return; retries stop at half of them.
    Throttle {
        /// Maximum number of tokens, and the initial one.
        tokens: f64,
        /// What a success returns.
        ratio: f64,
    },
    /// Tokens that retries take and successes return.
    Tokens {
        /// Maximum number of tokens, and the initial one.
        capacity: u32,
    },
}

impl fmt::Display for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ratio: f64| ratio * 100.0;
        match *self {
            Self::Unlimited => f.write_str("none"),
            Self::Concurrent(retries) => write!(f, "at most {retries} retries at once"),
            Self::ShareOfActive { ratio, least } => {
                write!(f, "{:.0}% of the active requests, at least {least} at once", percent(ratio))
            }
            Self::Ratio { ratio, least_per_second, period } => write!(
                f,
                "{}% of the requests of {}, at least {least_per_second}/s",
                (percent(ratio) * 1e6).round() / 1e6,
                Compact(period)
            ),
            Self::Throttle { tokens, ratio } => {
                write!(f, "{tokens} tokens, of which a failure takes one and a success returns {ratio}")
            }
            Self::Tokens { capacity } => write!(f, "{capacity} tokens"),
        }
    }
}

/// Something that a reader has noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// What it means for the settings.
    pub kind: RemarkKind,
    /// The field, as a path within the file.
    pub path: String,
    /// Its place.
    pub span: Span,
    /// What the system does, and what follows: a sentence without a capital and a full stop.
    pub text: String,
}

/// What a remark means for the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RemarkKind {
    /// The system refuses the value, which has been left out, or reads it differently than its author can have meant.
    Invalid,
    /// The field has no effect here.
    NoEffect,
    /// The field makes a failure worse, though it is not about retries.
    Hazard,
    /// The field has an effect that a policy cannot express.
    Unmapped,
    /// The file refers to something that has not been read, and that may say otherwise.
    NotRead,
    /// A fact about the settings that is worth knowing.
    Note,
}
