//! A field of a form: its schema and its value.

use attache::client::ElicitationAsk;
use attache::wire::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, ElicitationSchema, EnumOption,
    Fields, MultiSelectItems, StringFormat,
};
use crossterm::event::{KeyCode, KeyEvent};

use super::pattern;

/// An item of a choice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choosable {
    pub(crate) value: Value,
    pub(crate) title: String,
    pub(crate) about: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    Number,
    Integer,
    /// One of several values, also yes or no.
    One(Vec<Choosable>),
    Many(Vec<Choosable>),
    /// An unknown kind is not treated like a known one.
    // ELIC-33
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) about: String,
    /// A description of valid answers.
    pub(crate) limits: String,
    /// The pattern of a text.
    pattern: Option<String>,
    pub(crate) required: bool,
    pub(crate) kind: Kind,
    /// The typed text.
    pub(crate) typed: String,
    /// The chosen items, by index.
    pub(crate) picked: Vec<usize>,
    pub(crate) cursor: usize,
}

impl Field {
    /// Reads the fields of a form in display order.
    pub(crate) fn all(schema: &ElicitationSchema) -> Vec<Field> {
        let required = |name: &str| schema.required.iter().flatten().any(|wanted| wanted == name);
        schema.properties.iter().map(|(name, property)| Field::new(name, property, required(name))).collect()
    }

    fn new(name: &str, property: &Property, required: bool) -> Field {
        let mut field = Field {
            name: name.to_owned(),
            title: name.to_owned(),
            about: String::new(),
            limits: limits(property),
            pattern: None,
            required,
            kind: Kind::Unknown,
            typed: String::new(),
            picked: Vec::new(),
            cursor: 0,
        };
        let mut label = |title: &Option<String>, about: &Option<String>| {
            if let Some(title) = title {
                field.title.clone_from(title);
            }
            field.about = about.clone().unwrap_or_default();
        };
        match property {
            Property::String(schema) => {
                label(&schema.title, &schema.description);
                let default = schema.default_value.clone();
                match (&schema.one_of, &schema.values) {
                    (Some(options), _) => field.choices(titled(options), default),
                    (None, Some(values)) => field.choices(plain(values), default),
                    (None, None) => {
                        field.pattern.clone_from(&schema.pattern);
                        field.kind = Kind::Text;
                        field.typed = default.unwrap_or_default();
                    }
                }
            }
            Property::Number(schema) => {
                label(&schema.title, &schema.description);
                field.kind = Kind::Number;
                field.typed = schema.default_value.map_or(String::new(), |value| value.to_string());
            }
            Property::Integer(schema) => {
                label(&schema.title, &schema.description);
                field.kind = Kind::Integer;
                field.typed = schema.default_value.map_or(String::new(), |value| value.to_string());
            }
            Property::Boolean(schema) => {
                label(&schema.title, &schema.description);
                let answer = |value: bool, title: &str| Choosable {
                    value: value.into(),
                    title: title.to_owned(),
                    about: None,
                };
                field.kind = Kind::One(vec![answer(true, "Yes"), answer(false, "No")]);
                field.picked = schema.default_value.map(|yes| usize::from(!yes)).into_iter().collect();
                field.cursor = field.picked.first().copied().unwrap_or(0);
            }
            Property::Array(schema) => {
                label(&schema.title, &schema.description);
                let options = match &schema.items {
                    MultiSelectItems::String(items) => plain(&items.values),
                    MultiSelectItems::Titled(items) => titled(&items.any_of),
                    _ => return field,
                };
                let default = schema.default_value.clone().unwrap_or_default();
                let chosen = |option: &Choosable| matches!(&option.value, Value::String(text) if default.contains(text));
                field.picked = options
                    .iter()
                    .enumerate()
                    .filter(|(_, option)| chosen(option))
                    .map(|(at, _)| at)
                    .collect();
                field.kind = Kind::Many(options);
            }
            _ => {}
        }
        field
    }

    fn choices(&mut self, options: Vec<Choosable>, default: Option<String>) {
        let default = default.map(Value::String);
        let at = options.iter().position(|option| Some(&option.value) == default.as_ref());
        self.picked = at.into_iter().collect();
        self.cursor = at.unwrap_or(0);
        self.kind = Kind::One(options);
    }

    /// Returns whether it is filled in by typing.
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Number | Kind::Integer)
    }

    pub(crate) fn text(&self) -> String {
        self.typed.clone()
    }

    /// Handles a key in a choice.
    pub(crate) fn choose_key(&mut self, key: KeyEvent) {
        let (options, many) = match &self.kind {
            Kind::One(options) => (options, false),
            Kind::Many(options) => (options, true),
            _ => return,
        };
        let last = options.len().saturating_sub(1);
        let yes_no = !many && options.first().is_some_and(|option| matches!(option.value, Value::Boolean(_)));
        let at = match key.code {
            KeyCode::Up => {
                self.cursor = self.cursor.saturating_sub(1);
                (!many).then_some(self.cursor)
            }
            KeyCode::Down => {
                self.cursor = (self.cursor + 1).min(last);
                (!many).then_some(self.cursor)
            }
            KeyCode::Char(' ') => Some(self.cursor),
            KeyCode::Char('y') if yes_no => Some(0),
            KeyCode::Char('n') if yes_no => Some(1),
            KeyCode::Char(c) => {
                let number = c.to_digit(10).and_then(|number| (number as usize).checked_sub(1));
                number.filter(|at| *at <= last)
            }
            // Resets to no answer.
            KeyCode::Backspace | KeyCode::Delete => {
                self.picked.clear();
                None
            }
            _ => None,
        };
        let Some(at) = at else { return };
        self.cursor = at;
        if !many {
            self.picked = vec![at];
        } else if let Some(old) = self.picked.iter().position(|picked| *picked == at) {
            self.picked.remove(old);
        } else {
            self.picked.push(at);
            self.picked.sort_unstable();
        }
    }

    /// Returns the value, if there is a valid one.
    pub(crate) fn value(&self) -> Option<Value> {
        match &self.kind {
            // An empty optional text is no answer; a required one may be empty.
            Kind::Text if self.typed.is_empty() && !self.required => None,
            Kind::Text => Some(Value::String(self.typed.clone())),
            Kind::Integer => self.typed.trim().parse::<i64>().ok().map(Value::Integer),
            Kind::Number => {
                let text = self.typed.trim();
                let whole = text.parse::<i64>().ok().map(Value::Integer);
                whole.or_else(|| {
                    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Number)
                })
            }
            Kind::One(options) => {
                self.picked.first().and_then(|at| options.get(*at)).map(|option| option.value.clone())
            }
            Kind::Many(options) => {
                if self.picked.is_empty() && !self.required {
                    return None;
                }
                let texts = self.picked.iter().filter_map(|at| options.get(*at)).filter_map(|option| {
                    match &option.value {
                        Value::String(text) => Some(text.clone()),
                        _ => None,
                    }
                });
                Some(Value::StringArray(texts.collect()))
            }
            Kind::Unknown => None,
        }
    }

    /// Validates the value.
    // ELIC-11
    pub(crate) fn checked(&self, ask: &ElicitationAsk) -> Result<(), String> {
        let Some(value) = self.value() else {
            if self.is_typed() && !self.typed.trim().is_empty() {
                let what = if self.kind == Kind::Integer { "a whole number" } else { "a number" };
                return Err(format!("must be {what}"));
            }
            return if self.required { Err("is required".to_owned()) } else { Ok(()) };
        };
        if self.required && value == Value::String(String::new()) {
            return Err("is required".to_owned());
        }
        if let (Value::String(text), Some(pattern)) = (&value, &self.pattern)
            && pattern::matches(pattern, text) == Some(false)
        {
            return Err(format!("must match {pattern}"));
        }
        let problems = ask.problems(&Fields::from([(self.name.clone(), value)]));
        match problems.into_iter().find(|problem| problem.property == self.name) {
            Some(problem) => Err(problem.reason),
            None => Ok(()),
        }
    }

    /// Formats a value as it was displayed in the choice.
    pub(crate) fn shown(&self, value: &Value) -> String {
        let title = |value: &Value| match &self.kind {
            Kind::One(options) | Kind::Many(options) => {
                options.iter().find(|option| option.value == *value).map(|option| option.title.clone())
            }
            _ => None,
        };
        match value {
            Value::StringArray(list) => {
                let titles = list
                    .iter()
                    .map(|text| title(&Value::String(text.clone())).unwrap_or_else(|| text.clone()));
                titles.collect::<Vec<_>>().join(", ")
            }
            Value::String(text) => title(value).unwrap_or_else(|| text.clone()),
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Boolean(_) => title(value).unwrap_or_default(),
            _ => String::new(),
        }
    }
}

fn plain(values: &[String]) -> Vec<Choosable> {
    values
        .iter()
        .map(|value| Choosable { value: value.clone().into(), title: value.clone(), about: None })
        .collect()
}

fn titled(options: &[EnumOption]) -> Vec<Choosable> {
    let option = |option: &EnumOption| Choosable {
        value: option.value.clone().into(),
        title: option.title.clone(),
        about: option.description.clone(),
    };
    options.iter().map(option).collect()
}

/// Describes valid answers.
fn limits(property: &Property) -> String {
    let mut all: Vec<String> = Vec::new();
    match property {
        Property::String(schema) if schema.one_of.is_none() && schema.values.is_none() => {
            all.extend(match schema.format {
                Some(StringFormat::Email) => Some("an e-mail address".to_owned()),
                Some(StringFormat::Uri) => Some("a URI".to_owned()),
                Some(StringFormat::Date) => Some("a date such as 2026-01-31".to_owned()),
                Some(StringFormat::DateTime) => {
                    Some("a date and time such as 2026-01-31T12:00:00Z".to_owned())
                }
                _ => None,
            });
            all.extend(between(schema.min_length, schema.max_length, "characters"));
            all.extend(schema.pattern.as_ref().map(|pattern| format!("like {pattern}")));
        }
        Property::Number(schema) => {
            all.push("a number".to_owned());
            all.extend(between(schema.minimum, schema.maximum, ""));
        }
        Property::Integer(schema) => {
            all.push("a whole number".to_owned());
            all.extend(between(schema.minimum, schema.maximum, ""));
        }
        Property::Array(schema) => all.extend(between(schema.min_items, schema.max_items, "of them")),
        _ => {}
    }
    all.join(", ")
}

fn between<T: std::fmt::Display>(least: Option<T>, most: Option<T>, what: &str) -> Option<String> {
    let text = match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => return None,
    };
    Some(format!("{text} {what}").trim_end().to_owned())
}
