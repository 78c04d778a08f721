//! The check of filled-in forms.

// ELIC-11, ELIC-19

use attache_wire::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, ElicitationSchema, Fields,
    MultiSelectItems, MultiSelectPropertySchema, StringFormat, StringPropertySchema,
};

use super::elicitation::FormProblem;

/// Returns the problems of a filled-in form.
pub(crate) fn problems(schema: &ElicitationSchema, content: &Fields<Value>) -> Vec<FormProblem> {
    let mut problems = Vec::new();
    let mut report = |property: &str, reason: String| {
        problems.push(FormProblem { property: property.to_owned(), reason });
    };
    for name in schema.required.iter().flatten() {
        if content.get(name).is_none() {
            report(name, "is required".to_owned());
        }
    }
    for (name, value) in content.iter() {
        match schema.properties.get(name) {
            None => report(name, "is not part of the form".to_owned()),
            Some(property) => {
                if let Err(reason) = check(property, value) {
                    report(name, reason);
                }
            }
        }
    }
    problems
}

fn check(property: &Property, value: &Value) -> Result<(), String> {
    match (property, value) {
        (Property::String(schema), Value::String(text)) => check_text(schema, text),
        (Property::Number(schema), Value::Number(number)) => within(*number, schema.minimum, schema.maximum),
        // Every integer is a number.
        #[allow(clippy::cast_precision_loss, reason = "only compared with bounds that are no more precise")]
        (Property::Number(schema), Value::Integer(number)) => {
            within(*number as f64, schema.minimum, schema.maximum)
        }
        (Property::Integer(schema), Value::Integer(number)) => {
            within(*number, schema.minimum, schema.maximum)
        }
        (Property::Boolean(_), Value::Boolean(_)) => Ok(()),
        (Property::Array(schema), Value::StringArray(list)) => check_list(schema, list),
        // ELIC-33: properties of an unknown kind are not checked.
        (Property::Other(_), _) => Ok(()),
        (Property::String(_), _) => Err("must be a text".to_owned()),
        (Property::Number(_), _) => Err("must be a number".to_owned()),
        (Property::Integer(_), _) => Err("must be a whole number".to_owned()),
        (Property::Boolean(_), _) => Err("must be yes or no".to_owned()),
        (Property::Array(_), _) => Err("must be a list of texts".to_owned()),
        _ => Ok(()),
    }
}

fn within<T: PartialOrd + std::fmt::Display>(
    value: T,
    minimum: Option<T>,
    maximum: Option<T>,
) -> Result<(), String> {
    match (minimum, maximum) {
        (Some(minimum), _) if value < minimum => Err(format!("must be at least {minimum}")),
        (_, Some(maximum)) if value > maximum => Err(format!("must be at most {maximum}")),
        _ => Ok(()),
    }
}

fn check_text(schema: &StringPropertySchema, text: &str) -> Result<(), String> {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if let Some(minimum) = schema.min_length.filter(|minimum| length < *minimum) {
        return Err(format!("must have at least {minimum} characters"));
    }
    if let Some(maximum) = schema.max_length.filter(|maximum| length > *maximum) {
        return Err(format!("must have at most {maximum} characters"));
    }
    let listed = |values: &[String]| values.iter().any(|value| value == text);
    let offered = schema.values.as_deref().is_none_or(listed)
        && schema.one_of.as_ref().is_none_or(|options| options.iter().any(|option| option.value == text));
    if !offered {
        return Err("must be one of the offered values".to_owned());
    }
    match schema.format {
        Some(StringFormat::Email) if !is_email(text) => Err("must be an e-mail address".to_owned()),
        Some(StringFormat::Uri) if !is_uri(text) => Err("must be a URI".to_owned()),
        Some(StringFormat::Date) if !is_date(text) => Err("must be a date such as 2026-01-31".to_owned()),
        Some(StringFormat::DateTime) if !is_date_time(text) => {
            Err("must be a date and time such as 2026-01-31T12:00:00Z".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_list(schema: &MultiSelectPropertySchema, list: &[String]) -> Result<(), String> {
    let length = list.len() as u64;
    if let Some(minimum) = schema.min_items.filter(|minimum| length < *minimum) {
        return Err(format!("must have at least {minimum} entries"));
    }
    if let Some(maximum) = schema.max_items.filter(|maximum| length > *maximum) {
        return Err(format!("must have at most {maximum} entries"));
    }
    let offered = |text: &String| match &schema.items {
        MultiSelectItems::String(items) => items.values.contains(text),
        MultiSelectItems::Titled(items) => items.any_of.iter().any(|option| option.value == *text),
        _ => true,
    };
    if list.iter().all(offered) { Ok(()) } else { Err("must hold offered values only".to_owned()) }
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(char::is_whitespace)
    })
}

fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && !rest.is_empty()
            && !text.contains(char::is_whitespace)
    })
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut number = |digits: usize| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part.and_then(|part| part.parse::<u32>().ok())
    };
    let (Some(year), Some(month), Some(day)) = (number(4), number(2), number(2)) else { return false };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else { return false };
    let mut time = time.chars();
    if !is_date(date) || !matches!(time.next(), Some('T' | 't' | ' ')) {
        return false;
    }
    let time = time.as_str();
    let Some(zone) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = time.split_at(zone);
    let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    is_clock(seconds, &[24, 60, 61])
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && (zone.eq_ignore_ascii_case("z") || zone.get(1..).is_some_and(|offset| is_clock(offset, &[24, 60])))
}

/// Two digits for each bound, with colons between them.
fn is_clock(text: &str, bounds: &[u32]) -> bool {
    let parts: Vec<_> = text.split(':').collect();
    let fits = |(part, bound): (&&str, &u32)| {
        part.len() == 2
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse().is_ok_and(|n: u32| n < *bound)
    };
    parts.len() == bounds.len() && parts.iter().zip(bounds).all(fits)
}
