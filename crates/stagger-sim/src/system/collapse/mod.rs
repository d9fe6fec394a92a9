//! How long until a healthy system collapses by chance.

#[cfg(test)]
mod chain;
mod estimate;
mod process;
mod splitting;

pub use estimate::{CollapseTime, RareCollapse};
