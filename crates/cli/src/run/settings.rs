//! Modes, models and options of a session.
//!
//! Values are checked against the agent's lists before they are sent. Some agents send no lists
//! when a session is resumed; values are sent unchecked then, and the agent decides.

use std::sync::Arc;

use attache::client::{AgentHandle, Session, SessionControl};
use attache::wire::v1::{
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigOptionValue, SetSessionConfigOptionRequest, SetSessionModeRequest, SetSessionModelRequest,
};
use attache::{Error, code};

use crate::error::{DetailCode, Failure, Result};

/// Switches the mode.
pub(crate) async fn set_mode(session: &Session, mode: &str) -> Result<()> {
    let set = switch_mode(session.agent(), &session.control(), mode).await;
    set.map_err(|failure| match session.modes() {
        Some(modes) if failure.answered.is_none() => {
            let ids: Vec<String> = modes.available_modes.iter().map(|mode| mode.id.to_string()).collect();
            failure.hint(format!("it offers: {}", ids.join(", ")))
        }
        _ => failure,
    })
}

/// The same while a turn has the session.
pub(super) async fn switch_mode(agent: &AgentHandle, control: &SessionControl, mode: &str) -> Result<()> {
    match control.set_mode(mode).await {
        Err(Error::Unsupported(_)) => {
            let request = SetSessionModeRequest::new(control.id().clone(), mode);
            let set = agent.request(&request).await;
            set.map(|_| ()).map_err(|error| unknown(error, "this agent offers no modes"))
        }
        set => set.map_err(Failure::from),
    }
}

/// Switches the model: by the agent's option for models, or in the older way.
pub(crate) async fn set_model(session: &Session, model: &str) -> Result<()> {
    let option = model_option(&session.config_options()).map(|option| option.id.to_string());
    switch_model(session.agent(), &session.control(), option.as_deref(), model).await
}

/// The same while a turn has the session. `option` is the agent's option for models.
pub(super) async fn switch_model(
    agent: &AgentHandle,
    control: &SessionControl,
    option: Option<&str>,
    model: &str,
) -> Result<()> {
    if let Some(option) = option {
        return control.set_config_option(option, model).await.map(|_| ()).map_err(Failure::from);
    }
    match control.set_model(model).await {
        Err(Error::Unsupported(_)) => {
            let request = SetSessionModelRequest::new(control.id().clone(), model);
            let set = agent.request(&request).await;
            set.map(|_| ()).map_err(|error| {
                unknown(error, "the agent offers no choice of models").detail(DetailCode::ModelUnsupported)
            })
        }
        set => set.map_err(Failure::from),
    }
}

/// The id of the agent's option for models, if it has one.
pub(crate) fn model_option_id(session: &Session) -> Option<String> {
    model_option(&session.config_options()).map(|option| option.id.to_string())
}

pub(super) fn model_option(options: &[SessionConfigOption]) -> Option<&SessionConfigOption> {
    let category =
        |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
    options.iter().find(category).or_else(|| options.iter().find(|option| option.id.as_str() == "model"))
}

/// Sets an option: to a value's id, or, where it is a switch, to true or false.
pub(crate) async fn set_option(
    session: &Session,
    key: &str,
    value: &str,
) -> Result<Arc<[SessionConfigOption]>> {
    let options = session.config_options();
    if options.is_empty() {
        return send_option(session.agent(), &session.control(), key, value).await;
    }
    let Some(option) = options.iter().find(|option| option.id.as_str() == key) else {
        let known: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
        return Err(Failure::runtime(format_args!("the agent does not offer the option `{key}`"))
            .detail(DetailCode::OptionUnknown)
            .hint(format!("it offers: {}", known.join(", "))));
    };
    let offered: Vec<String> = match &option.kind {
        SessionConfigKind::Select(select) => {
            select.options.iter().map(|option| option.value.to_string()).collect()
        }
        _ => vec!["true".to_owned(), "false".to_owned()],
    };
    let wanted: SessionConfigOptionValue = match &option.kind {
        SessionConfigKind::Boolean(_) => switch(value).map_or_else(|| value.into(), Into::into),
        _ => value.into(),
    };
    session.control().set_config_option(option.id.clone(), wanted).await.map_err(|error| {
        let failure = Failure::from(error);
        if failure.answered.is_some() {
            failure
        } else {
            failure.hint(format!("`{key}` is one of: {}", offered.join(", ")))
        }
    })
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "true" | "on" | "yes" => Some(true),
        "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// Sets an option while a turn has the session. `any` says whether the agent has sent its options.
pub(super) async fn switch_option(
    agent: &AgentHandle,
    control: &SessionControl,
    any: bool,
    key: &str,
    value: &str,
) -> Result<Arc<[SessionConfigOption]>> {
    if !any {
        return send_option(agent, control, key, value).await;
    }
    let set = control.set_config_option(key, value).await;
    let set = match (set, switch(value)) {
        // Refused on this side: it may be a switch.
        (Err(Error::Invalid(_)), Some(yes)) => control.set_config_option(key, yes).await,
        (set, _) => set,
    };
    set.map_err(Failure::from)
}

/// Sets an option of which nothing is known.
async fn send_option(
    agent: &AgentHandle,
    control: &SessionControl,
    key: &str,
    value: &str,
) -> Result<Arc<[SessionConfigOption]>> {
    // Only `true` and `false` are tried as a switch: "on" is as likely to be the name of a value.
    let wanted: SessionConfigOptionValue = match value.parse::<bool>() {
        Ok(yes) => yes.into(),
        Err(_) => value.into(),
    };
    let request =
        SetSessionConfigOptionRequest::new(control.id().clone(), SessionConfigId::from(key), wanted);
    let set = agent.request(&request).await;
    let set = set.map_err(|error| unknown(error, "this agent offers no options"));
    Ok(set.map_err(|failure| failure.detail(DetailCode::OptionUnknown))?.config_options.into())
}

/// An agent that does not know the method has nothing to choose from; anything else it says itself.
fn unknown(error: Error, what: &str) -> Failure {
    match &error {
        Error::Refused(answer) if answer.code == code::METHOD_NOT_FOUND => {
            let mut failure = Failure::runtime(what);
            failure.answered = Some(answer.clone());
            failure
        }
        _ => Failure::from(error),
    }
}
