//! What a file says about retries.

mod budget;
mod remark;
mod setting;
mod settings;

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
