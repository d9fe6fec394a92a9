//! Values whose type differs between writers, and lists and objects that are passed over element by element, without
//! being kept.

use core::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text; anything else is empty.
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

/// An identifier in hexadecimal digits; anything else is hashed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Id(pub(super) u128);

/// A whole number, also as a text. 0 if it is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Number(pub(super) u64);

/// A value of an attribute: a text, a number as text, a truth value as text; of a list the first.
#[derive(Debug, Default)]
pub(super) struct Scalar(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl<'de> Visitor<'de> for Whole {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
                Ok(number)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
                Ok(u64::try_from(number).unwrap_or_default())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
                // Saturates, and NaN is 0.
                Ok(number as u64)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
                Ok(text.trim().parse().unwrap_or_default())
            }

            fn visit_unit<E: Error>(self) -> Result<u64, E> {
                Ok(0)
            }
        }
        deserializer.deserialize_any(Whole).map(Self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hex;
        impl Visitor<'_> for Hex {
            type Value = u128;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an identifier")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<u128, E> {
                Ok(identifier(text))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<u128, E> {
                Ok(number.into())
            }

            fn visit_unit<E: Error>(self) -> Result<u128, E> {
                Ok(0)
            }
        }
        deserializer.deserialize_any(Hex).map(Self)
    }
}

/// Returns the number of a text in hexadecimal digits, or a hash of any other; 0 if it is empty.
fn identifier(text: &str) -> u128 {
    if text.is_empty() {
        return 0;
    }
    u128::from_str_radix(text, 16).unwrap_or_else(|_| {
        // FNV-1a: the same in every run.
        text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
    })
}

/// Reads whatever is there as a text.
struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<String, E> {
        Ok(is.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let first = items.next_element::<Scalar>()?.unwrap_or_default();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.0)
    }

    /// Reads OTLP's `{"stringValue": "a"}`, and lists in it.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut found = String::new();
        while let Some(key) = map.next_key::<Text>()? {
            match &*key.0 {
                "stringValue" | "intValue" | "doubleValue" | "boolValue" | "arrayValue" | "values" | "string_value"
                | "int_value" | "double_value" | "bool_value" | "array_value" => {
                    found = map.next_value::<Scalar>()?.0;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// What is done with the elements of a list.
pub(super) trait Elements {
    const EXPECTED: &'static str;

    /// Reads the next element. Returns whether there was one.
    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error>;
}

/// What is done with the members of an object.
pub(super) trait Members {
    const EXPECTED: &'static str;

    /// Reads the value of a member.
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;

    /// Is called after the last member.
    fn end(&mut self) {}
}

/// A list; `null` has no elements.
pub(super) struct List<T>(pub(super) T);

/// An object; `null` has no members.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Elements> DeserializeSeed<'de> for List<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Elements> Visitor<'de> for List<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while self.0.element(&mut items)? {}
        Ok(())
    }
}

impl<'de, T: Members> DeserializeSeed<'de> for Object<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Members> Visitor<'de> for Object<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text>()? {
            self.0.member(&key.0, &mut map)?;
        }
        self.0.end();
        Ok(())
    }
}
