//! Values of a type: the smallest one, random ones, and ones that are wrong.

use serde_json::{Map, Value, json};

use crate::catalogue::{Catalogue, Field, Handling, Kind, MetaRule, Shape, Type, Variant};

/// A small repeatable source of rng (xorshift64*), so that a failing test is repeated by its seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring streams, and the state must not be zero.
        Rng(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 32) as usize % end.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "plain words",
    "/home/ada/demo",
    "line\nbreak\ttab",
    "quote \" backslash \\ slash /",
    "\u{2028}\u{2029}",
    "grüße 👋🏽 ꙮ",
    "\u{0}\u{1f}",
    "null",
    "text",
    "type",
];

impl Catalogue {
    /// The smallest value of a type: required members only.
    pub fn minimal(&self, name: &str) -> Value {
        Maker { catalogue: self, rng: None }.shape(self.named(name))
    }

    /// A random valid value of a type.
    pub fn random(&self, name: &str, rng: &mut Rng) -> Value {
        Maker { catalogue: self, rng: Some(rng) }.shape(self.named(name))
    }

    /// Values that are not of this type; empty if everything is.
    pub fn wrong(&self, ty: &Type) -> Vec<Value> {
        match ty {
            Type::Text => vec![json!(5), json!({}), json!([]), json!(true)],
            Type::Bool => vec![json!("yes"), json!(1), json!({}), json!([])],
            Type::Number => vec![json!("1"), json!({}), json!([1])],
            Type::Object | Type::Map(_) => vec![json!("x"), json!(5), json!([1])],
            Type::List(_) => vec![json!("x"), json!(5), json!({})],
            Type::Any => Vec::new(),
            Type::Int(low, high) => {
                let mut list = vec![json!("1"), json!(1.5), json!({})];
                list.extend((*low >= 0).then(|| int(low - 1)));
                list.extend(i64::try_from(high + 1).ok().map(Value::from));
                list
            }
            Type::Named(name) => match &self.named(name).kind {
                Kind::Plain(ty) => self.wrong(ty),
                Kind::Enum { unknown, .. } => {
                    let mut list = vec![json!(5), json!({})];
                    list.extend((*unknown == Handling::Refused).then(|| json!("no_such_value")));
                    list
                }
                Kind::Id => Vec::new(),
                // A positional array is wrong too (RPC-25).
                Kind::Object => vec![json!("x"), json!(5), json!(["x", "y"])],
                Kind::Tagged { .. } => vec![json!("x"), json!(5), json!(["x"])],
                Kind::Untagged(_) => vec![json!({}), json!(null)],
            },
        }
    }
}

/// Makes values; without rng the smallest ones.
struct Maker<'a> {
    catalogue: &'a Catalogue,
    rng: Option<&'a mut Rng>,
}

impl Maker<'_> {
    fn shape(&mut self, shape: &Shape) -> Value {
        let mut map = Map::new();
        match &shape.kind {
            Kind::Plain(ty) => return self.ty(ty),
            Kind::Id => {
                return match self.rng.as_mut().map(|rng| rng.below(3)) {
                    Some(0) => json!("id-1"),
                    Some(1) => json!(-1),
                    _ => json!(7),
                };
            }
            Kind::Enum { values, unknown } => {
                let Some(rng) = &mut self.rng else { return json!(values[0]) };
                if *unknown == Handling::Kept && rng.one_in(4) {
                    return json!("_own");
                }
                return json!(rng.pick(values));
            }
            Kind::Untagged(variants) => {
                let variant = self.choose(variants);
                match &variant.body {
                    Some(ty @ Type::Named(_)) => {
                        if let Value::Object(members) = self.ty(ty) {
                            map.extend(members);
                        }
                    }
                    Some(plain) => return self.ty(plain),
                    None => self.fields(&variant.fields, &mut map),
                }
            }
            Kind::Tagged { tag, unknown, variants, other, .. } => {
                if *unknown == Handling::Kept
                    && let Some(rng) = &mut self.rng
                    && rng.one_in(8)
                {
                    map.insert(tag.clone(), json!("_vendor"));
                    // An elicitation of an unknown mode still needs its scope; elsewhere it is one
                    // more member.
                    map.insert("sessionId".to_owned(), json!("s"));
                    map.insert("payload".to_owned(), json!({ "deep": [null, 1, { "x": "\u{2028}" }] }));
                    self.fields(other, &mut map);
                } else {
                    let variant = self.choose(variants);
                    map.extend(variant.tag.as_ref().map(|value| (tag.clone(), json!(value))));
                    if let Some(ty) = &variant.body
                        && let Value::Object(members) = self.ty(ty)
                    {
                        map.extend(members);
                    }
                    self.fields(&variant.fields, &mut map);
                }
            }
            Kind::Object => {}
        }
        self.fields(&shape.fields, &mut map);
        self.meta(shape.meta, &mut map);
        Value::Object(map)
    }

    fn choose<'v>(&mut self, variants: &'v [Variant]) -> &'v Variant {
        match &mut self.rng {
            Some(rng) => rng.pick(variants),
            None => &variants[0],
        }
    }

    fn fields(&mut self, fields: &[Field], map: &mut Map<String, Value>) {
        for field in fields {
            let present = match &mut self.rng {
                _ if field.required => true,
                _ if field.drop => false,
                Some(rng) => rng.one_in(2),
                None => false,
            };
            if !present {
                continue;
            }
            let null = !field.required
                && matches!(field.null, Handling::Absent | Handling::Kept)
                && self.rng.as_mut().is_some_and(|rng| rng.one_in(5));
            let value = if null { Value::Null } else { self.ty(&field.ty) };
            map.insert(field.name.clone(), value);
        }
    }

    fn meta(&mut self, rule: MetaRule, map: &mut Map<String, Value>) {
        let Some(rng) = &mut self.rng else { return };
        if rule == MetaRule::None || !rng.one_in(6) {
            return;
        }
        let null = rng.one_in(4);
        let meta = if null { Value::Null } else { json!({ "dev.example/x": [1, null, { "y": "z" }] }) };
        map.insert("_meta".to_owned(), meta);
    }

    fn ty(&mut self, ty: &Type) -> Value {
        let catalogue = self.catalogue;
        match ty {
            Type::Named(name) => self.shape(catalogue.named(name)),
            Type::List(item) => {
                let length = self.rng.as_mut().map_or(0, |rng| rng.below(4));
                (0..length).map(|_| self.ty(item)).collect()
            }
            Type::Map(item) => {
                let length = self.rng.as_mut().map_or(0, |rng| rng.below(3));
                let entry = |place| (format!("key {place}"), self.ty(item));
                Value::Object((0..length).map(entry).collect())
            }
            Type::Text => match &mut self.rng {
                Some(rng) => json!(rng.pick(TEXTS)),
                None => json!("x"),
            },
            Type::Bool => json!(self.rng.as_mut().is_some_and(|rng| rng.one_in(2))),
            Type::Number => match &mut self.rng {
                Some(rng) => rng.pick(&[json!(0), json!(0.25), json!(-1.5e300), json!(3)]).clone(),
                None => json!(1),
            },
            Type::Int(low, high) => match &mut self.rng {
                Some(rng) => int(*rng.pick(&[*low, *high, 0.max(*low), 1, 42])),
                None => json!(1),
            },
            Type::Object => json!({ "k": { "n": null } }),
            Type::Any => match &mut self.rng {
                Some(rng) => {
                    let values = [
                        json!({ "a": [1, { "b": null }] }),
                        json!([1, "two"]),
                        json!("s"),
                        json!(0),
                        json!(false),
                    ];
                    rng.pick(&values).clone()
                }
                None => json!({ "a": null }),
            },
        }
    }
}

fn int(number: i128) -> Value {
    i64::try_from(number)
        .map(Value::from)
        .or_else(|_| u64::try_from(number).map(Value::from))
        .unwrap_or(Value::Null)
}

/// JSON text of a value with the members of every object in a random order.
pub fn shuffled(value: &Value, rng: &mut Rng) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            for place in (1..entries.len()).rev() {
                entries.swap(place, rng.below(place + 1));
            }
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), shuffled(value, rng)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(list) => {
            let entries: Vec<String> = list.iter().map(|entry| shuffled(entry, rng)).collect();
            format!("[{}]", entries.join(","))
        }
        plain => plain.to_string(),
    }
}
