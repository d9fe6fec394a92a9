//! Lists and objects that are passed over element by element, without being kept.

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::scalar::Text;

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
