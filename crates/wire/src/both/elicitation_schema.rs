//! Text fields of forms. Their formats are open in version 2 only.

use super::{
    BooleanPropertySchema, ElicitationSchema, EnumOption, IntegerPropertySchema, MultiSelectPropertySchema,
    NumberPropertySchema, StringFormat,
};
use crate::shape::*;

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
            default_value "default": Option<String> [LenientText], // ELIC-13
            /// The values to choose from.
            values "enum": Option<Vec<String>> [Optional],
            /// The values to choose from, with titles.
            one_of "oneOf": Option<Vec<EnumOption>> [Optional],
        }
    }
}

tagged! {
    /// One field of a form. Types that are not listed are kept, and never treated as one that is.
    pub enum ElicitationPropertySchema by "type" { // ELIC-33
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

impl ElicitationSchema {
    /// Adds a field to the form, or replaces the field of that name. A required field must be
    /// filled in.
    ///
    /// ```
    /// use attache_wire::v1::{BooleanPropertySchema, ElicitationSchema, StringPropertySchema};
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
