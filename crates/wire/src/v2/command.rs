//! Slash commands.

use crate::shape::*;

object! {
    /// A command takes the text that follows its name.
    pub struct TextCommandInput {
        required {
            /// A hint that is shown while the input is empty.
            hint "hint": String [Required],
        }
    }
}

tagged! {
    /// The input of a command.
    pub enum AvailableCommandInput by "type" {
        /// Free text.
        Text(TextCommandInput) = "text",
    }
    other Other
}

object! {
    /// A command; it is run by a prompt whose text begins with `/name`.
    pub struct Command {
        required {
            // V2-41
            /// The name, without slash or blanks and unique in the list.
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

tagged! {
    // V2-41
    /// An entry of the list of commands. Every entry has a type, a name and a description.
    pub enum AvailableCommand by "type" {
        /// A command.
        Command(Command) = "command",
    }
    other Other ["name" "description"]
}

object! {
    /// The session's commands. The list replaces the one before it.
    pub struct AvailableCommandsUpdate {
        required {
            /// All commands; malformed ones are skipped.
            available_commands "availableCommands": Vec<AvailableCommand> [ListSkipInvalid],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_command_without_a_type_is_skipped() {
        // shows V2-41, V2-21
        let text = r#"{"availableCommands":[{"name":"a","description":"A"},
            {"type":"command","name":"b","description":"B","input":{"type":"text"}},
            {"type":"_macro","name":"c","description":"C"},{"type":"_macro","name":"d"}]}"#;
        let update: AvailableCommandsUpdate = serde_json::from_str(text).unwrap();
        let [AvailableCommand::Command(b), AvailableCommand::Other(c)] = &update.available_commands[..]
        else {
            panic!("{update:?}")
        };
        assert_eq!(*b, Command::new("b", "B"));
        assert_eq!(c.get::<String>("name").as_deref(), Some("c"));
        assert!(serde_json::from_str::<AvailableCommandsUpdate>(r#"{"availableCommands":null}"#).is_err());
    }
}
