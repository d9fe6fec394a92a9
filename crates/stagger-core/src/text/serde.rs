//! Policies in TOML, JSON and the like: a table of settings in kebab-case, or the one-line form as a string.

use core::fmt::{self, Write as _};

use ::serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use ::serde::ser::SerializeMap as _;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::policy::{Draft, Key, Value, counts_retries};
use crate::numbers::ratio::Ratio;
use crate::policy::{Jitter, Policy};

/// Serializes a table: `backoff`, then every setting that the one-line form has, lengths as strings.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(BACKOFF, self.backoff().name())?;
        for (name, value) in self.settings() {
            match value {
                Value::Count(count) => map.serialize_entry(name, &count)?,
                Value::Number(number) => map.serialize_entry(name, &number)?,
                text => map.serialize_entry(name, &AsText(&text))?,
            }
        }
        map.end()
    }
}

/// Deserializes a table, or the one-line form as a string. Unknown keys are rejected.
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor)
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        /// Serializes the text form.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        /// Deserializes the text form, or a number.
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Scalar::new().deserialize(deserializer)?;
                text.as_str().parse().map_err(de::Error::custom)
            }
        }
    )*};
}

as_text!(Jitter, Ratio);

struct AsText<'a>(&'a dyn fmt::Display);

impl Serialize for AsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy, as a table or in one line like \"exponential base=500ms cap=30s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Policy, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Policy, A::Error> {
        let mut draft = Draft::default();
        // Each name and value is judged while it is read, so that the format can say where it stands.
        while let Some(name) = map.next_key_seed(Name)? {
            map.next_value_seed(Setting { draft: &mut draft, name: name.as_str() })?;
        }
        draft.finish().map_err(de::Error::custom)
    }
}

/// The name of a setting, or `backoff`.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar, D::Error> {
        let name = Scalar::new().deserialize(deserializer)?;
        match name.as_str() {
            // The error about a number of retries needs the number.
            word if word == BACKOFF || counts_retries(word) => {}
            word => {
                Key::named(word).map_err(de::Error::custom)?;
            }
        }
        Ok(name)
    }
}

/// The value of the setting `name`, which goes to the draft.
struct Setting<'a> {
    draft: &'a mut Draft,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Setting<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Scalar::new().deserialize(deserializer)?;
        match self.name {
            BACKOFF => self.draft.backoff(value.as_str()),
            name => self.draft.set(name, value.as_str()),
        }
        .map_err(de::Error::custom)
    }
}

/// The key of a table that names the backoff or the profile.
const BACKOFF: &str = "backoff";

/// A value as the one-line form would have it: a string, a number, or a list of them.
struct Scalar {
    bytes: [u8; Self::ROOM],
    len: usize,
}

impl Scalar {
    /// Room for a list of sixteen delays.
    const ROOM: usize = 512;

    const fn new() -> Self {
        Self { bytes: [0; Self::ROOM], len: 0 }
    }

    fn as_str(&self) -> &str {
        // Only whole strings are written.
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    fn push<E: de::Error>(mut self, value: fmt::Arguments<'_>) -> Result<Self, E> {
        match self.write_fmt(value) {
            Ok(()) => Ok(self),
            Err(_) => Err(E::custom("a value is longer than 512 bytes, which no setting needs; shorten it")),
        }
    }
}

impl fmt::Write for Scalar {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes[self.len..].get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = Self;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a list of lengths of time")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self, E> {
        self.push(format_args!("{text}"))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self, E> {
        self.push(format_args!("{number}"))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self, E> {
        self.push(format_args!("{number}"))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self, E> {
        self.push(format_args!("{number}"))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Self, A::Error> {
        let mut comma = "";
        while let Some(one) = seq.next_element_seed(Self::new())? {
            self = self.push(format_args!("{comma}{}", one.as_str()))?;
            comma = ",";
        }
        Ok(self)
    }
}
