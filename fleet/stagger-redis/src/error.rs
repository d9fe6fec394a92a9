use core::fmt;
use core::time::Duration;

use stagger::Ratio;
use stagger_lease::admission::settings::AdmissionProblem as OfAdmission;
use stagger_lease::settings::SettingsProblem as Of;
use stagger_lease::window::settings::WindowProblem as OfWindow;

/// The longest name of a namespace or target, in bytes.
const LONGEST_NAME: usize = 128;

/// Every problem in the settings of a [`Fleet`](crate::Fleet) or of one of its guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    problems: Vec<SettingsProblem>,
}

/// One problem in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsProblem {
    /// The address of the store cannot be used.
    Url(String),
    /// The expected number of processes is 0.
    NoProcesses,
    /// A namespace or target is empty.
    EmptyName,
    /// A namespace or target has more than 128 bytes.
    LongName(usize),
    /// There is no tokio runtime in which the background task could run.
    NoRuntime,
    /// The target has other limits already, or another longest pause, quorum, window or rate.
    OtherLimits,
    /// The fleet has 64 guards already.
    TooManyTargets,
    /// The capacity is 0, or above a thousand million.
    Capacity(u64),
    /// The bucket begins with more tokens than it holds.
    InitialAboveCapacity(u64),
    /// The cost of a retry is 0, or above the capacity.
    Cost(u64),
    /// The reward for a success is above the capacity.
    RewardAboveCapacity(u64),
    /// The refill period is 0, or the refill is above the largest capacity per second.
    Refill,
    /// A window is shorter than 5 s, or longer than 60 s.
    WindowLength(Duration),
    /// The ratio of a window is above 1.
    Ratio(Ratio),
    /// The minimum of a window is above a million retries per second.
    Minimum(u64),
    /// The rate of an admission is 0, or above a thousand million.
    Rate(u32),
    /// The burst of an admission is 0.
    Burst,
    /// The longest wait for a reservation is 0, or above an hour.
    MaxWait(Duration),
    /// The weight of a server is 0, or above a million.
    Weight(u32),
    /// The most that a server admits is less than a millionth of the rate.
    MaxHere(u32),
    /// All bytes of the secret are zero.
    Secret,
}

impl SettingsError {
    /// Returns the limits of the guard of a target, if neither its name nor its settings have a problem.
    pub(crate) fn of_guard<L, P>(
        target: &str,
        limits: Result<L, Vec<P>>,
        problem: impl Fn(P) -> SettingsProblem,
    ) -> Result<L, Self> {
        let mut problems = SettingsProblem::of_name(target);
        match limits {
            Ok(limits) => Self::check(problems).map(|()| limits),
            Err(found) => {
                problems.extend(found.into_iter().map(problem));
                Err(Self { problems })
            }
        }
    }

    /// Returns an error if there is a problem.
    pub(crate) fn check(problems: Vec<SettingsProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Returns the problems.
    #[must_use]
    pub fn problems(&self) -> &[SettingsProblem] {
        &self.problems
    }
}

impl SettingsProblem {
    /// Returns the problem of limits as one of settings.
    pub(crate) const fn of(problem: Of) -> Self {
        match problem {
            Of::Capacity(tokens) => Self::Capacity(tokens),
            Of::InitialAboveCapacity(tokens) => Self::InitialAboveCapacity(tokens),
            Of::Cost(tokens) => Self::Cost(tokens),
            Of::RewardAboveCapacity(tokens) => Self::RewardAboveCapacity(tokens),
            Of::Refill => Self::Refill,
        }
    }

    /// Returns the problem of a window as one of settings.
    pub(crate) const fn of_window(problem: OfWindow) -> Self {
        match problem {
            OfWindow::Length(ttl) => Self::WindowLength(ttl),
            OfWindow::Ratio(ratio) => Self::Ratio(ratio),
            OfWindow::Minimum(retries) => Self::Minimum(retries),
        }
    }

    /// Returns the problem of an admission as one of settings.
    pub(crate) const fn of_admission(problem: OfAdmission) -> Self {
        match problem {
            OfAdmission::Rate(rate) => Self::Rate(rate),
            OfAdmission::Burst => Self::Burst,
            OfAdmission::MaxWait(wait) => Self::MaxWait(wait),
            OfAdmission::Weight(weight) => Self::Weight(weight),
            OfAdmission::Most(most) => Self::MaxHere(most),
            OfAdmission::Secret => Self::Secret,
        }
    }

    /// Returns what is wrong with the name of a namespace or target.
    pub(crate) fn of_name(name: &str) -> Vec<Self> {
        match name.len() {
            0 => vec![Self::EmptyName],
            length if length > LONGEST_NAME => vec![Self::LongName(length)],
            _ => Vec::new(),
        }
    }
}

impl From<SettingsProblem> for SettingsError {
    fn from(problem: SettingsProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(reason) => {
                write!(f, "the address of the store cannot be used ({reason}): use redis://host:port/database")
            }
            Self::NoProcesses => f.write_str("0 processes are expected: use the number that usually runs"),
            Self::EmptyName => f.write_str("a name is empty: use one that all processes share"),
            Self::LongName(length) => write!(f, "a name has {length} bytes: use at most 128"),
            Self::NoRuntime => f.write_str("there is no tokio runtime here: build the fleet inside of one"),
            Self::OtherLimits => {
                f.write_str("this target has other limits in this process: use the same, or another name")
            }
            Self::TooManyTargets => f.write_str("the fleet has 64 guards already: use another fleet"),
            Self::Capacity(tokens) => Of::Capacity(*tokens).fmt(f),
            Self::InitialAboveCapacity(tokens) => Of::InitialAboveCapacity(*tokens).fmt(f),
            Self::Cost(tokens) => Of::Cost(*tokens).fmt(f),
            Self::RewardAboveCapacity(tokens) => Of::RewardAboveCapacity(*tokens).fmt(f),
            Self::Refill => Of::Refill.fmt(f),
            Self::WindowLength(ttl) => OfWindow::Length(*ttl).fmt(f),
            Self::Ratio(ratio) => OfWindow::Ratio(*ratio).fmt(f),
            Self::Minimum(retries) => OfWindow::Minimum(*retries).fmt(f),
            Self::Rate(rate) => OfAdmission::Rate(*rate).fmt(f),
            Self::Burst => OfAdmission::Burst.fmt(f),
            Self::MaxWait(wait) => OfAdmission::MaxWait(*wait).fmt(f),
            Self::Weight(weight) => OfAdmission::Weight(*weight).fmt(f),
            Self::MaxHere(most) => OfAdmission::Most(*most).fmt(f),
            Self::Secret => OfAdmission::Secret.fmt(f),
        }
    }
}

impl core::error::Error for SettingsError {}
