//! What became of the items of a batch.

use core::fmt::{self, Write};

use super::entry::Failed;

/// The result of a batch: one result per item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchResult<T, E> {
    /// The result of each item, in the order in which the items were passed.
    pub items: Vec<ItemResult<T, E>>,
}

/// The result of one item of a batch.
///
/// Complete: an item succeeded, or it did not for one of three reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemResult<T, E> {
    /// It succeeded.
    Succeeded(Succeeded<T>),
    /// It was attempted, and given up.
    GaveUp(Failed<T, E>),
    /// It was given up, and passed to the dead-letter function.
    DeadLettered(Failed<T, E>),
    /// No attempt of this batch included it, because a guard rejected the first one, the lease was
    /// too short, or the batch ended before.
    NotAttempted(Failed<T, E>),
}

/// An item that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Succeeded<T> {
    /// Id of the item, as the service knows it.
    pub id: String,
    /// The item.
    pub item: T,
    /// Number of attempts, including deliveries before this batch.
    pub attempts: u32,
}

impl<T, E> ItemResult<T, E> {
    /// Returns the id of the item.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Succeeded(succeeded) => &succeeded.id,
            Self::GaveUp(failed) | Self::DeadLettered(failed) | Self::NotAttempted(failed) => &failed.id,
        }
    }

    /// Returns the item if it is to be delivered again: it did not succeed, and is no dead letter.
    #[must_use]
    pub const fn failed(&self) -> Option<&Failed<T, E>> {
        match self {
            Self::GaveUp(failed) | Self::NotAttempted(failed) => Some(failed),
            Self::Succeeded(_) | Self::DeadLettered(_) => None,
        }
    }

    /// Returns the item if it is to be delivered again: it did not succeed, and is no dead letter.
    #[must_use]
    pub fn into_failed(self) -> Option<Failed<T, E>> {
        match self {
            Self::GaveUp(failed) | Self::NotAttempted(failed) => Some(failed),
            Self::Succeeded(_) | Self::DeadLettered(_) => None,
        }
    }
}

impl<T, E> BatchResult<T, E> {
    /// Returns the number of items that succeeded.
    #[must_use]
    pub fn succeeded(&self) -> usize {
        self.items.iter().filter(|result| matches!(result, ItemResult::Succeeded(_))).count()
    }

    /// Returns the number of items that were passed to the dead-letter function.
    #[must_use]
    pub fn dead_lettered(&self) -> usize {
        self.items.iter().filter(|result| matches!(result, ItemResult::DeadLettered(_))).count()
    }

    /// Returns the items that are to be delivered again, in order: those that neither succeeded nor are dead letters.
    pub fn failed(&self) -> impl Iterator<Item = &Failed<T, E>> {
        self.items.iter().filter_map(ItemResult::failed)
    }

    /// Returns the items that are to be delivered again, in order; for
    /// [`RetryQueue::push_from_batch`](crate::queue::RetryQueue::push_from_batch).
    pub fn into_failed(self) -> impl Iterator<Item = Failed<T, E>> {
        self.items.into_iter().filter_map(ItemResult::into_failed)
    }

    /// Returns the response for a service that redelivers the failed items: see [`PartialResponse`].
    #[must_use]
    pub const fn response(&self) -> PartialResponse<'_, T, E> {
        PartialResponse(self)
    }
}

/// The failed items in the format that AWS Lambda expects from a function that processes batches of SQS, Kinesis or
/// DynamoDB events: JSON, printed with `{}`, or with the feature `serde` returned from a handler as it is.
///
/// `{"batchItemFailures":[{"itemIdentifier":"…"}]}`, with an empty list if every item succeeded. The event source needs
/// `ReportBatchItemFailures` among its response types; otherwise Lambda treats every response as success. Source: AWS
/// Lambda developer guide, "Handling errors for an SQS event source in Lambda".
#[derive(Debug)]
pub struct PartialResponse<'a, T, E>(pub(super) &'a BatchResult<T, E>);

impl<T, E> fmt::Display for PartialResponse<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"batchItemFailures\":[")?;
        for (n, failed) in self.0.failed().enumerate() {
            f.write_str(if n == 0 { "{\"itemIdentifier\":" } else { ",{\"itemIdentifier\":" })?;
            write_json_string(f, &failed.id)?;
            f.write_char('}')?;
        }
        f.write_str("]}")
    }
}

/// Writes a JSON string: RFC 8259 §7, with quotes, backslashes and control characters escaped and everything else as
/// UTF-8. Uses the same escapes as `serde_json`, so that both ways to print a response produce the same bytes.
fn write_json_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\t' => f.write_str("\\t")?,
            '\n' => f.write_str("\\n")?,
            '\u{c}' => f.write_str("\\f")?,
            '\r' => f.write_str("\\r")?,
            '\u{0}'..='\u{1f}' => write!(f, "\\u{:04x}", u32::from(character))?,
            _ => f.write_char(character)?,
        }
    }
    f.write_char('"')
}

#[cfg(feature = "serde")]
mod serde {
    use ::serde::{Serialize, Serializer};

    use super::PartialResponse;

    #[derive(Serialize)]
    #[serde(rename = "PartialResponse", rename_all = "camelCase")]
    struct Response<'a> {
        batch_item_failures: Vec<Failure<'a>>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Failure<'a> {
        item_identifier: &'a str,
    }

    impl<T, E> Serialize for PartialResponse<'_, T, E> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let failures = self.0.failed().map(|failed| Failure { item_identifier: &failed.id });
            Response { batch_item_failures: failures.collect() }.serialize(serializer)
        }
    }
}
