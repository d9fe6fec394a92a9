//! The attributes of a span that tell about retries.

use core::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use super::values::{Scalar, Text};
use crate::span::{Ending, Kind};

/// The attributes that are read.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) service: String,
    pub(super) peer: String,
    /// How well `peer` names the service that is called.
    rank: u8,
    pub(super) resends: u32,
    pub(super) kind: Option<Kind>,
    pub(super) hint: u64,
    http_status: u32,
    grpc_status: Option<String>,
    error_type: String,
    has_error: bool,
}

#[derive(serde::Deserialize)]
struct Attribute {
    #[serde(default)]
    key: Text,
    #[serde(default)]
    value: Scalar,
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Attributes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of attributes")
            }

            fn visit_unit<E>(self) -> Result<Attributes, E> {
                Ok(Attributes::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Attributes, A::Error> {
                let mut found = Attributes::default();
                while let Some(attribute) = items.next_element::<Attribute>()? {
                    found.add(&attribute.key.0, attribute.value.0);
                }
                Ok(found)
            }
        }
        deserializer.deserialize_any(List)
    }
}

impl Attributes {
    fn add(&mut self, key: &str, value: String) {
        match key {
            "http.request.resend_count"
            | "http.resend_count"
            | "http.retry_count"
            | "grpc.previous-rpc-attempts"
            | "previous-rpc-attempts" => self.resends = value.parse().unwrap_or_default(),
            "http.response.status_code" | "http.status_code" => self.http_status = value.parse().unwrap_or_default(),
            "rpc.grpc.status_code" | "rpc.response.status_code" | "grpc.status_code" => self.grpc_status = Some(value),
            "http.response.header.retry-after" | "http.response.header.retry_after" => self.hint = seconds(&value),
            "error.type" => self.error_type = value,
            "error" => self.has_error |= value == "true",
            "otel.status_code" => self.has_error |= value == "ERROR",
            "span.kind" => self.kind = Some(kind(&value)),
            "service.name" => self.service = value,
            // The better of several names of the called service.
            "peer.service" => self.peer_is(5, value),
            "server.address" => self.peer_is(4, value),
            "net.peer.name" | "http.host" | "peer.hostname" => self.peer_is(3, value),
            "rpc.service" => self.peer_is(2, value),
            "db.system" | "db.system.name" | "messaging.system" => self.peer_is(1, value),
            _ => {}
        }
    }

    fn peer_is(&mut self, rank: u8, value: String) {
        if rank > self.rank && !value.is_empty() {
            (self.rank, self.peer) = (rank, value);
        }
    }

    /// Returns how the operation ended, given whether the status of its span is an error.
    pub(super) fn ending(&self, has_error: bool) -> Ending {
        const TIMEOUTS: [&str; 4] = ["timeout", "timedout", "deadline", "cancel"];
        let error = self.error_type.to_ascii_lowercase();
        // In place of an HTTP status, `error.type` may be one.
        let status = if self.http_status == 0 { error.parse().unwrap_or_default() } else { self.http_status };
        let grpc = self.grpc_status.as_deref().unwrap_or_default();
        let has_answer = status != 0 || !matches!(grpc, "" | "0" | "OK");
        if TIMEOUTS.iter().any(|timeout| error.replace('_', "").contains(timeout))
            || matches!(grpc, "1" | "4" | "CANCELLED" | "DEADLINE_EXCEEDED")
        {
            return Ending::TimedOut;
        }
        match status {
            300..=399 | 401 | 407 => Ending::Moved,
            429 | 500.. => Ending::Failed,
            _ if matches!(grpc, "8" | "13" | "14" | "RESOURCE_EXHAUSTED" | "INTERNAL" | "UNAVAILABLE") => {
                Ending::Failed
            }
            // No answer, and no reason: the caller gave up, or could not connect.
            _ if (has_error || self.has_error) && !has_answer && error.is_empty() => Ending::TimedOut,
            _ if has_error || self.has_error || !error.is_empty() => Ending::Failed,
            _ => Ending::Good,
        }
    }
}

/// Reads a delay in seconds. A date is not read.
fn seconds(text: &str) -> u64 {
    /// The longest wait that a server can mean, 366 days. A Unix time is longer, and when it was sent is not known.
    const LONGEST: f64 = 366.0 * 86_400.0;
    let seconds: f64 = text.trim().parse().unwrap_or_default();
    // A negative number and NaN are 0.
    if seconds > LONGEST { 0 } else { (seconds * 1e9) as u64 }
}

/// Reads a kind, as OTLP and Jaeger write it.
pub(super) fn kind(text: &str) -> Kind {
    match text {
        "3" | "SPAN_KIND_CLIENT" | "client" => Kind::Client,
        "2" | "SPAN_KIND_SERVER" | "server" => Kind::Server,
        _ => Kind::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(json: &str) -> Attributes {
        serde_json::from_str(json).unwrap()
    }

    /// Returns the attributes of OTLP, each a key and a value.
    fn otlp(attributes_of_span: &[(&str, &str)]) -> Attributes {
        let one = |(key, value): &(&str, &str)| format!(r#"{{"value": {value}, "key": "{key}"}}"#);
        let all: Vec<_> = attributes_of_span.iter().map(one).collect();
        attributes(&format!("[{}]", all.join(", ")))
    }

    #[test]
    fn attempts_end_as_their_attributes_say() {
        let (status, grpc, error) = ("http.response.status_code", "rpc.grpc.status_code", "error.type");
        for (of, has_error, ending) in [
            (&[(status, r#"{"intValue": "200"}"#)][..], false, Ending::Good),
            (&[(status, r#"{"intValue": 404}"#)], false, Ending::Good),
            (&[(status, r#"{"intValue": 404}"#)], true, Ending::Failed),
            (&[(status, r#"{"intValue": "429"}"#)], false, Ending::Failed),
            (&[(error, r#"{"stringValue": "503"}"#)], false, Ending::Failed),
            (&[("http.status_code", r#"{"intValue": "307"}"#)], false, Ending::Moved),
            (&[(status, r#"{"intValue": "401"}"#)], true, Ending::Moved),
            (&[(error, r#"{"stringValue": "java.net.SocketTimeoutException"}"#)], true, Ending::TimedOut),
            (&[(error, r#"{"stringValue": "deadline_exceeded"}"#)], true, Ending::TimedOut),
            (&[(error, r#"{"stringValue": "java.io.IOException"}"#)], true, Ending::Failed),
            (&[(grpc, r#"{"intValue": "0"}"#)], false, Ending::Good),
            (&[(grpc, r#"{"intValue": "14"}"#)], false, Ending::Failed),
            (&[(grpc, r#"{"intValue": "5"}"#)], false, Ending::Good),
            (&[("rpc.response.status_code", r#"{"stringValue": "DEADLINE_EXCEEDED"}"#)], true, Ending::TimedOut),
            (&[], true, Ending::TimedOut),
            (&[], false, Ending::Good),
        ] {
            assert_eq!(otlp(of).ending(has_error), ending, "{of:?} {has_error}");
        }
        let jaeger = attributes(
            r#"[{"key": "error", "type": "bool", "value": true}, {"key": "http.status_code", "value": 500}]"#,
        );
        assert_eq!(jaeger.ending(false), Ending::Failed);
        let status =
            attributes(r#"[{"key": "otel.status_code", "value": "ERROR"}, {"key": "http.status_code", "value": 400}]"#);
        assert_eq!(status.ending(false), Ending::Failed);
    }

    #[test]
    fn values_are_read_in_every_form_and_the_best_name_of_the_peer_wins() {
        let found = otlp(&[
            ("server.address", r#"{"stringValue": "10.0.0.7"}"#),
            ("peer.service", r#"{"stringValue": "stock"}"#),
            ("rpc.service", r#"{"stringValue": "shop.Stock"}"#),
            (
                "http.response.header.retry-after",
                r#"{"arrayValue": {"values": [{"stringValue": "1.5"}, {"intValue": 9}]}}"#,
            ),
            ("http.request.resend_count", r#"{"intValue": "2"}"#),
            ("other", r#"{"kvlistValue": {"values": [{"key": "a"}]}}"#),
        ]);
        assert_eq!((&*found.peer, found.hint, found.resends), ("stock", 1_500_000_000, 2));
        let odd = otlp(&[
            ("http.request.resend_count", "null"),
            ("http.response.header.retry-after", r#"{"stringValue": "Wed, 21 Oct"}"#),
        ]);
        assert_eq!((odd.resends, odd.hint), (0, 0));
        for (wait, want) in [("31622400", 31_622_400_000_000_000), ("1795435202", 0), ("1795435202000", 0), ("inf", 0)]
        {
            let value = format!(r#"{{"stringValue": "{wait}"}}"#);
            let found = otlp(&[("http.response.header.retry-after", &value)]);
            assert_eq!(found.hint, want, "{wait}");
        }
        assert_eq!(
            [kind("3"), kind("SPAN_KIND_SERVER"), kind("client"), kind("5")],
            [Kind::Client, Kind::Server, Kind::Client, Kind::Internal]
        );
    }
}
