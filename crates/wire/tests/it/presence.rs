//! What happens when a member is missing, `null`, or malformed, for every member of every type of
//! the catalogue.

use attache_testkit::catalogue::{
    Catalogue, Field, Handling, Kind, MetaRule, Shape, Stability, Type, Variant,
};
use attache_testkit::registry::{Reader, V1, V2, Version};
use serde_json::{Map, Value, json};

#[test]
fn the_registry_has_every_type() {
    for version in [V1, V2] {
        let names = (version.catalogue)().shapes().map(|shape| shape.name.as_str());
        let missing: Vec<&str> =
            names.filter(|name| version.reader(name).is_none() && !version.inner.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn features_follow_the_stability_of_the_catalogue() {
    for version in [V1, V2] {
        for (group, readers) in version.groups {
            let expected = match *group {
                "stable" => Stability::Stable,
                "drafts" => Stability::Draft,
                _ => Stability::Unstable,
            };
            for (name, _) in *readers {
                assert_eq!((version.catalogue)().named(name).stability, expected, "{name}");
            }
        }
    }
}

#[test]
fn members_of_version_1_behave_as_the_catalogue_says() {
    members_behave(V1);
}

#[test]
fn members_of_version_2_behave_as_the_catalogue_says() {
    // shows V2-17, V2-20, V2-21, V2-44
    members_behave(V2);
}

fn members_behave(version: Version) {
    let mut failures = Vec::new();
    let catalogue = (version.catalogue)();
    for shape in catalogue.shapes() {
        for base in bases(catalogue, shape) {
            let Some(read) = version.reader(&shape.name) else { continue };
            probe(catalogue, shape, read, &base, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

/// One minimal value per variant, because each has members of its own.
fn bases(catalogue: &Catalogue, shape: &Shape) -> Vec<Value> {
    let minimal = catalogue.minimal(&shape.name);
    match &shape.kind {
        Kind::Tagged { tag, variants, other, .. } => {
            let with_required = |mut map: Map<String, Value>, fields: &[Field]| {
                for field in shape.fields.iter().chain(fields).filter(|field| field.required) {
                    map.insert(field.name.clone(), value_of(catalogue, &field.ty));
                }
                Value::Object(map)
            };
            let variant = |variant: &Variant| {
                let mut map = Map::new();
                map.extend(variant.tag.as_ref().map(|value| (tag.clone(), json!(value))));
                if let Some(Type::Named(name)) = &variant.body
                    && let Value::Object(members) = catalogue.minimal(name)
                {
                    map.extend(members);
                }
                with_required(map, &variant.fields)
            };
            let mut bases: Vec<Value> = variants.iter().map(variant).collect();
            if !other.is_empty() {
                bases.push(with_required(Map::from_iter([(tag.clone(), json!("_vendor"))]), other));
            }
            bases
        }
        Kind::Object | Kind::Untagged(_) => vec![minimal],
        _ => Vec::new(),
    }
}

/// A small but not empty value.
fn value_of(catalogue: &Catalogue, ty: &Type) -> Value {
    match ty {
        Type::Named(name) => catalogue.minimal(name),
        Type::List(item) => json!([value_of(catalogue, item)]),
        Type::Map(item) => json!({ "k": value_of(catalogue, item) }),
        Type::Text => json!("x"),
        Type::Bool => json!(true),
        Type::Number | Type::Int(..) => json!(1),
        Type::Any | Type::Object => json!({ "a": null }),
    }
}

fn probe(catalogue: &Catalogue, shape: &Shape, read: Reader, base: &Value, failures: &mut Vec<String>) {
    let Some(map) = base.as_object() else { return };
    let mut members = attache_testkit::normal::Members::default();
    catalogue.members(shape, map, &mut members);
    if let Kind::Tagged { tag, other, .. } = &shape.kind
        && map.get(tag) == Some(&json!("_vendor"))
    {
        members.fields.extend(other);
    }
    let mut probe = Probe { catalogue, shape, read, map, failures };
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
    // EXT-03: unknown members are ignored.
    if !members.open {
        probe.with("noSuchMember", &json!({ "deep": [1] }), Ok(None));
    }
}

struct Probe<'a> {
    catalogue: &'a Catalogue,
    read: Reader,
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
        // Unions without a tag become another variant, or none, when a member is missing: not what
        // is asked here.
        if field.required {
            self.expect(&format!("`{name}` missing"), &without, Err(()));
        } else {
            self.expect(&format!("`{name}` missing"), &without, Ok(&absent));
        }
        let full = value_of(self.catalogue, &field.ty);
        self.with(name, &full, Ok(Some(full.clone())));
        self.handling(field, &Value::Null, field.null);
        for wrong in self.catalogue.wrong(&field.ty) {
            if !wrong.is_null() {
                self.handling(field, &wrong, field.bad);
            }
        }
        let Type::List(item) = &field.ty else { return };
        let good = value_of(self.catalogue, item);
        for wrong in self.catalogue.wrong(item) {
            let list = json!([wrong, good]);
            match field.item {
                Handling::Refused => self.with(name, &list, Err(())),
                Handling::Skipped => self.with(name, &list, Ok(Some(json!([good])))),
                Handling::Absent => self.with(name, &list, Ok(None)),
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

    /// Puts a value into the member and expects it to be refused, left out (`None`) or become
    /// another.
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
        let got = (self.read)(&value.to_string());
        let failure = match (got, expected) {
            (Err(_), Err(())) => return,
            (Err(error), Ok(_)) => format!("refused: {error}"),
            (Ok(text), Err(())) => format!("read as {text}"),
            (Ok(text), Ok(expected)) => {
                let written: Value = serde_json::from_str(&text).unwrap();
                let (same, minimal) = (
                    self.catalogue.same(name, &written, expected),
                    self.catalogue.check_no_nulls(name, &written),
                );
                match same.and(minimal) {
                    Ok(()) => return,
                    Err(failure) => failure,
                }
            }
        };
        self.failures.push(format!("{name}, {what}: {failure}"));
    }
}
