//! `tagged!`: a union whose variant is named by one member of the object.
//!
//! If the tag is the first member, the variant reads the rest directly from the input. Otherwise
//! the members before it are kept as raw text and replayed; nothing is parsed into a tree.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};

use super::object::ToMap;
use super::raw::Raw;
use crate::Json;

/// A variant that this version of the protocol does not know, kept unchanged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Unknown {
    /// The tag's value.
    pub tag: String,
    /// The whole object, tag included.
    pub object: Json,
}

impl Unknown {
    /// Rebuilds the object around an unknown tag.
    pub(crate) fn collect<'de, A: MapAccess<'de>>(
        name: &str,
        tag: &str,
        mut map: A,
    ) -> Result<Self, A::Error> {
        let quote = |text: &str| serde_json::to_string(text).map_err(A::Error::custom);
        let mut object = format!("{{{}:{}", quote(name)?, quote(tag)?);
        while let Some((key, value)) = map.next_entry::<String, Raw<'de>>()? {
            object.push(',');
            object.push_str(&quote(&key)?);
            object.push(':');
            object.push_str(value.get());
        }
        object.push('}');
        Ok(Unknown { tag: tag.to_owned(), object: Json::from_text(object).map_err(A::Error::custom)? })
    }

    /// Refuses the object unless it has all of these members as strings.
    pub(crate) fn with_texts<E: Error>(self, names: &[&'static str]) -> Result<Self, E> {
        match names.iter().find(|name| self.get::<String>(name).is_none()) {
            Some(name) => Err(E::missing_field(name)),
            None => Ok(self),
        }
    }

    /// Reads one member; `None` if it is absent or of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let members: BTreeMap<String, Json> = self.object.parse().ok()?;
        members.get(name)?.parse().ok()
    }
}

impl ToMap for Unknown {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let members: BTreeMap<String, Json> = self.object.parse().map_err(M::Error::custom)?;
        members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

/// A union that is read by its tag.
pub(crate) trait Tagged: Sized {
    const NAME: &'static str;
    const TAG: &'static str;
    /// The variant named by the tag, from the other members.
    fn from_tag<'de, A: MapAccess<'de>>(tag: &str, map: A) -> Result<Self, A::Error>;
    /// The variant of an object that has no tag.
    fn untagged<'de, A: MapAccess<'de>>(_map: A) -> Result<Self, A::Error> {
        Err(A::Error::missing_field(Self::TAG))
    }
}

pub(crate) fn read<'de, T: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", T::NAME)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        from_members(map)
    }
}

/// Maximum number of members before the tag, which are buffered.
const MAX_BEFORE_TAG: usize = 256;

/// Finds the tag among an object's members and reads the variant.
pub(crate) fn from_members<'de, T: Tagged, A: MapAccess<'de>>(mut map: A) -> Result<T, A::Error> {
    let mut before: Vec<(Cow<'de, str>, Raw<'de>)> = Vec::new();
    while let Some(key) = map.next_key_seed(AnyStr)? {
        if key == T::TAG {
            let tag = map.next_value_seed(TagOrNull).map_err(super::object::in_member(T::TAG))?;
            // A `null` tag is no tag.
            let Some(tag) = tag else { continue };
            return if before.is_empty() {
                T::from_tag(&tag, map)
            } else {
                T::from_tag(&tag, Replay { before: before.into_iter(), value: None, rest: map })
            };
        }
        if before.len() == MAX_BEFORE_TAG {
            return Err(A::Error::custom(format_args!(
                "more than {MAX_BEFORE_TAG} members before `{}`",
                T::TAG
            )));
        }
        before.push((key, map.next_value()?));
    }
    T::untagged(Replay { before: before.into_iter(), value: None, rest: map })
}

/// A string, borrowed from the input if possible.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a seed without state")]
pub struct AnyStr;

impl<'de> DeserializeSeed<'de> for AnyStr {
    type Value = Cow<'de, str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for AnyStr {
    type Value = Cow<'de, str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The value of a tag: a string, or `null`.
struct TagOrNull;

impl<'de> DeserializeSeed<'de> for TagOrNull {
    type Value = Option<Cow<'de, str>>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for TagOrNull {
    type Value = Option<Cow<'de, str>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        AnyStr.deserialize(deserializer).map(Some)
    }
}

/// The members that stood before the tag, then those after it.
pub(crate) struct Replay<'de, A> {
    before: std::vec::IntoIter<(Cow<'de, str>, Raw<'de>)>,
    value: Option<Raw<'de>>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Replay<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some((key, value)) = self.before.next() else { return self.rest.next_key_seed(seed) };
        self.value = Some(value);
        let key: StrDeserializer<'_, A::Error> = (&*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            None => self.rest.next_value_seed(seed),
            Some(raw) => raw.read(seed).map_err(A::Error::custom),
        }
    }
}

/// Declares a union.
///
/// ```text
/// tagged! {
///     /// Doc.
///     pub enum Name by "tag" [no_from] {   without `From`, where a type stands for several variants
///         /// Doc.
///         Variant(Type) = "tag_value", …
///     }
///     [untagged                  objects without a tag, or with the one after `or`; written without
///      /// Doc.
///      Variant(Type) [or "tag_value"]]
///     [other Variant ["name" …]] unknown tags are kept as `Unknown`, whose listed members must be texts; without
///                                this line unknown tags are refused
/// }
/// ```
macro_rules! tagged {
    ($(#[$doc:meta])* pub enum $name:ident by $tag:literal $([$flag:ident])? {
        $($(#[doc = $vdoc:literal])* $(#[cfg($vcfg:meta)])? $variant:ident($ty:ty) = $value:literal),+ $(,)?
    }
    $(untagged $(#[$udoc:meta])* $uvariant:ident($uty:ty) $(or $uvalue:literal)?)?
    $(other $(#[$kdoc:meta])* $kvariant:ident $([$($needed:literal)+])?)?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $vdoc])* $(#[cfg($vcfg)])? $variant($ty),)+
            $($(#[$udoc])* $uvariant($uty),)?
            $(
                /// An unknown variant, kept unchanged.
                $(#[$kdoc])*
                $kvariant($crate::Unknown),
            )?
        }

        $crate::shape::tagged::from_variants! {
            [$($flag)?] $name $($(#[cfg($vcfg)])? $variant($ty))+ $($uvariant($uty))?
        }

        impl $crate::shape::tagged::Tagged for $name {
            const NAME: &'static str = stringify!($name);
            const TAG: &'static str = $tag;
            fn from_tag<'de, A: serde::de::MapAccess<'de>>(tag: &str, map: A) -> Result<Self, A::Error> {
                // V2-20, V2-21: only an unlisted tag is kept as unknown; the payload of a listed
                // one must be right.
                match tag {
                    $($(#[cfg($vcfg)])? $value => <$ty as $crate::shape::FromMap>::from_map(map).map($name::$variant),)+
                    $($($uvalue => <$uty as $crate::shape::FromMap>::from_map(map).map($name::$uvariant),)?)?
                    $(other => $crate::Unknown::collect($tag, other, map)
                        $(.and_then(|unknown| unknown.with_texts(&[$($needed),+])))?
                        .map($name::$kvariant),)?
                    #[allow(unreachable_patterns, reason = "only unions without a catch-all get here")]
                    other => Err(<A::Error as serde::de::Error>::unknown_variant(other, &[$($(#[cfg($vcfg)])? $value),+])),
                }
            }
            $(fn untagged<'de, A: serde::de::MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
                <$uty as $crate::shape::FromMap>::from_map(map).map($name::$uvariant)
            })?
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::shape::tagged::read(deserializer)
            }
        }

        impl $crate::shape::FromMap for $name {
            const NAME: &'static str = stringify!($name);
            fn from_map<'de, A: serde::de::MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
                $crate::shape::tagged::from_members(map)
            }
        }

        impl $crate::shape::ToMap for $name {
            fn to_map<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $($(#[cfg($vcfg)])? $name::$variant(value) => {
                        map.serialize_entry($tag, $value)?;
                        $crate::shape::ToMap::to_map(value, map)
                    })+
                    $($name::$uvariant(value) => $crate::shape::ToMap::to_map(value, map),)?
                    $($name::$kvariant(unknown) => $crate::shape::ToMap::to_map(unknown, map),)?
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                match self {
                    $($name::$kvariant(unknown) => serde::Serialize::serialize(unknown, serializer),)?
                    #[allow(unreachable_patterns, reason = "not every union has a catch-all")]
                    known => {
                        let mut map = serializer.serialize_map(None)?;
                        $crate::shape::ToMap::to_map(known, &mut map)?;
                        map.end()
                    }
                }
            }
        }
    };
}

/// Converts payloads to the union.
macro_rules! from_variants {
    ([] $name:ident $($(#[cfg($cfg:meta)])? $variant:ident($ty:ty))+) => {
        $($(#[cfg($cfg)])?
        impl From<$ty> for $name {
            fn from(value: $ty) -> Self {
                $name::$variant(value)
            }
        }
        $(#[cfg($cfg)])?
        $crate::into_field::into_fields! { [] $ty => $name: |value| value.into(); })+
    };
    ([no_from] $($rest:tt)*) => {};
}

/// Converts payloads to a union whose variants are named like them.
macro_rules! from_payloads {
    ($union:ident: $($payload:ident $(($boxed:ident))?),+ $(,)?) => {
        $(impl From<$payload> for $union {
            fn from(payload: $payload) -> Self {
                $union::$payload($($boxed::new)?(payload))
            }
        })+
    };
}

pub(crate) use {from_payloads, from_variants, tagged};
