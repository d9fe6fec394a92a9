use core::fmt::{self, Write};

use super::Failed;

/// The items that never worked, as AWS Lambda wants them from a function that takes batches of SQS, Kinesis or DynamoDB
/// events: JSON, to be printed with `{}`, or with the feature `serde` to be returned as it is from a handler.
///
/// `{"batchItemFailures":[{"itemIdentifier":"…"}]}`, and an empty list if everything worked. It needs
/// `ReportBatchItemFailures` among the response types of the event source, or Lambda takes every answer for success.
/// Source: AWS Lambda developer guide, "Handling errors for an SQS event source in Lambda".
#[derive(Debug)]
pub struct PartialResponse<'a, T, E>(pub(super) &'a [Failed<T, E>]);

impl<T, E> fmt::Display for PartialResponse<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"batchItemFailures\":[")?;
        for (n, failed) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "{\"itemIdentifier\":" } else { ",{\"itemIdentifier\":" })?;
            write_json_string(f, &failed.id)?;
            f.write_char('}')?;
        }
        f.write_str("]}")
    }
}

/// RFC 8259 §7: quotes, backslashes and control characters are escaped, everything else is UTF-8 as it is. Of several ways
/// to escape, it takes those of `serde_json`, so that both ways to print a response give the same bytes.
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
            let failures = self.0.iter().map(|failed| Failure { item_identifier: &failed.id });
            Response { batch_item_failures: failures.collect() }.serialize(serializer)
        }
    }
}
