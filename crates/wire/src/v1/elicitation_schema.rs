//! Forms of elicitations: flat objects with a few kinds of properties.

// ELIC-10

use crate::shape::*;
use crate::v1::Fields;

#[path = "../both/elicitation_schema.rs"]
mod both;
pub use both::*;

closed_enum! {
    /// A form is always an object.
    pub enum ElicitationSchemaType {
        /// An object.
        Object = "object",
    }
}

#[expect(clippy::derivable_impls, reason = "the enum is declared by a table")]
impl Default for ElicitationSchemaType {
    fn default() -> Self {
        ElicitationSchemaType::Object
    }
}

#[cfg(feature = "drafts")]
closed_enum! {
    /// The type of the items of a multiple choice. Only in an older draft.
    pub enum ElicitationStringType {
        /// Texts.
        String = "string",
    }
}

closed_enum! {
    /// The format of a text. A form with an unlisted format is refused: its answers could not be
    /// validated.
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
    /// One answer of a choice, with something better to show than its value.
    pub struct EnumOption {
        required {
            /// The value.
            value "const": String [Required],
            /// The text to show.
            title "title": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
        }
    }
}

object! {
    /// A number.
    pub struct NumberPropertySchema {
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The least value.
            minimum "minimum": Option<f64> [Optional],
            /// The greatest value.
            maximum "maximum": Option<f64> [Optional],
            /// The initial value in the form.
            default_value "default": Option<f64> [Lenient], // ELIC-13
        }
    }
}

object! {
    /// A whole number.
    pub struct IntegerPropertySchema {
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The least value.
            minimum "minimum": Option<i64> [Optional],
            /// The greatest value.
            maximum "maximum": Option<i64> [Optional],
            /// The initial value in the form.
            default_value "default": Option<i64> [Lenient], // ELIC-13
        }
    }
}

object! {
    /// Yes or no.
    pub struct BooleanPropertySchema {
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The initial value in the form.
            default_value "default": Option<bool> [Lenient], // ELIC-13
        }
    }
}

object! {
    /// Texts to choose from.
    pub struct StringMultiSelectItems {
        required {
            /// The values.
            values "enum": Vec<String> [RequiredList],
        }
    }
}

object! {
    /// Texts to choose from, with titles.
    pub struct TitledMultiSelectItems {
        required {
            /// The values.
            any_of "anyOf": Vec<EnumOption> [Required],
        }
    }
}

tagged! {
    /// The choices of a multiple choice. Items with titles have no `type`.
    pub enum MultiSelectItems by "type" {
        /// Texts.
        String(StringMultiSelectItems) = "string",
    }
    untagged
    /// Texts with titles.
    Titled(TitledMultiSelectItems)
    other Other
}

object! {
    /// A multiple choice.
    pub struct MultiSelectPropertySchema {
        required {
            /// The choices.
            items "items": MultiSelectItems [Required],
        }
        optional {
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The least number of choices.
            min_items "minItems": Option<u64> [Optional],
            /// The greatest number of choices.
            max_items "maxItems": Option<u64> [Optional],
            /// The initial value in the form.
            default_value "default": Option<Vec<String>> [SkipInvalid], // ELIC-13
        }
    }
}

object! {
    /// A form.
    pub struct ElicitationSchema { // ELIC-10
        optional {
            /// Always an object.
            schema_type "type": ElicitationSchemaType [AlwaysWritten],
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The fields, in the order in which to show them.
            properties "properties": Fields<ElicitationPropertySchema> [StrictOrDefault],
            /// The names of fields that must be filled in.
            required "required": Option<Vec<String>> [Optional],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> serde_json::Result<ElicitationPropertySchema> {
        serde_json::from_str(text)
    }

    #[test]
    fn unknown_types_are_kept_but_known_ones_must_be_right() {
        // shows ELIC-10, ELIC-33
        let text = r#"{"type":"_colour","palette":["a"]}"#;
        let colour = read(text).unwrap();
        assert!(matches!(&colour, ElicitationPropertySchema::Other(unknown) if unknown.tag == "_colour"));
        assert_eq!(serde_json::to_string(&colour).unwrap(), text);
        for bad in [
            r#"{"title":"no type"}"#,
            r#"{"type":"string","format":"ipv4"}"#,
            r#"{"type":"string","minLength":-1}"#,
            r#"{"type":"string","enum":["a",5]}"#,
            r#"{"type":"integer","minimum":1.5}"#,
            r#"{"type":"array"}"#,
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"{"type":"array","items":{"type":"string","anyOf":[]}}"#,
            r#"{"type":"array","items":{}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_only_shown_is_lenient() {
        let text = r#"{"title":5,"description":null,"default":"x","minimum":null,"type":"integer"}"#;
        assert_eq!(read(text).unwrap(), IntegerPropertySchema::new().into());
        assert_eq!(
            read(r#"{"type":"boolean","default":"yes"}"#).unwrap(),
            BooleanPropertySchema::new().into()
        );
    }

    #[test]
    fn items_with_titles_have_no_type() {
        let text = r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"default":["a"]}"#;
        let ElicitationPropertySchema::Array(array) = read(text).unwrap() else { panic!() };
        assert_eq!(array.items, TitledMultiSelectItems::new([EnumOption::new("a", "A")]).into());
        assert_eq!(serde_json::to_string(&ElicitationPropertySchema::from(array)).unwrap(), text);
        let text = r#"{"type":"array","items":{"type":"_range","from":1}}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        let ElicitationPropertySchema::Array(array) = read(text).unwrap() else { panic!() };
        assert!(matches!(array.items, MultiSelectItems::Other(_)));
    }

    #[test]
    fn a_form_is_an_object_whatever_it_says() {
        let read = serde_json::from_str::<ElicitationSchema>;
        for text in ["{}", r#"{"type":"array"}"#, r#"{"type":null,"required":null,"title":5}"#] {
            assert_eq!(read(text).unwrap(), ElicitationSchema::new(), "{text}");
        }
        for bad in [r#"{"properties":null}"#, r#"{"properties":[]}"#, r#"{"required":["a",5]}"#, "null"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let text = r#"{"type":"object","properties":{"z":{"type":"number"},"a":{"type":"boolean"}}}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }
}
