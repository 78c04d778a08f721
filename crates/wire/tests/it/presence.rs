//! What happens when a member is missing, `null`, or malformed, for every member of every type of the catalogue.

use attache_testkit::catalogue::{Catalogue, Field, Handling, Kind, MetaRule, Shape, Stability, Type};
use attache_testkit::registry::{GROUPS, INNER, reader};
use serde_json::{Map, Value, json};

#[test]
fn the_registry_has_every_type() {
    let names = Catalogue::v1().shapes().map(|shape| shape.name.as_str());
    let missing: Vec<&str> = names.filter(|name| reader(name).is_none() && !INNER.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn features_follow_the_stability_of_the_catalogue() {
    for (group, readers) in GROUPS {
        let expected = match *group {
            "stable" => Stability::Stable,
            "drafts" => Stability::Draft,
            _ => Stability::Unstable,
        };
        for (name, _) in *readers {
            assert_eq!(Catalogue::v1().named(name).stability, expected, "{name}");
        }
    }
}

#[test]
fn members_behave_as_the_catalogue_says() {
    let mut failures = Vec::new();
    for shape in Catalogue::v1().shapes() {
        for base in bases(shape) {
            probe(shape, &base, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

/// One minimal value per variant, because each has members of its own.
fn bases(shape: &Shape) -> Vec<Value> {
    let catalogue = Catalogue::v1();
    let minimal = catalogue.minimal(&shape.name);
    match &shape.kind {
        Kind::Tagged { tag, variants, .. } => variants
            .iter()
            .map(|variant| {
                let mut map = Map::new();
                map.extend(variant.tag.as_ref().map(|value| (tag.clone(), json!(value))));
                if let Some(Type::Named(name)) = &variant.body
                    && let Value::Object(members) = catalogue.minimal(name)
                {
                    map.extend(members);
                }
                for field in shape.fields.iter().chain(&variant.fields).filter(|field| field.required) {
                    map.insert(field.name.clone(), value_of(&field.ty));
                }
                Value::Object(map)
            })
            .collect(),
        Kind::Object | Kind::Untagged(_) => vec![minimal],
        _ => Vec::new(),
    }
}

/// A small but not empty value.
fn value_of(ty: &Type) -> Value {
    match ty {
        Type::Named(name) => Catalogue::v1().minimal(name),
        Type::List(item) => json!([value_of(item)]),
        Type::Map(item) => json!({ "k": value_of(item) }),
        Type::Text => json!("x"),
        Type::Bool => json!(true),
        Type::Number | Type::Int(..) => json!(1),
        Type::Any | Type::Object => json!({ "a": null }),
    }
}

fn probe(shape: &Shape, base: &Value, failures: &mut Vec<String>) {
    let Some(map) = base.as_object() else { return };
    let mut members = attache_testkit::normal::Members::default();
    let catalogue = Catalogue::v1();
    catalogue.members(shape, map, &mut members);
    let mut probe = Probe { shape, map, failures };
    probe.expect("minimal", map, Ok(base));
    if shape.nullable {
        probe.expect_value("null payload", &Value::Null, Ok(&json!({})));
    } else {
        probe.expect_value("null payload", &Value::Null, Err(()));
    }
    // RPC-25: objects are not read from positional arrays.
    probe.expect_value("positional array", &json!([]), Err(()));
    for field in members.fields.iter().filter(|field| !field.drop) {
        probe.field(field);
    }
    match members.meta {
        Some(MetaRule::Plain) => {
            probe.with("_meta", &json!(5), Ok(None));
            probe.with("_meta", &json!(null), Ok(None));
            probe.with("_meta", &json!({ "k": [null] }), Ok(Some(json!({ "k": [null] }))));
        }
        Some(MetaRule::Patch) => {
            probe.with("_meta", &json!(5), Ok(None));
            probe.with("_meta", &json!(null), Ok(Some(json!(null))));
        }
        _ => {}
    }
    // EXT-03: members that nobody knows are passed over.
    if !members.open {
        probe.with("noSuchMember", &json!({ "deep": [1] }), Ok(None));
    }
}

struct Probe<'a> {
    shape: &'a Shape,
    map: &'a Map<String, Value>,
    failures: &'a mut Vec<String>,
}

impl Probe<'_> {
    fn field(&mut self, field: &Field) {
        let name = field.name.as_str();
        let mut without = self.map.clone();
        without.remove(name);
        let absent = Value::Object(without.clone());
        // Unions without a tag become another variant, or none, when a member is missing: not what is asked here.
        if field.required {
            self.expect(&format!("`{name}` missing"), &without, Err(()));
        } else {
            self.expect(&format!("`{name}` missing"), &without, Ok(&absent));
        }
        let full = value_of(&field.ty);
        self.with(name, &full, Ok(Some(full.clone())));
        self.handling(field, &Value::Null, field.null);
        for wrong in Catalogue::v1().wrong(&field.ty) {
            if !wrong.is_null() {
                self.handling(field, &wrong, field.bad);
            }
        }
        let Type::List(item) = &field.ty else { return };
        let good = value_of(item);
        for wrong in Catalogue::v1().wrong(item) {
            let list = json!([wrong, good]);
            match field.item {
                Handling::Refused => self.with(name, &list, Err(())),
                Handling::Skipped => self.with(name, &list, Ok(Some(json!([good])))),
                _ => {}
            }
        }
    }

    fn handling(&mut self, field: &Field, value: &Value, handling: Handling) {
        let name = field.name.as_str();
        match handling {
            Handling::Refused => self.with(name, value, Err(())),
            Handling::Absent => self.with(name, value, Ok(None)),
            Handling::Default => self.with(name, value, Ok(field.default.clone())),
            Handling::Kept => self.with(name, value, Ok(Some(value.clone()))),
            Handling::Skipped | Handling::Other | Handling::Free => {}
        }
    }

    /// Puts a value into the member and expects it to be refused, left out (`None`) or become another.
    fn with(&mut self, name: &str, value: &Value, expected: Result<Option<Value>, ()>) {
        let mut map = self.map.clone();
        map.insert(name.to_owned(), value.clone());
        let expected = expected.map(|member| {
            let mut map = self.map.clone();
            map.remove(name);
            map.extend(member.map(|member| (name.to_owned(), member)));
            Value::Object(map)
        });
        self.expect(&format!("`{name}` = {value}"), &map, expected.as_ref().map_err(|_| ()));
    }

    fn expect(&mut self, what: &str, map: &Map<String, Value>, expected: Result<&Value, ()>) {
        self.expect_value(what, &Value::Object(map.clone()), expected);
    }

    fn expect_value(&mut self, what: &str, value: &Value, expected: Result<&Value, ()>) {
        let name = &self.shape.name;
        let Some(read) = reader(name) else { return };
        let got = read(&value.to_string());
        let failure = match (got, expected) {
            (Err(_), Err(())) => return,
            (Err(error), Ok(_)) => format!("refused: {error}"),
            (Ok(text), Err(())) => format!("read as {text}"),
            (Ok(text), Ok(expected)) => {
                let written: Value = serde_json::from_str(&text).unwrap();
                let catalogue = Catalogue::v1();
                match catalogue.same(name, &written, expected).and(catalogue.check_no_nulls(name, &written)) {
                    Ok(()) => return,
                    Err(failure) => failure,
                }
            }
        };
        self.failures.push(format!("{name}, {what}: {failure}"));
    }
}
