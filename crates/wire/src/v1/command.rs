//! Slash commands.

// CMD-01 to CMD-06

use crate::shape::*;

object! {
    /// A command takes the text that follows its name.
    pub struct UnstructuredCommandInput {
        required {
            /// A hint that is shown while the input is empty.
            hint "hint": String [Required],
        }
    }
}

/// The input of a command. The wire form has no tag, so there is only one kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AvailableCommandInput {
    /// Free text.
    Unstructured(UnstructuredCommandInput),
}

impl<'de> serde::Deserialize<'de> for AvailableCommandInput {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UnstructuredCommandInput::deserialize(deserializer).map(AvailableCommandInput::Unstructured)
    }
}

impl serde::Serialize for AvailableCommandInput {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AvailableCommandInput::Unstructured(input) => input.serialize(serializer),
        }
    }
}

impl From<UnstructuredCommandInput> for AvailableCommandInput {
    fn from(input: UnstructuredCommandInput) -> Self {
        AvailableCommandInput::Unstructured(input)
    }
}

object! {
    /// A command; it is run by a prompt whose text begins with `/name`.
    pub struct AvailableCommand { // CMD-03, CMD-04
        required {
            /// The name, without the slash.
            name "name": String [Required],
            /// A description to show.
            description "description": String [Required],
        }
        optional {
            /// The input that follows the name.
            input "input": Option<AvailableCommandInput> [Lenient],
        }
    }
}

object! {
    /// The session's commands. The list replaces the one before it.
    pub struct AvailableCommandsUpdate { // CMD-02
        required {
            /// All commands; malformed ones are skipped.
            available_commands "availableCommands": Vec<AvailableCommand> [SkipInvalid],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_malformed_command_is_skipped_and_a_malformed_input_ignored() {
        // shows CMD-03
        let text = r#"{"availableCommands":[{"name":"x"},{"name":"y","description":"","input":{"hint":5}}]}"#;
        let update: AvailableCommandsUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(update.available_commands, [AvailableCommand::new("y", "")]);
        assert!(serde_json::from_str::<AvailableCommandsUpdate>("{}").is_err());
    }

    #[test]
    fn an_input_is_written_without_a_tag() {
        let input = AvailableCommandInput::from(UnstructuredCommandInput::new("what"));
        let command = AvailableCommand::new("x", "d").input(input);
        let text = r#"{"name":"x","description":"d","input":{"hint":"what"}}"#;
        assert_eq!(serde_json::to_string(&command).unwrap(), text);
        assert_eq!(serde_json::from_str::<AvailableCommand>(text).unwrap(), command);
    }
}
