//! An object with free member names.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Maximum number of members of an object whose names are free: all of them are kept and compared
/// with each other.
pub(crate) const MAX_MEMBERS: usize = 1_024;

/// Named values in the order in which they were written. The order is kept because a form shows its
/// fields in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fields<V>(Vec<(String, V)>);

impl<V> Fields<V> {
    /// No fields.
    pub fn new() -> Self {
        Fields(Vec::new())
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Sets a field; a new one is appended.
    pub fn insert(&mut self, name: impl Into<String>, value: V) {
        let name = name.into();
        match self.0.iter_mut().find(|(field, _)| *field == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Fields<V> {
    fn default() -> Self {
        Fields::new()
    }
}

impl<K: Into<String>, V> Extend<(K, V)> for Fields<V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.insert(name, value);
        }
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for Fields<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        let mut all = Fields::new();
        all.extend(fields);
        all
    }
}

impl<K: Into<String>, V, const N: usize> From<[(K, V); N]> for Fields<V> {
    fn from(fields: [(K, V); N]) -> Self {
        fields.into_iter().collect()
    }
}

impl<V> IntoIterator for Fields<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: Serialize> Serialize for Fields<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Fields<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(PhantomData))
    }
}

struct FieldsVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for FieldsVisitor<V> {
    type Value = Fields<V>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<V>, A::Error> {
        let mut fields = Fields::new();
        while let Some((name, value)) = map.next_entry::<String, V>()? {
            if fields.len() == MAX_MEMBERS {
                return Err(A::Error::custom(format_args!("an object of more than {MAX_MEMBERS} members")));
            }
            fields.insert(name, value);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn fields_keep_their_order_and_the_last_of_equal_names_counts() {
        let fields: Fields<i64> = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(fields, Fields::from([("b", 3), ("a", 2)]));
        assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"b":3,"a":2}"#);
        assert_eq!((fields.get("a"), fields.get("c")), (Some(&2), None));
    }

    #[test]
    fn an_object_of_very_many_members_is_refused() {
        let object = |count: usize| {
            let members: Vec<String> = (0..count).map(|n| format!("\"f{n}\":1")).collect();
            serde_json::from_str::<Fields<i64>>(&format!("{{{}}}", members.join(",")))
        };
        assert_eq!(object(1024).unwrap().len(), 1024);
        assert!(object(1025).unwrap_err().to_string().contains("more than 1024 members"));
    }
}
