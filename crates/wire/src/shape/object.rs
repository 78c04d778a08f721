//! `object!`: a struct declared as a table of names and modes.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;

/// A type that is read from the members of an object.
pub(crate) trait FromMap: Sized {
    /// The type's name, for error messages.
    const NAME: &'static str;
    /// Whether `null` stands for the empty object.
    const NULLABLE: bool = false; // RPC-21, RPC-22
    /// Reads members until there are no more.
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

/// A type that writes its members into an open object.
pub(crate) trait ToMap {
    /// Adds the members.
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl<T: FromMap> FromMap for Box<T> {
    const NAME: &'static str = T::NAME;
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::from_map(map).map(Box::new)
    }
}

impl<T: ToMap> ToMap for Box<T> {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        (**self).to_map(map)
    }
}

// RPC-25
/// Reads an object. Arrays are refused, because there is no `visit_seq`.
pub(crate) fn read<'de, T: FromMap, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let visitor = ObjectVisitor(PhantomData);
    if T::NULLABLE { deserializer.deserialize_any(visitor) } else { deserializer.deserialize_map(visitor) }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: FromMap> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", T::NAME)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }
    fn visit_unit<E: Error>(self) -> Result<T, E> {
        if T::NULLABLE {
            return T::from_map(Empty(PhantomData));
        }
        Err(E::invalid_type(serde::de::Unexpected::Unit, &self))
    }
}

/// An object without members.
struct Empty<E>(PhantomData<E>);

impl<'de, E: Error> MapAccess<'de> for Empty<E> {
    type Error = E;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, _: K) -> Result<Option<K::Value>, E> {
        Ok(None)
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, _: V) -> Result<V::Value, E> {
        Err(E::custom("an empty object has no values"))
    }
}

/// Reads a member name as its index in a table; an unknown name is the table's length.
pub(crate) struct KeyIn(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyIn {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyIn {
    type Value = usize;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }
    fn visit_str<E>(self, name: &str) -> Result<usize, E> {
        Ok(self.0.iter().position(|known| *known == name).unwrap_or(self.0.len()))
    }
}

/// Adds the name of the member to an error.
pub(crate) fn in_member<E: Error>(name: &'static str) -> impl FnOnce(E) -> E {
    move |error| E::custom(format_args!("in `{name}`: {error}"))
}

/// Declares a message type as a table of its members.
///
/// ```text
/// object! {
///     /// Doc.
///     pub struct Name [nullable] {
///         required { /// Doc.
///                    field "wireName": Type [Mode], … }
///         optional { /// Doc.
///                    #[cfg(feature = "…")]
///                    field "wireName": Type [Mode], … }
///     }
/// }
/// ```
///
/// Required members are the arguments of `new`, and each optional one has a setter of its name.
/// Every type has `meta` (`_meta`) unless `no_meta!` follows the members.
macro_rules! object {
    ($(#[$doc:meta])* pub struct $name:ident $([$flag:ident])? {
        $(required { $($required:tt)+ })?
        $(optional { $($optional:tt)+ })?
    }) => {
        $crate::shape::object::object_impl! {
            [$($flag)?] { $(#[$doc])* } $name
            { $($($required)+)? }
            { $($($optional)+)?
              /// Custom metadata of extensions (`_meta`).
              meta "_meta" : Option<$crate::Meta> [OptionalMeta],
            }
        }
    };
    ($(#[$doc:meta])* pub struct $name:ident $([$flag:ident])? {
        $(required { $($required:tt)+ })?
        $(optional { $($optional:tt)+ })?
        no_meta!
    }) => {
        $crate::shape::object::object_impl! {
            [$($flag)?] { $(#[$doc])* } $name { $($($required)+)? } { $($($optional)+)? }
        }
    };
}

// INIT-19
/// Declares objects that have no member but `_meta`: empty messages, and capabilities whose
/// presence says yes.
macro_rules! empty_objects {
    ([nullable] $($(#[$doc:meta])* $name:ident,)+) => {
        $($crate::shape::object! { $(#[$doc])* pub struct $name [nullable] {} })+
    };
    ($($(#[$doc:meta])* $name:ident,)+) => {
        $($crate::shape::object! { $(#[$doc])* pub struct $name {} })+
    };
}

macro_rules! object_impl {
    ([$($flag:ident)?] { $(#[$doc:meta])* } $name:ident
     { $($(#[$rdoc:meta])* $rfield:ident $rname:literal : $rty:ty [$rmode:ident],)* }
     { $($(#[doc = $odoc:literal])* $(#[cfg($ocfg:meta)])?
         $ofield:ident $oname:literal : $oty:ty [$omode:ident],)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rdoc])* pub $rfield: $rty,)*
            $($(#[doc = $odoc])* $(#[cfg($ocfg)])? pub $ofield: $oty,)*
        }

        impl $name {
            #[doc = concat!("A `", stringify!($name), "` with its required members.")]
            #[allow(clippy::new_without_default, reason = "types without required members get Default elsewhere")]
            pub fn new($($rfield: $crate::shape::object::argument!($rmode $rty)),*) -> Self {
                $name {
                    $($rfield: $crate::shape::object::converted!($rmode $rfield),)*
                    $($(#[cfg($ocfg)])? $ofield: <$oty as Default>::default(),)*
                }
            }
            $($(#[doc = $odoc])* $(#[cfg($ocfg)])?
            pub fn $ofield(mut self, $ofield: impl $crate::IntoField<$oty>) -> Self {
                self.$ofield = $ofield.into_field();
                self
            })*
        }

        impl $crate::shape::FromMap for $name {
            const NAME: &'static str = stringify!($name);
            $($crate::shape::object::flag!($flag);)?

            #[allow(unused_mut, unused_assignments, unused_variables, reason = "types without members")]
            fn from_map<'de, A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                const NAMES: &[&str] = &[$($rname,)* $($(#[cfg($ocfg)])? $oname,)*];
                $(let mut $rfield: Option<$rty> = None;)*
                $($(#[cfg($ocfg)])? let mut $ofield: Option<$oty> = None;)*
                while let Some(key) = map.next_key_seed($crate::shape::object::KeyIn(NAMES))? {
                    let mut index = 0usize;
                    $(if key == index {
                        let seed = $crate::shape::modes::Seed::<$rmode, $rty>::new();
                        $rfield = Some(map.next_value_seed(seed).map_err($crate::shape::object::in_member($rname))?);
                        continue;
                    }
                    index += 1;)*
                    $($(#[cfg($ocfg)])? {
                        if key == index {
                            let seed = $crate::shape::modes::Seed::<$omode, $oty>::new();
                            $ofield = Some(map.next_value_seed(seed).map_err($crate::shape::object::in_member($oname))?);
                            continue;
                        }
                        index += 1;
                    })*
                    // EXT-03: unknown members are ignored.
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok($name {
                    $($rfield: match $rfield {
                        Some(value) => value,
                        None => <$rmode as $crate::shape::Mode<$rty>>::absent()
                            .ok_or_else(|| <A::Error as serde::de::Error>::missing_field($rname))?,
                    },)*
                    $($(#[cfg($ocfg)])? $ofield: match $ofield {
                        Some(value) => value,
                        None => <$omode as $crate::shape::Mode<$oty>>::absent().unwrap_or_default(),
                    },)*
                })
            }
        }

        impl $crate::shape::ToMap for $name {
            #[allow(unused_variables, reason = "types without members")]
            fn to_map<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(map.serialize_entry($rname, &self.$rfield)?;)*
                $($(#[cfg($ocfg)])? {
                    if !<$omode as $crate::shape::Mode<$oty>>::skip(&self.$ofield) {
                        map.serialize_entry($oname, &self.$ofield)?;
                    }
                })*
                Ok(())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::shape::object::read(deserializer)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $crate::shape::ToMap::to_map(self, &mut map)?;
                map.end()
            }
        }

        $crate::shape::object::default_if_empty! { $name [$($rfield)*] }
    };
}

/// Types without required members are their own default.
macro_rules! default_if_empty {
    ($name:ident []) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    ($name:ident [$($rfield:ident)+]) => {};
}

/// The type of a constructor argument. An array is inferred from an empty list only by `Into`, so
/// the conversion of each element is left to lists that are hardly ever empty.
macro_rules! argument {
    (RequiredList $ty:ty) => { impl $crate::IntoField<$ty> };
    ($mode:ident $ty:ty) => { impl Into<$ty> };
}

/// The value of an `argument!`.
macro_rules! converted {
    (RequiredList $value:ident) => {
        $value.into_field()
    };
    ($mode:ident $value:ident) => {
        $value.into()
    };
}

macro_rules! flag {
    (nullable) => {
        const NULLABLE: bool = true;
    };
}

pub(crate) use {argument, converted, default_if_empty, empty_objects, flag, object, object_impl};
