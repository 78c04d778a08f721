//! `flattened!`: an object with common members and unions that share it.

use serde::de::Error;

use super::members::Members;
use super::tagged::{Tagged, from_members};

/// A part of an object that is read from the members which the common ones leave.
pub(crate) trait Flat: Sized {
    /// Takes the members of the part.
    fn take<E: Error>(members: &mut Members<'_>) -> Result<Self, E>;
}

impl<T: Tagged> Flat for T {
    fn take<E: Error>(members: &mut Members<'_>) -> Result<Self, E> {
        from_members(std::mem::take(members).rest())
    }
}

/// Declares an object whose members are followed by those of unions, as a table like `object!`.
///
/// ```text
/// flattened! {
///     /// Doc.
///     pub struct Name {
///         [required { … }]
///         unions { /// Doc.
///                  field: Type, … }   arguments of `new` after the required members
///         [optional { … }]
///     }
/// }
/// ```
///
/// A union that takes all members that are left stands last. Every type has `meta` (`_meta`).
macro_rules! flattened {
    ($(#[$doc:meta])* pub struct $name:ident {
        $(required { $($(#[$rdoc:meta])* $rfield:ident $rname:literal : $rty:ty [$rmode:ident],)+ })?
        unions { $($(#[$udoc:meta])* $ufield:ident : $uty:ty,)+ }
        $(optional { $($(#[doc = $odoc:literal])* $(#[cfg($ocfg:meta)])?
                       $ofield:ident $oname:literal : $oty:ty [$omode:ident],)+ })?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($($(#[$rdoc])* pub $rfield: $rty,)+)?
            $($(#[$udoc])* pub $ufield: $uty,)+
            $($($(#[doc = $odoc])* $(#[cfg($ocfg)])? pub $ofield: $oty,)+)?
            /// Custom metadata of extensions (`_meta`).
            pub meta: Option<$crate::Meta>,
        }

        impl $name {
            #[doc = concat!("A `", stringify!($name), "` with its required members.")]
            pub fn new($($($rfield: impl Into<$rty>,)+)? $($ufield: impl Into<$uty>),+) -> Self {
                $name {
                    $($($rfield: $rfield.into(),)+)?
                    $($ufield: $ufield.into(),)+
                    $($($(#[cfg($ocfg)])? $ofield: <$oty as Default>::default(),)+)?
                    meta: None,
                }
            }
            $($($(#[doc = $odoc])* $(#[cfg($ocfg)])?
            pub fn $ofield(mut self, $ofield: impl $crate::IntoField<$oty>) -> Self {
                self.$ofield = $ofield.into_field();
                self
            })+)?
            /// Custom metadata of extensions (`_meta`).
            pub fn meta(mut self, meta: impl $crate::IntoField<Option<$crate::Meta>>) -> Self {
                self.meta = meta.into_field();
                self
            }
        }

        impl $crate::shape::FromMap for $name {
            const NAME: &'static str = stringify!($name);
            fn from_map<'de, A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                let mut members = $crate::shape::Members::default();
                $($(let mut $rfield: Option<$rty> = None;)+)?
                $($($(#[cfg($ocfg)])? let mut $ofield: Option<$oty> = None;)+)?
                let mut meta: Option<Option<$crate::Meta>> = None;
                while let Some(key) = map.next_key_seed($crate::shape::tagged::AnyStr)? {
                    match &*key {
                        $($($rname => $rfield = Some($crate::shape::flattened::value!($rname $rty [$rmode] map)),)+)?
                        $($($(#[cfg($ocfg)])? $oname => {
                            $ofield = Some($crate::shape::flattened::value!($oname $oty [$omode] map));
                        })+)?
                        "_meta" => meta = Some($crate::shape::flattened::value!("_meta" _ [OptionalMeta] map)),
                        _ => members.read(key, &mut map)?,
                    }
                }
                Ok($name {
                    $($($rfield: match $rfield {
                        Some(value) => value,
                        None => <$rmode as $crate::shape::Mode<$rty>>::absent()
                            .ok_or_else(|| <A::Error as serde::de::Error>::missing_field($rname))?,
                    },)+)?
                    $($($(#[cfg($ocfg)])? $ofield: match $ofield {
                        Some(value) => value,
                        None => <$omode as $crate::shape::Mode<$oty>>::absent().unwrap_or_default(),
                    },)+)?
                    meta: meta.flatten(),
                    // The unions get the members that are left, in this order.
                    $($ufield: $crate::shape::Flat::take::<A::Error>(&mut members)?,)+
                })
            }
        }

        impl $crate::shape::ToMap for $name {
            fn to_map<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $($(map.serialize_entry($rname, &self.$rfield)?;)+)?
                $($($(#[cfg($ocfg)])? {
                    if !<$omode as $crate::shape::Mode<$oty>>::skip(&self.$ofield) {
                        map.serialize_entry($oname, &self.$ofield)?;
                    }
                })+)?
                $($crate::shape::ToMap::to_map(&self.$ufield, map)?;)+
                match &self.meta {
                    Some(meta) => map.serialize_entry("_meta", meta),
                    None => Ok(()),
                }
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
    };
}

/// Reads the value of a member that is declared in the table.
macro_rules! value {
    ($name:literal $ty:ty [$mode:ident] $map:ident) => {
        $map.next_value_seed($crate::shape::modes::Seed::<$crate::shape::$mode, $ty>::new())
            .map_err($crate::shape::object::in_member($name))?
    };
}

pub(crate) use {flattened, value};
