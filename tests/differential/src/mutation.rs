//! One thing changed in a valid value.

use attache_testkit::sample::Chance;
use serde_json::{Value, json};

/// A change, and what it made.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// Where, as a JSON pointer.
    pub place: String,
    /// What was there.
    pub before: Value,
    /// What is there now; `None` if it is gone.
    pub after: Option<Value>,
    /// The whole value, changed.
    pub value: Value,
}

/// Changes one random member or entry; `None` if there is nothing to change.
pub fn mutate(value: &Value, chance: &mut Chance) -> Option<Mutation> {
    let mut places = Vec::new();
    gather(value, String::new(), &mut places);
    if places.is_empty() {
        return None;
    }
    let place = chance.pick(&places).clone();
    let before = value.pointer(&place)?.clone();
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
    let after = (!chance.one_in(4)).then(|| chance.pick(&wrong).clone());
    let mut changed = value.clone();
    match &after {
        Some(after) => *changed.pointer_mut(&place)? = after.clone(),
        None => {
            let (parent, name) = place.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            match changed.pointer_mut(parent)? {
                Value::Object(map) => drop(map.remove(&name)),
                Value::Array(list) => drop(list.remove(name.parse().ok()?)),
                _ => return None,
            }
        }
    }
    Some(Mutation { place, before, after, value: changed })
}

fn gather(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                places.push(place.clone());
                gather(value, place, places);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                let place = format!("{place}/{index}");
                places.push(place.clone());
                gather(value, place, places);
            }
        }
        _ => {}
    }
}
