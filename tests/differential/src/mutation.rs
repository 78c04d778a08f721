//! Changes of valid values, random and systematic.

use attache_testkit::catalogue::{Catalogue, Type};
use attache_testkit::normal::Members;
use attache_testkit::sample::Rng;
use serde_json::{Map, Value, json};

/// A change of one member or entry.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The location, as a JSON pointer.
    pub pointer: String,
    /// The value before.
    pub before: Value,
    /// The value after; `None` if it was removed.
    pub after: Option<Value>,
    /// The changed document.
    pub value: Value,
}

/// Changes one random member or entry; `None` if there is nothing to change.
pub fn mutate(value: &Value, rng: &mut Rng) -> Option<Mutation> {
    let mut pointers = Vec::new();
    gather(value, String::new(), &mut pointers);
    if pointers.is_empty() {
        return None;
    }
    let pointer = rng.pick(&pointers).clone();
    let before = value.pointer(&pointer)?.clone();
    let wrong = [
        json!(null),
        json!(null),
        json!(5),
        json!(-1),
        json!(1.5),
        json!("no_such_value"),
        json!(true),
        json!({}),
        json!([]),
        json!(["x", "y", "z"]),
        json!([before]),
    ];
    let after = (!rng.one_in(4)).then(|| rng.pick(&wrong).clone());
    let mut changed = value.clone();
    match &after {
        Some(after) => *changed.pointer_mut(&pointer)? = after.clone(),
        None => {
            let (parent, name) = pointer.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            match changed.pointer_mut(parent)? {
                Value::Object(map) => drop(map.remove(&name)),
                Value::Array(list) => drop(list.remove(name.parse().ok()?)),
                _ => return None,
            }
        }
    }
    Some(Mutation { pointer, before, after, value: changed })
}

/// Changes every member of an object of a type in every way: removed, `null`, each wrong value,
/// and, in a list, each wrong entry before a good one.
pub fn every_change(catalogue: &Catalogue, name: &str, object: &Map<String, Value>) -> Vec<Mutation> {
    let mut members = Members::default();
    catalogue.members(catalogue.named(name), object, &mut members);
    let mut mutations = Vec::new();
    for field in &members.fields {
        let before = object.get(&field.name).cloned().unwrap_or_default();
        let mut changes = vec![None, Some(Value::Null)];
        changes.extend(catalogue.wrong(&field.ty).into_iter().map(Some));
        if let Type::List(item) = &field.ty {
            let good = before.as_array().and_then(|list| list.first().cloned());
            let with_good = |wrong| std::iter::once(wrong).chain(good.clone()).collect::<Value>();
            changes.extend(catalogue.wrong(item).into_iter().map(|wrong| Some(with_good(wrong))));
        }
        for after in changes {
            let mut changed = object.clone();
            match &after {
                Some(after) => drop(changed.insert(field.name.clone(), after.clone())),
                None => drop(changed.remove(&field.name)),
            }
            let pointer = format!("/{}", field.name);
            mutations.push(Mutation { pointer, before: before.clone(), after, value: changed.into() });
        }
    }
    mutations
}

fn gather(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                pointers.push(pointer.clone());
                gather(value, pointer, pointers);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                let pointer = format!("{pointer}/{index}");
                pointers.push(pointer.clone());
                gather(value, pointer, pointers);
            }
        }
        _ => {}
    }
}
