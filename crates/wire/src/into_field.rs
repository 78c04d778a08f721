//! Conversions that setters of optional fields and lists accept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::{Fields, Json, Patch};

/// A value that sets a field of type `T`.
///
/// [`Into`] alone cannot turn `&str` into `Option<String>`, so the setters of messages use this
/// trait. For a field of type `Option<T>` they take a `T`, an `Option<T>`, for text a `&str`, and
/// for lists a `Vec` or an array whose elements convert.
///
/// ```
/// use attache_wire::v1::{ElicitationSchema, StringPropertySchema};
///
/// let name = StringPropertySchema::new().title("Name").max_length(40).description(None);
/// let form = ElicitationSchema::new().properties([("name", name)]).required(["name"]);
/// assert_eq!(form.required, Some(vec!["name".to_owned()]));
/// ```
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` cannot be set to `{Self}`",
    label = "no conversion to `{T}`",
    note = "an optional field takes the value, an `Option` of exactly its type, or `&str` for text",
    note = "a list takes a `Vec` of exactly its element type, or an array of values that convert"
)]
pub trait IntoField<T> {
    /// Converts the value.
    fn into_field(self) -> T;
}

impl<T> IntoField<T> for T {
    fn into_field(self) -> T {
        self
    }
}

impl<T> IntoField<Option<T>> for T {
    fn into_field(self) -> Option<T> {
        Some(self)
    }
}

impl<T> IntoField<Option<Box<T>>> for T {
    fn into_field(self) -> Option<Box<T>> {
        Some(Box::new(self))
    }
}

impl<T> IntoField<Patch<T>> for T {
    fn into_field(self) -> Patch<T> {
        Patch::Set(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T> IntoField<Patch<T>> for Option<T> {
    fn into_field(self) -> Patch<T> {
        self.into()
    }
}

/// Converts by [`Into`] and wraps the result for fields that may be absent.
macro_rules! into_fields {
    ($([$($generics:tt)*] $from:ty => $to:ty: |$value:ident| $convert:expr;)+) => {
        $(#[diagnostic::do_not_recommend]
        impl<$($generics)*> $crate::IntoField<$to> for $from {
            fn into_field(self) -> $to {
                let $value = self;
                $convert
            }
        }
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> $crate::IntoField<Option<$to>> for $from {
            fn into_field(self) -> Option<$to> {
                Some($crate::IntoField::<$to>::into_field(self))
            }
        }
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> $crate::IntoField<$crate::Patch<$to>> for $from {
            fn into_field(self) -> $crate::Patch<$to> {
                $crate::Patch::Set($crate::IntoField::<$to>::into_field(self))
            }
        })+
    };
}

into_fields! {
    [] &str => String: |text| text.into();
    [] &String => String: |text| text.clone();
    [] Cow<'_, str> => String: |text| text.into();
    [] serde_json::Value => Json: |value| value.into();
    [T, U: Into<T>, const N: usize] [U; N] => Vec<T>: |list| list.into_iter().map(Into::into).collect();
    [K: Into<String>, V, U: Into<V>, const N: usize] [(K, U); N] => Fields<V>:
        |fields| fields.into_iter().map(|(name, value)| (name, value.into())).collect();
    [K: Into<String>, V: Into<String>, const N: usize] [(K, V); N] => BTreeMap<String, String>:
        |entries| entries.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
}

pub(crate) use into_fields;
