//! A snapshot of the session's state, for the status line and for commands.

use std::sync::Arc;

use attache::client::Session;
use attache::wire::v1::{
    AvailableCommand, AvailableCommandInput, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionId, SessionModeState, SessionModelState, UsageUpdate,
};

/// A copy of the session's state, readable while a turn borrows the session.
#[derive(Debug, Clone)]
pub(crate) struct SessionState {
    pub(crate) id: SessionId,
    pub(crate) title: Option<String>,
    pub(crate) commands: Arc<[AvailableCommand]>,
    pub(crate) options: Arc<[SessionConfigOption]>,
    pub(crate) modes: Option<SessionModeState>,
    pub(crate) models: Option<SessionModelState>,
    pub(crate) usage: Option<UsageUpdate>,
}

impl SessionState {
    pub(crate) fn of(session: &Session) -> SessionState {
        SessionState {
            id: session.id().clone(),
            title: session.title(),
            commands: session.commands(),
            options: session.config_options(),
            modes: session.modes(),
            models: session.models(),
            usage: session.usage(),
        }
    }

    /// The state before there is a session.
    pub(crate) fn empty() -> SessionState {
        SessionState {
            id: SessionId::from(""),
            title: None,
            commands: Arc::new([]),
            options: Arc::new([]),
            modes: None,
            models: None,
            usage: None,
        }
    }

    /// Returns the mode: an option if the agent has one for it, else a mode.
    // CONF-02, MODE-09
    pub(crate) fn mode(&self) -> Option<Setting> {
        self.option_of(&SessionConfigOptionCategory::Mode).or_else(|| {
            let modes = self.modes.as_ref().filter(|_| self.options.is_empty())?;
            Some(Setting {
                target: Target::Mode,
                current: modes.current_mode_id.to_string(),
                values: modes
                    .available_modes
                    .iter()
                    .map(|mode| SettingValue::new(mode.id.as_str(), &mode.name, mode.description.as_deref()))
                    .collect(),
            })
        })
    }

    /// Returns the model: an option if the agent has one for it, else the older form.
    // MODEL-03
    pub(crate) fn model(&self) -> Option<Setting> {
        self.option_of(&SessionConfigOptionCategory::Model).or_else(|| {
            let models = self.models.as_ref()?;
            Some(Setting {
                target: Target::Model,
                current: models.current_model_id.to_string(),
                values: models
                    .available_models
                    .iter()
                    .map(|model| {
                        SettingValue::new(model.model_id.as_str(), &model.name, model.description.as_deref())
                    })
                    .collect(),
            })
        })
    }

    fn option_of(&self, category: &SessionConfigOptionCategory) -> Option<Setting> {
        self.options.iter().find(|option| option.category.as_ref() == Some(category)).map(Setting::of)
    }

    pub(crate) fn option(&self, id: &str) -> Option<Setting> {
        self.options.iter().find(|option| option.id.as_str() == id).map(Setting::of)
    }
}

/// The request that changes a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Mode,
    Model,
    Option(String),
    /// A boolean option.
    Switch(String),
}

/// A setting with a list of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) target: Target,
    pub(crate) current: String,
    pub(crate) values: Vec<SettingValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingValue {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) about: String,
}

impl SettingValue {
    fn new(id: &str, name: &str, about: Option<&str>) -> SettingValue {
        SettingValue { id: id.to_owned(), name: name.to_owned(), about: about.unwrap_or_default().to_owned() }
    }
}

impl Setting {
    fn of(option: &SessionConfigOption) -> Setting {
        let id = option.id.to_string();
        match &option.kind {
            SessionConfigKind::Select(select) => Setting {
                target: Target::Option(id),
                current: select.current_value.to_string(),
                values: select
                    .options
                    .iter()
                    .map(|value| {
                        SettingValue::new(value.value.as_str(), &value.name, value.description.as_deref())
                    })
                    .collect(),
            },
            SessionConfigKind::Boolean(switch) => Setting {
                target: Target::Switch(id),
                current: if switch.current_value { "on" } else { "off" }.to_owned(),
                values: vec![SettingValue::new("on", "On", None), SettingValue::new("off", "Off", None)],
            },
            _ => Setting { target: Target::Option(id), current: String::new(), values: Vec::new() },
        }
    }

    /// Finds a value by id, or by name if that is unambiguous.
    pub(crate) fn find(&self, wanted: &str) -> Option<&SettingValue> {
        let named = |value: &&SettingValue| value.name.eq_ignore_ascii_case(wanted);
        self.values.iter().find(|value| value.id == wanted).or_else(|| {
            let mut found = self.values.iter().filter(named);
            found.next().filter(|_| found.next().is_none())
        })
    }

    pub(crate) fn current_name(&self) -> &str {
        let current = self.values.iter().find(|value| value.id == self.current);
        current.map_or(self.current.as_str(), |value| value.name.as_str())
    }
}

/// Returns the hint for the input of an agent's command.
pub(crate) fn hint(command: &AvailableCommand) -> &str {
    match &command.input {
        Some(AvailableCommandInput::Unstructured(input)) => &input.hint,
        _ => "",
    }
}

/// Formats a number of tokens in a few characters.
pub(crate) fn tokens(count: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is rounded to one digit anyway")]
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 => format!("{:.1}k", count as f64 / 1e3),
        100_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// Formats an amount of money.
pub(crate) fn money(amount: f64, currency: &str) -> String {
    match currency {
        "USD" => format!("${amount:.2}"),
        "EUR" => format!("{amount:.2} EUR"),
        other => format!("{amount:.2} {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0, 999, 1_000, 12_345, 200_000, 1_234_567].map(tokens);
        assert_eq!(all, ["0", "999", "1.0k", "12.3k", "200k", "1.2M"]);
        assert_eq!(money(0.126, "USD"), "$0.13");
    }
}
