//! Conversions to the value of a form field. Version 2 has values of unlisted types too.

use super::ElicitationContentValue;

/// Converts payloads to variants.
macro_rules! values_from {
    ($($variant:ident($ty:ty)),+ $(,)?) => {
        $(impl From<$ty> for ElicitationContentValue {
            fn from(value: $ty) -> Self {
                ElicitationContentValue::$variant(value.into())
            }
        })+
    };
}

values_from! {
    String(String),
    String(&str),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    StringArray(Vec<String>),
}
