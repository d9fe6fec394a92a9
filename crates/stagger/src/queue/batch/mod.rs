//! Batches: many items in one request, each with its own outcome, of which only the failed ones are sent again.
//!
//! A service that takes a batch may accept only a part of it, such as SQS and Kinesis, bulk indexing, or batch writes.
//! Resending the whole batch duplicates what succeeded, and dropping it loses the rest. [`Batch`] keeps track of each
//! item. What it gives up can continue in a [`RetryQueue`](crate::queue::RetryQueue), and the reverse.

#[expect(clippy::module_inception, reason = "the file is named for its type")]
mod batch;
pub(crate) mod entry;
mod result;

pub use batch::Batch;
pub use entry::{Entry, Failed, UnknownItem};
pub use result::{BatchResult, ItemResult, PartialResponse, Succeeded};
