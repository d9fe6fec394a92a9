//! What `simulate` and `drill` have in common: policies side by side, and the reports.
//!
//! The simulator's document `stagger.storm/1` is all that a report knows: tables, pictures, CSV, Markdown and HTML read
//! their figures from it by name, so none of them can differ from the JSON.

mod assertion;
mod chart;
mod charts;
mod compare;
mod conclude;
mod csv;
mod html;
mod interrupt;
mod markdown;
mod measure;
mod observed;
mod outputs;
mod progress;
mod record;
mod sampled;
mod summary;
mod svg;
pub(crate) mod words;
mod write;

pub(crate) use assertion::assertions;
pub(crate) use compare::{policies, swept, tell_apart};
pub(crate) use conclude::{Runs, conclude};
pub(crate) use interrupt::Interrupt;
pub(crate) use outputs::{OutputArgs, Outputs};
pub(crate) use progress::Progress;
pub(crate) use sampled::SAMPLE;
