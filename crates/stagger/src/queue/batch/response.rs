use core::fmt::{self, Write};

use super::BatchResult;

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
