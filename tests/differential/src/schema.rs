//! The JSON Schema of the official crate, as a generator and a validator.

use std::collections::HashMap;
use std::sync::OnceLock;

use attache_testkit::sample::Rng;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The schema with a validator per type.
pub struct Schema {
    root: Value,
    validators: HashMap<String, Validator>,
}

const TEXTS: &[&str] =
    &["", "a", "/home/ada", "two\nlines", "\u{2028}", "grüße 👋🏽", "\"\\/\u{1}", "text", "null"];

impl Schema {
    /// The schema of version 1, with its unstable part.
    pub fn v1() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Schema::parse(include_str!("../data/schema.v1.json")))
    }

    /// The schema of version 2, with its unstable part.
    pub fn v2() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Schema::parse(include_str!("../data/schema.v2.json")))
    }

    /// # Panics
    /// If a file that comes with the crate is not a schema.
    fn parse(text: &str) -> Schema {
        let root: Value = serde_json::from_str(text).expect("JSON");
        let names = root["$defs"].as_object().expect("definitions").keys().cloned();
        let validators = names
            .map(|name| {
                let mut schema = root.clone();
                schema["$ref"] = json!(format!("#/$defs/{name}"));
                let validator = jsonschema::validator_for(&schema).expect("a schema");
                (name, validator)
            })
            .collect();
        Schema { root, validators }
    }

    /// Whether a value is valid for a type.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        let validator = self.validators.get(name).ok_or_else(|| format!("no type {name}"))?;
        validator.validate(value).map_err(|error| format!("{error} at {}", error.instance_path()))
    }

    /// A random valid value of a type.
    ///
    /// # Panics
    /// If none is found in many tries, which means that the generator misunderstands the schema.
    pub fn random(&self, name: &str, rng: &mut Rng) -> Value {
        let schema = &self.root["$defs"][name];
        // The generator ignores `not` and overlapping unions; the validator discards wrong values.
        let mut tries = (0..200).map(|_| self.make(schema, rng));
        tries
            .find(|value| self.check(name, value).is_ok())
            .unwrap_or_else(|| panic!("no valid value of {name}"))
    }

    fn make(&self, schema: &Value, rng: &mut Rng) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        let mut made = self.own(schema, rng);
        let referred = schema.get("$ref").and_then(Value::as_str).map(|path| self.referred(path));
        let all = schema["allOf"].as_array().into_iter().flatten();
        for part in referred.into_iter().chain(all) {
            made = merged(made, self.make(part, rng));
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(alternatives) = schema[union].as_array() {
                made = merged(made, self.make(rng.pick(alternatives), rng));
            }
        }
        made.unwrap_or_else(|| rng.pick(&[json!({ "a": [null] }), json!("any"), json!(0), json!([])]).clone())
    }

    fn referred(&self, path: &str) -> &Value {
        &self.root["$defs"][path.rsplit('/').next().unwrap_or_default()]
    }

    /// What the keywords of this very schema ask for, without those it refers to.
    fn own(&self, schema: &Value, rng: &mut Rng) -> Option<Value> {
        let name = match &schema["type"] {
            Value::String(name) => name.as_str(),
            Value::Array(names) => rng.pick(names).as_str()?,
            _ if schema.get("properties").is_some() => "object",
            _ => return None,
        };
        Some(match name {
            "null" => Value::Null,
            "boolean" => json!(rng.one_in(2)),
            "string" => json!(rng.pick(TEXTS)),
            "number" => rng.pick(&[json!(0.5), json!(-1.25e10), json!(0.0), json!(3.5)]).clone(),
            "integer" => integer(schema, rng),
            "array" => (0..rng.below(4)).map(|_| self.make(&schema["items"], rng)).collect(),
            _ => Value::Object(self.object(schema, rng)),
        })
    }

    fn object(&self, schema: &Value, rng: &mut Rng) -> Map<String, Value> {
        let mut map = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&name.as_str()) || rng.one_in(2) {
                map.insert(name.clone(), self.make(member, rng));
            }
        }
        if let Some(more) = schema.get("additionalProperties").filter(|more| **more != json!(false)) {
            for place in 0..rng.below(3) {
                map.insert(format!("key {place}"), self.make(more, rng));
            }
        }
        map
    }
}

fn integer(schema: &Value, rng: &mut Rng) -> Value {
    let values: &[Value] = match schema["format"].as_str() {
        Some("uint64") => &[json!(0), json!(7), json!(u64::MAX)],
        Some("uint32") => &[json!(0), json!(7), json!(u32::MAX)],
        Some("uint16") => &[json!(0), json!(1), json!(u16::MAX)],
        Some("int32") => &[json!(0), json!(i32::MIN), json!(i32::MAX)],
        _ => &[json!(0), json!(i64::MIN), json!(i64::MAX), json!(7)],
    };
    rng.pick(values).clone()
}

/// Two parts of one schema make one value; where both speak, the later one is the more special.
fn merged(one: Option<Value>, two: Value) -> Option<Value> {
    match (one, two) {
        (Some(Value::Object(mut one)), Value::Object(two)) => {
            one.extend(two);
            Some(Value::Object(one))
        }
        (_, two) => Some(two),
    }
}
