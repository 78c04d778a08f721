//! Forms of elicitations: flat objects with a few kinds of properties.

pub use crate::v1::{
    BooleanPropertySchema, ElicitationSchemaType, EnumOption, IntegerPropertySchema, MultiSelectItems,
    MultiSelectPropertySchema, NumberPropertySchema, StringMultiSelectItems, TitledMultiSelectItems,
};

use crate::shape::*;
use crate::v2::Fields;

#[path = "../both/elicitation_schema.rs"]
mod both;
pub use both::*;

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
