//! Modes, models and config options: three views of one state that stay consistent.

// MODE-10, MODEL-03

use attache_rpc::ErrorObject;
use attache_wire::v1::{
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectOptions, SessionConfigValueId, SessionMode, SessionModeId,
    SessionModeState,
};

use super::client::ClientHandle;
use super::session::{OptionValue, Settings};
use crate::check::unknown;
use crate::{Error, Result};

/// Settings that changed together with an option.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) mode: Option<SessionModeId>,
}

/// The option that stands for the modes of a session that has none. Version 1 shows both.
fn option_as_modes(settings: &Settings) -> Option<(&SessionConfigId, &SessionConfigSelect)> {
    if settings.modes.is_some() {
        return None;
    }
    settings.options.iter().flatten().find_map(|option| match &option.kind {
        SessionConfigKind::Select(select) if option.category == Some(SessionConfigOptionCategory::Mode) => {
            Some((&option.id, select))
        }
        _ => None,
    })
}

/// The id of the option that stands for the modes of a session that has none.
pub(super) fn mode_option(settings: &Settings) -> Option<SessionConfigId> {
    option_as_modes(settings).map(|(id, _)| id.clone())
}

/// The current mode of a session whose modes are an option.
pub(super) fn mode_of_option(settings: &Settings) -> Option<SessionModeId> {
    option_as_modes(settings).map(|(_, select)| select.current_value.as_str().into())
}

/// The modes that an option stands for.
fn derived_modes(settings: &Settings) -> Option<SessionModeState> {
    let (_, select) = option_as_modes(settings)?;
    let modes = select.options.iter().map(|value| {
        SessionMode::new(value.value.as_str(), value.name.clone()).description(value.description.clone())
    });
    Some(SessionModeState::new(select.current_value.as_str(), modes.collect::<Vec<_>>()))
}

// MODE-04: the mode must be available.
pub(super) fn check_mode(settings: &Settings, mode: &SessionModeId) -> Result<()> {
    if let Some((id, _)) = option_as_modes(settings) {
        return check_option(settings, id, &OptionValue::Choice(mode.as_str().to_owned()));
    }
    let modes = settings.modes.as_ref().ok_or_else(|| not_offered("session/set_mode"))?;
    if modes.available_modes.iter().any(|offered| offered.id == *mode) {
        return Ok(());
    }
    let available = modes.available_modes.iter().map(|mode| mode.id.as_str());
    Err(Error::invalid_params(unknown("mode", mode.as_str(), available)))
}

// CONF-15, CONF-19: the option must exist and the value must fit.
pub(super) fn check_option(settings: &Settings, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
    let options = settings.options.as_ref().ok_or_else(|| not_offered("session/set_config_option"))?;
    let option = options.iter().find(|option| option.id == *id);
    let option = option.ok_or_else(|| {
        let available = options.iter().map(|option| option.id.as_str());
        Error::invalid_params(unknown("option", id.as_str(), available))
    })?;
    let fits = match (&option.kind, value) {
        (SessionConfigKind::Boolean(_), OptionValue::Flag(_)) => true,
        (SessionConfigKind::Select(select), OptionValue::Choice(choice)) => {
            has_value(&select.options, choice)
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(Error::invalid_params(format!("`{id}` does not take this value"))) }
}

pub(super) fn not_offered(method: &str) -> Error {
    Error::Refused(ErrorObject::method_not_found(method))
}

fn has_value(options: &SessionConfigSelectOptions, value: &str) -> bool {
    match options {
        SessionConfigSelectOptions::Ungrouped(options) => options.iter().any(|option| option.value == *value),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).any(|option| option.value == *value)
        }
        _ => false,
    }
}

/// Changes the mode; returns whether an option changed with it.
pub(super) fn put_mode(settings: &mut Settings, mode: &SessionModeId) -> Result<bool> {
    if let Some(id) = mode_option(settings) {
        put_option(settings, &id, &OptionValue::Choice(mode.as_str().to_owned()))?;
        return Ok(true);
    }
    check_mode(settings, mode)?;
    if let Some(modes) = &mut settings.modes {
        modes.current_mode_id = mode.clone();
    }
    Ok(put_category(settings, &SessionConfigOptionCategory::Mode, mode.as_str()))
}

/// Sets the select option of a category, if there is one that has the value.
pub(super) fn put_category(
    settings: &mut Settings,
    category: &SessionConfigOptionCategory,
    value: &str,
) -> bool {
    for option in settings.options.iter_mut().flatten() {
        if option.category.as_ref() == Some(category)
            && let SessionConfigKind::Select(select) = &mut option.kind
            && has_value(&select.options, value)
        {
            select.current_value = SessionConfigValueId::from(value);
            return true;
        }
    }
    false
}

/// Sets an option; modes and models of the same category follow.
pub(super) fn put_option(
    settings: &mut Settings,
    id: &SessionConfigId,
    value: &OptionValue,
) -> Result<Changed> {
    check_option(settings, id, value)?;
    let mut changed = Changed::default();
    let is_mode = mode_option(settings).as_ref() == Some(id);
    let Some(option) = settings.options.iter_mut().flatten().find(|option| option.id == *id) else {
        return Ok(changed);
    };
    match (&mut option.kind, value) {
        (SessionConfigKind::Boolean(boolean), OptionValue::Flag(flag)) => boolean.current_value = *flag,
        (SessionConfigKind::Select(select), OptionValue::Choice(choice)) => {
            select.current_value = SessionConfigValueId::from(choice.as_str());
        }
        _ => {}
    }
    if let OptionValue::Choice(choice) = value {
        match &option.category {
            _ if is_mode => changed.mode = Some(SessionModeId::from(choice.as_str())),
            Some(SessionConfigOptionCategory::Mode) => {
                if let Some(modes) = &mut settings.modes
                    && modes.available_modes.iter().any(|mode| mode.id == *choice.as_str())
                {
                    modes.current_mode_id = SessionModeId::from(choice.as_str());
                    changed.mode = Some(modes.current_mode_id.clone());
                }
            }
            #[cfg(feature = "drafts")]
            Some(SessionConfigOptionCategory::Model) => super::drafts::follow_option(settings, choice),
            _ => {}
        }
    }
    Ok(changed)
}

/// The settings that the client supports.
pub(super) fn visible_settings(settings: &Settings, client: &ClientHandle) -> Settings {
    let mut visible = settings.clone();
    visible.options = self::visible(settings, client);
    // Version 2 has no modes.
    visible.modes = visible.modes.or_else(|| derived_modes(settings));
    visible
}

/// The options that the client supports.
pub(super) fn visible(settings: &Settings, client: &ClientHandle) -> Option<Vec<SessionConfigOption>> {
    let options = settings.options.as_deref();
    let visible = options.map(|options| options.iter().filter(|option| is_visible(option, client)).cloned());
    match modes_as_option(settings).filter(|_| client.is_v2()) {
        None => visible.map(Iterator::collect),
        Some(modes) => {
            let modes = super::v2::mode_option(modes);
            Some(visible.into_iter().flatten().chain([modes]).collect())
        }
    }
}

/// The modes, if no option of the agent stands for them. Version 2 has options only.
pub(super) fn modes_as_option(settings: &Settings) -> Option<&SessionModeState> {
    let is_mode = |option: &SessionConfigOption| {
        option.category == Some(SessionConfigOptionCategory::Mode) || option.id == *super::v2::MODE
    };
    let known = settings.options.as_ref().is_some_and(|options| options.iter().any(is_mode));
    settings.modes.as_ref().filter(|_| !known)
}

// CONF-07, CONF-08: booleans only for clients that support them.
pub(super) fn is_visible(option: &SessionConfigOption, client: &ClientHandle) -> bool {
    let session = client.capabilities().session.as_ref();
    let known = session.and_then(|session| session.config_options.as_ref());
    let booleans = known.is_some_and(|options| options.boolean.is_some());
    booleans || !matches!(option.kind, SessionConfigKind::Boolean(_))
}

/// Checks that the current settings are available; otherwise the client would show values that
/// cannot be chosen.
pub(super) fn check_settings(settings: &Settings) -> Result<()> {
    if let Some(modes) = &settings.modes
        && !modes.available_modes.iter().any(|mode| mode.id == modes.current_mode_id)
    {
        return Err(unusable(format_args!("mode `{}` is not one of its modes", modes.current_mode_id)));
    }
    #[cfg(feature = "drafts")]
    super::drafts::check_settings(settings)?;
    settings.options.as_deref().map_or(Ok(()), check_options)
}

// CONF-05: every option has a usable current value.
pub(super) fn check_options(options: &[SessionConfigOption]) -> Result<()> {
    let bad = options.iter().find(|option| match &option.kind {
        SessionConfigKind::Select(select) => !has_value(&select.options, select.current_value.as_str()),
        _ => false,
    });
    match bad {
        Some(option) => {
            Err(unusable(format_args!("value of option `{}` is not one of its values", option.id)))
        }
        None => Ok(()),
    }
}

pub(super) fn unusable(what: std::fmt::Arguments<'_>) -> Error {
    Error::Refused(ErrorObject::internal(format!("the session's current {what}")))
}
