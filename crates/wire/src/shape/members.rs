//! Objects that fit no table: members are taken one by one, and the rest stays available.

use std::borrow::Cow;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};

use super::modes::{Mode, Seed};
use super::object::in_member;
use super::raw::Raw;
use super::tagged::AnyStr;
use crate::Json;
use crate::fields::MAX_MEMBERS;

/// The undecoded members of one object, in their order on the wire.
#[derive(Default)]
pub(crate) struct Members<'de>(Vec<(Cow<'de, str>, Raw<'de>)>);

impl<'de> Members<'de> {
    /// Reads all members.
    pub(crate) fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key_seed(AnyStr)? {
            members.read(name, &mut map)?;
        }
        Ok(members)
    }

    /// Adds the member whose name was read last.
    pub(crate) fn read<A: MapAccess<'de>>(
        &mut self,
        name: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if self.0.len() == MAX_MEMBERS {
            return Err(A::Error::custom(format_args!("an object of more than {MAX_MEMBERS} members")));
        }
        self.0.push((name, map.next_value()?));
        Ok(())
    }

    /// Removes a member and reads it in mode `M`.
    pub(crate) fn take<M: Mode<T>, T, E: Error>(&mut self, name: &'static str) -> Result<T, E> {
        // As in objects read from a table, the last of several equal names counts.
        let mut found = None;
        self.0.retain_mut(|(key, value)| {
            let here = key == name;
            if here {
                found = Some(std::mem::take(value));
            }
            !here
        });
        match found {
            Some(raw) => raw.read(Seed::<M, T>::new()).map_err(E::custom).map_err(in_member(name)),
            None => M::absent().ok_or_else(|| E::missing_field(name)),
        }
    }

    /// Whether a member is present and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, value)| key == name && !value.is_null())
    }

    /// Returns the remaining members.
    pub(crate) fn into_entries(self) -> Vec<(String, Json)> {
        self.0.into_iter().map(|(name, value)| (name.into_owned(), value.into_json())).collect()
    }

    /// Returns the remaining members as the input for another object.
    pub(crate) fn rest<E: Error>(self) -> Rest<'de, E> {
        Rest { entries: self.0.into_iter(), value: None, error: std::marker::PhantomData }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Members<'de>, A::Error> {
        Members::from_map(map)
    }
}

/// See [`Members::rest`].
pub(crate) struct Rest<'de, E> {
    entries: std::vec::IntoIter<(Cow<'de, str>, Raw<'de>)>,
    value: Option<Raw<'de>>,
    error: std::marker::PhantomData<E>,
}

impl<'de, E: Error> MapAccess<'de> for Rest<'de, E> {
    type Error = E;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        let key: StrDeserializer<'_, E> = (&*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, E> {
        match self.value.take() {
            Some(raw) => raw.read(seed).map_err(E::custom),
            None => Err(E::custom("value requested before its name")),
        }
    }
}
