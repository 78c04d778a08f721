//! Forms of elicitations: flat objects with a few kinds of properties.

pub use crate::v1::{
    BooleanPropertySchema, ElicitationSchemaType, EnumOption, IntegerPropertySchema, MultiSelectItems,
    MultiSelectPropertySchema, NumberPropertySchema, StringMultiSelectItems, TitledMultiSelectItems,
};

use crate::shape::*;
use crate::v2::Fields;

open_enum! {
    /// The format of a text.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date, as ISO 8601 text.
        Date = "date",
        /// A point in time, as ISO 8601 text.
        DateTime = "date-time",
    }
}

object! {
    /// A text, or a choice of one.
    pub struct StringPropertySchema {
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The least number of characters.
            min_length "minLength": Option<u32> [Optional],
            /// The greatest number of characters.
            max_length "maxLength": Option<u32> [Optional],
            /// A regular expression that it matches.
            pattern "pattern": Option<String> [Optional],
            /// The format of the text.
            format "format": Option<StringFormat> [Optional],
            /// The initial value in the form.
            default_value "default": Option<String> [LenientText],
            /// The values to choose from, at least one.
            values "enum": Option<Vec<String>> [Optional],
            /// The values to choose from, with titles, at least one.
            one_of "oneOf": Option<Vec<EnumOption>> [Optional],
        }
    }
}

tagged! {
    /// One field of a form.
    pub enum ElicitationPropertySchema by "type" {
        /// A text, or a choice of one.
        String(StringPropertySchema) = "string",
        /// A number.
        Number(NumberPropertySchema) = "number",
        /// A whole number.
        Integer(IntegerPropertySchema) = "integer",
        /// Yes or no.
        Boolean(BooleanPropertySchema) = "boolean",
        /// A multiple choice.
        Array(MultiSelectPropertySchema) = "array",
    }
    other Other
}

object! {
    /// A form. Its type and its fields are always given.
    pub struct ElicitationSchema {
        required {
            /// Always an object.
            schema_type "type": ElicitationSchemaType [Required],
            /// The fields, in the order in which to show them.
            properties "properties": Fields<ElicitationPropertySchema> [Required],
        }
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The names of fields that must be filled in.
            required "required": Option<Vec<String>> [Optional],
        }
    }
}

/// A form without fields.
impl Default for ElicitationSchema {
    fn default() -> Self {
        ElicitationSchema::new(ElicitationSchemaType::Object, Fields::new())
    }
}

impl ElicitationSchema {
    /// Adds a field to the form, or replaces the field of that name. A required field must be filled in.
    ///
    /// ```
    /// use attache_wire::v2::{BooleanPropertySchema, ElicitationSchema, StringPropertySchema};
    ///
    /// let form = ElicitationSchema::default()
    ///     .field("name", StringPropertySchema::new().title("Project name"), true)
    ///     .field("public", BooleanPropertySchema::new().default_value(false), false);
    /// assert_eq!(form.required, Some(vec!["name".to_owned()]));
    /// ```
    pub fn field(
        mut self,
        name: impl Into<String>,
        schema: impl Into<ElicitationPropertySchema>,
        required: bool,
    ) -> Self {
        let name = name.into();
        let mut names = self.required.take().unwrap_or_default();
        names.retain(|other| *other != name);
        if required {
            names.push(name.clone());
        }
        self.required = (!names.is_empty()).then_some(names);
        self.properties.insert(name, schema.into());
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_form_names_its_type_and_fields() {
        // shows V2-20, V2-21
        let read = serde_json::from_str::<ElicitationSchema>;
        assert_eq!(read(r#"{"type":"object","properties":{}}"#).unwrap(), ElicitationSchema::default());
        for bad in [r#"{"properties":{}}"#, r#"{"type":"object"}"#, r#"{"type":"array","properties":{}}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let text = r#"{"type":"object","properties":{"a":{"type":"string","format":"_iban"},"b":{"type":"_colour"}}}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }
}
