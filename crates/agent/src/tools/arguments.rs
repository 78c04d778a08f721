//! Arguments of a call. Errors tell the model how to fix them.

use serde_json::{Map, Value};

/// The arguments of a call.
pub(crate) struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    pub(crate) fn new(value: &'a Value) -> Result<Self, String> {
        match value {
            Value::Object(members) => Ok(Arguments(members)),
            _ => Err("the arguments must be a JSON object".to_owned()),
        }
    }

    /// All arguments.
    pub(crate) fn object(&self) -> &'a Map<String, Value> {
        self.0
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        // Models write `null` for omitted arguments.
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, String> {
        self.text_if(name)?.ok_or_else(|| format!("`{name}` is missing; it must be a string"))
    }

    pub(crate) fn text_if(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` must be a string")),
        }
    }

    /// The text of a file. Some models write the JSON of a file as it is and not as a string.
    pub(crate) fn file_text(&self, name: &str) -> Result<String, String> {
        match self.get(name) {
            Some(value @ (Value::Object(_) | Value::Array(_))) => {
                serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(|error| error.to_string())
            }
            _ => self.text(name).map(str::to_owned),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::Number(number)) if number.as_u64().is_some_and(|number| number < 2) => {
                Ok(number.as_u64() == Some(1))
            }
            // Some models write every argument as a string, and some write Python.
            Some(Value::String(text)) if ["true", "1"].contains(&&*text.trim().to_lowercase()) => Ok(true),
            Some(Value::String(text)) if ["false", "0", ""].contains(&&*text.trim().to_lowercase()) => {
                Ok(false)
            }
            Some(_) => Err(format!("`{name}` must be true or false")),
        }
    }

    /// A positive integer.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u32>, String> {
        let wrong = || format!("`{name}` must be a positive integer");
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => {
                let number = number
                    .as_u64()
                    .or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && *n > 0.0).map(|n| n as u64));
                number
                    .filter(|number| *number > 0)
                    .and_then(|number| u32::try_from(number).ok())
                    .map(Some)
                    .ok_or_else(wrong)
            }
            // Some models write every argument as a string.
            Some(Value::String(text)) => {
                text.trim().parse().ok().filter(|n| *n > 0).map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A list of objects.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Arguments<'a>>, String> {
        let wrong = || format!("`{name}` must be a list of objects");
        match self.get(name) {
            None => Err(format!("`{name}` is missing; it must be a list of objects")),
            Some(Value::Array(items)) => {
                items.iter().map(|item| Arguments::new(item).map_err(|_| wrong())).collect()
            }
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flag_has_many_forms() {
        let flag = |value: Value| Arguments::new(&json!({ "all": value })).unwrap().flag("all");
        for yes in [json!(true), json!("true"), json!("True"), json!(1), json!("1")] {
            assert_eq!(flag(yes.clone()), Ok(true), "{yes}");
        }
        for no in [json!(false), json!("False"), json!(0), json!(""), json!(null)] {
            assert_eq!(flag(no.clone()), Ok(false), "{no}");
        }
        for wrong in [json!("maybe"), json!(2), json!(-1), json!([true])] {
            assert!(flag(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_may_be_the_text_of_a_file() {
        let text = |value: Value| Arguments::new(&json!({ "content": value })).unwrap().file_text("content");
        assert_eq!(text(json!("a")).unwrap(), "a");
        assert_eq!(text(json!({"a": [1]})).unwrap(), "{\n  \"a\": [\n    1\n  ]\n}\n");
        assert!(text(json!(1)).is_err() && text(json!(null)).is_err());
    }
}
