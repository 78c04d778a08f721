//! Conversions to the id of a request. An id can be `null` in version 1 only.

use super::RequestId;

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        RequestId::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        RequestId::Str(text.to_owned())
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> Self {
        RequestId::Str(text)
    }
}
