//! Requests about sessions beside prompts: modes, models, options, lists, titles.

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::*;

use super::core::Core;
use super::open::method_not_found;
use super::options;
use super::session::OptionValue;
use super::table::{QueuePosition, SessionEntry};
use crate::{Error, Result};

/// The session to change, and a position in the queue of its changes.
pub(super) fn changing(core: &Core, id: &SessionId) -> Result<(Arc<SessionEntry>, QueuePosition)> {
    let entry = core.session(id)?;
    let position = entry.enqueue_change();
    Ok((entry, position))
}

// MODE-06: at any time, also during a turn.
pub(super) fn set_mode(
    core: Arc<Core>,
    request: SetSessionModeRequest,
) -> impl Future<Output = Result<SetSessionModeResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, position) = changing?;
        position.wait_turn().await;
        options::check_mode(entry.state().settings(), &request.mode_id)?;
        let option = options::mode_option(entry.state().settings());
        match option {
            // The option is the truth; its modes only show it.
            Some(id) => {
                let value = OptionValue::Choice(request.mode_id.as_str().to_owned());
                entry.session.option_changed(&id, &value).await?;
            }
            None => entry.session.mode_changed(&request.mode_id).await?,
        }
        let changed = options::put_mode(entry.state().settings(), &request.mode_id)?;
        core.send_options(&entry, changed);
        Ok(SetSessionModeResponse::new())
    }
}

// CONF-13: answered with the complete list. CONF-17: at any time.
pub(super) fn set_config_option(
    core: Arc<Core>,
    request: SetSessionConfigOptionRequest,
) -> impl Future<Output = Result<SetSessionConfigOptionResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, position) = changing?;
        let client = core.client().ok_or_else(|| Error::internal("no client yet"))?;
        let value = match request.value {
            SessionConfigOptionValue::Boolean(flag) => OptionValue::Flag(flag),
            SessionConfigOptionValue::ValueId(value) => OptionValue::Choice(value.as_str().to_owned()),
            _ => return Err(Error::invalid_params("this kind of value is not known")),
        };
        position.wait_turn().await;
        options::check_option(entry.state().settings(), &request.config_id, &value)?;
        entry.session.option_changed(&request.config_id, &value).await?;
        let changed = options::put_option(entry.state().settings(), &request.config_id, &value)?;
        if let Some(mode) = changed.mode {
            core.send_update(&entry, SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode)));
        }
        let options = options::visible(entry.state().settings(), &client).unwrap_or_default();
        Ok(SetSessionConfigOptionResponse::new(options))
    }
}

pub(super) async fn list(core: Arc<Core>, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
    let list = core.services.list.as_ref().ok_or_else(|| method_not_found("session/list"))?;
    #[cfg(feature = "unstable")]
    super::unstable::check_list(&core.services, &request)?;
    let response = list(request).await?;
    #[cfg(feature = "unstable")]
    let response = super::unstable::complete_list(&core.services, response);
    Ok(response)
}

/// An open session is closed first.
pub(super) fn delete(
    core: Arc<Core>,
    request: DeleteSessionRequest,
) -> impl Future<Output = Result<DeleteSessionResponse>> {
    let closed = core.sessions.remove(&request.session_id).map(|entry| core.end(entry));
    async move {
        let delete = core.services.delete.as_ref().ok_or_else(|| method_not_found("session/delete"))?;
        if let Some(closed) = closed {
            closed.await;
        }
        match delete(request.session_id).await {
            // DEL-04: a missing session counts as deleted.
            Err(error) if error.is_not_found() => {}
            other => other?,
        }
        Ok(DeleteSessionResponse::new())
    }
}
