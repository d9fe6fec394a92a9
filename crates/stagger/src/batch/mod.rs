//! Batches: many items in one request, each with an outcome of its own, of which only the failed are sent again.
//!
//! A service that takes a batch may take a part of it: SQS and Kinesis, bulk indexing, batch writes. Sending the whole
//! batch again makes duplicates of what worked, and dropping it loses the rest. A [`Batch`] keeps count: see there.

mod entry;
mod response;
mod rounds;
mod whole;

pub use entry::{BatchResult, Entry, Failed, UnknownItem};
pub use response::PartialResponse;
pub use rounds::Batch;
