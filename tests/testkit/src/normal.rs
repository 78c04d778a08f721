//! Two JSON values of one type are the same if their normal forms are equal.
//!
//! The normal form leaves out what says nothing: members that are `null` where that means absent,
//! members that equal the default which absence means, and members that the type does not know
//! (they are dropped by every reader).

use serde_json::{Map, Value};

use crate::catalogue::{Catalogue, Field, Handling, Kind, MetaRule, Shape, Type, Variant};

/// The members that an object of some type may have.
#[derive(Debug, Default)]
pub struct Members<'a> {
    /// The members with their rules.
    pub fields: Vec<&'a Field>,
    /// Tags, with the value each must have.
    pub tags: Vec<(&'a str, &'a str)>,
    /// Whether other members are kept as they are.
    pub open: bool,
    /// Whether there is a `_meta`, and of which sort.
    pub meta: Option<MetaRule>,
}

impl Catalogue {
    /// The normal form of a value of a named type.
    pub fn normal(&self, name: &str, value: &Value) -> Value {
        match self.get(name) {
            Some(shape) => self.normal_shape(shape, value),
            None => value.clone(),
        }
    }

    fn normal_type(&self, ty: &Type, value: &Value) -> Value {
        match (ty, value) {
            (Type::Named(name), value) => self.normal(name, value),
            (Type::List(item), Value::Array(list)) => {
                list.iter().map(|entry| self.normal_type(item, entry)).collect()
            }
            (Type::Map(item), Value::Object(map)) => {
                let entry = |(key, value): (&String, &Value)| (key.clone(), self.normal_type(item, value));
                Value::Object(map.iter().map(entry).collect())
            }
            // 1 and 1.0 are one number where any number will do.
            (Type::Number, Value::Number(number)) => number.as_f64().map_or(value.clone(), Value::from),
            _ => value.clone(),
        }
    }

    fn normal_shape(&self, shape: &Shape, value: &Value) -> Value {
        if value.is_null() && shape.nullable {
            return Value::Object(Map::new());
        }
        if let Kind::Untagged(variants) = &shape.kind
            && let Some(Variant { body: Some(ty @ (Type::List(_) | Type::Number)), .. }) =
                variants.iter().find(|variant| self.fits(variant, value))
        {
            return self.normal_type(ty, value);
        }
        let Value::Object(map) = value else { return value.clone() };
        if matches!(shape.kind, Kind::Plain(_)) {
            return value.clone();
        }
        let mut members = Members::default();
        self.members(shape, map, &mut members);
        self.normal_members(&members, map)
    }

    fn normal_members(&self, members: &Members<'_>, map: &Map<String, Value>) -> Value {
        let mut normal = Map::new();
        for (name, value) in map {
            if members.tags.iter().any(|(tag, _)| tag == name) {
                normal.insert(name.clone(), value.clone());
            } else if let Some(field) = members.fields.iter().find(|field| field.name == *name) {
                normal.extend(self.normal_field(field, value).map(|value| (name.clone(), value)));
            } else if name == "_meta" && members.meta.is_some_and(|rule| rule != MetaRule::None) {
                let kept = value.is_object() || (value.is_null() && members.meta == Some(MetaRule::Patch));
                normal.extend(kept.then(|| (name.clone(), value.clone())));
            } else if members.open {
                normal.insert(name.clone(), value.clone());
            }
        }
        Value::Object(normal)
    }

    fn normal_field(&self, field: &Field, value: &Value) -> Option<Value> {
        if field.drop {
            return None;
        }
        if value.is_null() {
            return match field.null {
                Handling::Kept => Some(Value::Null),
                Handling::Default if field.required => field.default.clone(),
                Handling::Refused => Some(Value::Null),
                _ => None,
            };
        }
        let value = self.normal_type(&field.ty, value);
        let default = field.default.as_ref().map(|default| self.normal_type(&field.ty, default));
        (field.required || default.as_ref() != Some(&value)).then_some(value)
    }

    /// Gathers the members that this object of this type may have.
    pub fn members<'a>(&'a self, shape: &'a Shape, map: &Map<String, Value>, found: &mut Members<'a>) {
        found.fields.extend(&shape.fields);
        found.open |= shape.open;
        // The outermost type that has a `_meta` owns it: the variant's members stand in the same
        // object.
        if found.meta.is_none_or(|rule| rule == MetaRule::None) || shape.meta == MetaRule::Patch {
            found.meta = Some(shape.meta);
        }
        match &shape.kind {
            Kind::Tagged { tag, untagged, variants, .. } => {
                let variant = match map.get(tag).and_then(Value::as_str) {
                    Some(value) => variants.iter().find(|variant| variant.tag.as_deref() == Some(value)),
                    None => variants.iter().find(|variant| Some(&variant.name) == untagged.as_ref()),
                };
                match variant {
                    Some(variant) => self.variant_members(tag, variant, map, found),
                    // Of an unknown variant everything is kept that is not a member of all
                    // variants.
                    None => found.open = true,
                }
            }
            Kind::Untagged(variants) => {
                if let Some(variant) =
                    variants.iter().find(|variant| self.fits(variant, &Value::Object(map.clone())))
                {
                    self.variant_members("", variant, map, found);
                }
            }
            _ => {}
        }
    }

    fn variant_members<'a>(
        &'a self,
        tag: &'a str,
        variant: &'a Variant,
        map: &Map<String, Value>,
        found: &mut Members<'a>,
    ) {
        found.tags.extend(variant.tag.as_deref().map(|value| (tag, value)));
        found.fields.extend(&variant.fields);
        if let Some(Type::Named(name)) = &variant.body {
            self.members(self.named(name), map, found);
        }
    }

    /// Whether a value looks like a variant of a union without a tag.
    fn fits(&self, variant: &Variant, value: &Value) -> bool {
        let all_there = |fields: &[Field], value: &Value| {
            value.is_object()
                && fields.iter().all(|field| !field.required || value.get(&field.name).is_some())
        };
        match (&variant.body, value) {
            (None, value) => all_there(&variant.fields, value),
            (Some(Type::Named(name)), value) => all_there(&self.named(name).fields, value),
            (Some(Type::List(item)), Value::Array(list)) => list.iter().all(|entry| match &**item {
                Type::Named(name) => all_there(&self.named(name).fields, entry),
                _ => entry.is_string(),
            }),
            (Some(Type::Text), value) => value.is_string(),
            (Some(Type::Bool), value) => value.is_boolean(),
            (Some(Type::Int(..)), value) => value.is_i64(),
            (Some(Type::Number), value) => value.is_number(),
            _ => false,
        }
    }

    /// Output is minimal: what is absent is left out, not written as `null`.
    pub fn check_no_nulls(&self, name: &str, written: &Value) -> Result<(), String> {
        let Some(shape) = self.get(name) else { return Ok(()) };
        match self.idle_null(shape, written) {
            Some(member) => Err(format!("{name}: `{member}` is written as null, which says nothing")),
            None => Ok(()),
        }
    }

    fn idle_null(&self, shape: &Shape, written: &Value) -> Option<String> {
        let map = written.as_object()?;
        let mut members = Members::default();
        self.members(shape, map, &mut members);
        let idle = members.fields.iter().find(|field| {
            map.get(&field.name) == Some(&Value::Null)
                && matches!(field.null, Handling::Absent | Handling::Default)
        });
        if let Some(field) = idle {
            return Some(field.name.clone());
        }
        members.fields.iter().find_map(|field| {
            let value = map.get(&field.name)?;
            match (&field.ty, value) {
                (Type::Named(name), value) => self.idle_null(self.named(name), value),
                (Type::List(item), Value::Array(list)) => {
                    let Type::Named(name) = &**item else { return None };
                    list.iter().find_map(|entry| self.idle_null(self.named(name), entry))
                }
                _ => None,
            }
        })
    }

    /// Compares two values of a type and says where they differ.
    pub fn same(&self, name: &str, one: &Value, other: &Value) -> Result<(), String> {
        let (one, other) = (self.normal(name, one), self.normal(name, other));
        if one == other {
            return Ok(());
        }
        Err(format!("{name}: {one} is not {other}"))
    }
}
