//! The validator: `$ref`, `type`, `properties`, `required`, `items`, `enum`, `const`, `anyOf`,
//! `oneOf`, `allOf`, `not`, bounds and `additionalProperties`.
//!
//! Written by hand, because a finding needs the definitions around a fault, the definitions that
//! were met and the unknown members, which JSON Schema crates do not report. `oneOf` is read as
//! `anyOf`: unions of the protocol overlap only in ways that do not matter.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Extra, Fault, FaultKind, JsonType, Validated};

type Schema = &'static Value;

/// The result of a schema that an object fits.
#[derive(Default)]
struct Match {
    known: BTreeSet<&'static str>,
    /// Other members are allowed.
    open: bool,
    inner: Validated,
}

/// The current position: a step into the value or a definition, linked to its parent. A path is
/// built only for a fault.
#[derive(Clone, Copy)]
struct Location<'a> {
    defs: Schema,
    step: Step<'a>,
    parent: Option<&'a Location<'a>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
    Definition(&'static str),
}

pub(super) fn validate(
    defs: Schema,
    name: &'static str,
    schema: Schema,
    value: &Value,
) -> Result<Validated, Fault> {
    let place = Location { defs, step: Step::Definition(name), parent: None };
    let mut fits = place.location(schema, value)?;
    fits.met.insert(name);
    Ok(fits)
}

impl Location<'_> {
    /// Returns the violation of a constraint.
    fn fault(&self, why: impl Into<String>) -> Fault {
        self.fault_of(FaultKind::Constraint(why.into()))
    }

    fn fault_of(&self, kind: FaultKind) -> Fault {
        let mut within: Vec<&'static str> = self.ways().filter_map(Step::definition).collect();
        within.reverse();
        Fault { path: self.path(), kind, within }
    }

    /// The steps from here outwards.
    fn ways(&self) -> impl Iterator<Item = Step<'_>> {
        std::iter::successors(Some(self), |place| place.parent).map(|place| place.step)
    }

    fn path(&self) -> String {
        let name = |step: Step<'_>| match step {
            Step::Member(name) => Some(name.to_owned()),
            Step::Item(number) => Some(number.to_string()),
            Step::Definition(_) => None,
        };
        let mut steps: Vec<String> = self.ways().filter_map(name).collect();
        steps.reverse();
        steps.join(".")
    }

    fn inside<'a>(&'a self, step: Step<'a>) -> Location<'a> {
        Location { defs: self.defs, step, parent: Some(self) }
    }

    /// Validates a value with all schemas that apply to it, so members left over are unknown.
    fn location(&self, schema: Schema, value: &Value) -> Result<Validated, Fault> {
        let mut fit = self.check(schema, value)?;
        if let (Value::Object(members), false, false) = (value, fit.open, fit.known.is_empty()) {
            let unknown = members.keys().filter(|key| *key != "_meta" && !fit.known.contains(key.as_str()));
            fit.inner.extras.extend(unknown.map(|member| Extra {
                path: self.path(),
                member: member.clone(),
                within: self.definition(schema),
            }));
        }
        Ok(fit.inner)
    }

    /// The name of the definition that `schema` leads to, or of the one that it stands in.
    fn definition(&self, schema: Schema) -> &'static str {
        // A member with a description of its own wraps its reference.
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        let named = reference.and_then(|name| name.rsplit('/').next());
        named.or_else(|| self.ways().find_map(Step::definition)).unwrap_or_default()
    }

    fn check(&self, schema: Schema, value: &Value) -> Result<Match, Fault> {
        let mut fit = Match::default();
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            let place = self.inside(Step::Definition(name));
            fit.inner.met.insert(name);
            fit.take(place.check(&self.defs[name], value)?);
        }
        self.check_type(schema, value)?;
        self.check_values(schema, value)?;
        self.check_bounds(schema, value)?;
        match value {
            Value::Object(members) => self.check_members(schema, members, &mut fit)?,
            Value::Array(items) => self.check_items(schema, items, &mut fit)?,
            _ => {}
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            fit.take(self.check(part, value)?);
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(branches) = schema[union].as_array() {
                fit.take(self.check_union(branches, value)?);
            }
        }
        if let Some(not) = schema.get("not")
            && self.check(not, value).is_ok()
        {
            return Err(self.fault("a form that is not allowed here"));
        }
        Ok(fit)
    }

    fn check_type(&self, schema: Schema, value: &Value) -> Result<(), Fault> {
        let is = |wanted: &str| match wanted {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => true,
        };
        let wanted: Vec<&'static str> = match &schema["type"] {
            Value::String(wanted) => vec![wanted],
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            _ => return Ok(()),
        };
        if wanted.iter().any(|wanted| is(wanted)) {
            return Ok(());
        }
        Err(self.fault_of(FaultKind::Type { expected: wanted, actual: JsonType::of(value) }))
    }

    fn check_values(&self, schema: Schema, value: &Value) -> Result<(), Fault> {
        if let Some(only) = schema.get("const")
            && only != value
        {
            return Err(self.fault(format!("{} instead of {only}", shown(value))));
        }
        match schema["enum"].as_array() {
            Some(list) if !list.contains(value) => {
                Err(self.fault(format!("{} is none of {}", shown(value), Value::from(list.clone()))))
            }
            _ => Ok(()),
        }
    }

    fn check_bounds(&self, schema: Schema, value: &Value) -> Result<(), Fault> {
        let (size, least, most) = match value {
            Value::Number(number) => (number.as_f64(), "minimum", "maximum"),
            Value::String(text) => (Some(text.chars().count() as f64), "minLength", "maxLength"),
            Value::Array(items) => (Some(items.len() as f64), "minItems", "maxItems"),
            _ => return Ok(()),
        };
        let size = size.unwrap_or_default();
        if schema[least].as_f64().is_some_and(|least| size < least) {
            return Err(self.fault(format!("below the {least} of {}", schema[least])));
        }
        if schema[most].as_f64().is_some_and(|most| size > most) {
            return Err(self.fault(format!("above the {most} of {}", schema[most])));
        }
        Ok(())
    }

    fn check_members(
        &self,
        schema: Schema,
        members: &Map<String, Value>,
        fit: &mut Match,
    ) -> Result<(), Fault> {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                return Err(self.fault_of(FaultKind::Missing(name)));
            }
        }
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            fit.known.insert(name);
            if let Some(value) = members.get(name) {
                fit.inner.take(self.inside(Step::Member(name)).location(property, value)?);
            }
        }
        if schema["unevaluatedProperties"] == true {
            fit.open = true;
        }
        let Some(rest) = schema.get("additionalProperties") else { return Ok(()) };
        fit.open |= *rest != Value::Bool(false);
        for (name, value) in members.iter().filter(|(name, _)| !fit.known.contains(name.as_str())) {
            match rest {
                Value::Bool(false) => return Err(self.fault(format!("`{name}` is not allowed"))),
                Value::Bool(true) => {}
                _ => fit.inner.take(self.inside(Step::Member(name)).location(rest, value)?),
            }
        }
        Ok(())
    }

    fn check_items(&self, schema: Schema, items: &[Value], fit: &mut Match) -> Result<(), Fault> {
        let Some(wanted) = schema.get("items") else { return Ok(()) };
        for (number, item) in items.iter().enumerate() {
            fit.inner.take(self.inside(Step::Item(number)).location(wanted, item)?);
        }
        Ok(())
    }

    fn check_union(&self, branches: &'static [Value], value: &Value) -> Result<Match, Fault> {
        let mut all: Option<Match> = None;
        let mut best: Option<(bool, Fault)> = None;
        for branch in branches {
            match self.check(branch, value) {
                Ok(fit) => all.get_or_insert_default().take(fit),
                Err(fault) => {
                    let meant = self.is_meant(branch, value);
                    let better = best
                        .as_ref()
                        .is_none_or(|(was, old)| (meant, fault.path.len()) > (*was, old.path.len()));
                    if better {
                        best = Some((meant, fault));
                    }
                }
            }
        }
        if let Some(mut fit) = all {
            if let Some(unknown) = unknown_value(branches, value) {
                fit.inner.unknown.push((self.path(), unknown));
            }
            return Ok(fit);
        }
        match best {
            Some((true, fault)) => Err(fault),
            Some((false, fault)) if fault.path.len() > self.path().len() && !is_tagged(branches) => {
                Err(fault)
            }
            _ => Err(self.fault(format!("{} is none of the known forms", shown(value)))),
        }
    }

    /// Whether the tag of the value selects this branch, so that its faults are those of the
    /// branch.
    fn is_meant(&self, branch: Schema, value: &Value) -> bool {
        let properties = branch["properties"].as_object();
        let mut tags = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| property.get("const").map(|tag| (name, tag)))
            .peekable();
        match tags.peek() {
            Some(_) => tags.all(|(name, tag)| value[name] == *tag),
            // The one form of something that may also be null.
            None => !value.is_null() && branch.get("$ref").is_some(),
        }
    }
}

impl Step<'_> {
    fn definition(self) -> Option<&'static str> {
        match self {
            Step::Definition(name) => Some(name),
            Step::Member(_) | Step::Item(_) => None,
        }
    }
}

impl Match {
    fn take(&mut self, other: Match) {
        self.known.extend(other.known);
        self.open |= other.open;
        self.inner.take(other.inner);
    }
}

impl Validated {
    fn take(&mut self, other: Validated) {
        self.extras.extend(other.extras);
        self.met.extend(other.met);
        self.unknown.extend(other.unknown);
    }
}

/// Whether a constant distinguishes the branches.
fn is_tagged(branches: &[Value]) -> bool {
    branches.iter().any(|branch| {
        branch["properties"].as_object().is_some_and(|all| all.values().any(|one| one.get("const").is_some()))
    })
}

/// The value that selects no known branch of an open union or enum and has no underscore. An open
/// enum has constants and any string, an open union tagged objects and any other tag.
fn unknown_value(branches: &[Value], value: &Value) -> Option<String> {
    if let Value::String(text) = value {
        let mut known = branches.iter().filter_map(|branch| branch.get("const")).peekable();
        let unknown = known.peek().is_some() && !known.any(|one| *one == **text) && !text.starts_with('_');
        return unknown.then(|| text.clone());
    }
    let members = value.as_object()?;
    let open = branches.iter().find(|branch| branch.get("not").is_some())?;
    let (tag, _) = open["properties"].as_object()?.iter().find(|(name, _)| {
        branches.iter().any(|branch| branch["properties"][name.as_str()].get("const").is_some())
    })?;
    let text = members.get(tag)?.as_str()?;
    let of_tag = |branch: &Value| -> bool { branch["properties"][tag.as_str()]["const"] == *text };
    let unknown = !branches.iter().any(of_tag) && !text.starts_with('_');
    unknown.then(|| format!("{tag} {text}"))
}

/// The value in short.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Object(members) => {
            let tags = ["type", "sessionUpdate", "mode", "outcome", "action"];
            match tags.iter().find_map(|tag| members.get(*tag).map(|value| format!("{tag} {value}"))) {
                Some(tagged) => format!("an object with {tagged}"),
                None => "an object".to_owned(),
            }
        }
        other => other.to_string(),
    };
    if text.chars().count() > 80 { text.chars().take(77).chain("...".chars()).collect() } else { text }
}
