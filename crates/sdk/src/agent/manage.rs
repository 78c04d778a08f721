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
fn changing(core: &Core, id: &SessionId) -> Result<(Arc<SessionEntry>, QueuePosition)> {
    let entry = core.session(id)?;
    let place = entry.enqueue_change();
    Ok((entry, place))
}

/// MODE-06: at any time, also during a turn.
pub(super) fn set_mode(
    core: Arc<Core>,
    request: SetSessionModeRequest,
) -> impl Future<Output = Result<SetSessionModeResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, place) = changing?;
        place.wait_turn().await;
        options::check_mode(entry.state().settings(), &request.mode_id)?;
        entry.session.mode_changed(&request.mode_id).await?;
        let changed = options::put_mode(entry.state().settings(), &request.mode_id)?;
        core.send_options(&entry, changed);
        Ok(SetSessionModeResponse::new())
    }
}

pub(super) fn set_model(
    core: Arc<Core>,
    request: SetSessionModelRequest,
) -> impl Future<Output = Result<SetSessionModelResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, place) = changing?;
        place.wait_turn().await;
        options::check_model(entry.state().settings(), &request.model_id)?;
        entry.session.model_changed(&request.model_id).await?;
        let changed = options::put_model(entry.state().settings(), &request.model_id)?;
        core.send_options(&entry, changed);
        Ok(SetSessionModelResponse::new())
    }
}

/// CONF-13: answered with the complete list. CONF-17: at any time.
pub(super) fn set_config_option(
    core: Arc<Core>,
    request: SetSessionConfigOptionRequest,
) -> impl Future<Output = Result<SetSessionConfigOptionResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, place) = changing?;
        let client = core.client().ok_or_else(|| Error::internal("no client yet"))?;
        let value = match request.value {
            SessionConfigOptionValue::Boolean(flag) => OptionValue::Flag(flag),
            SessionConfigOptionValue::ValueId(value) => OptionValue::Choice(value.as_str().to_owned()),
            _ => return Err(Error::invalid_params("this kind of value is not known")),
        };
        place.wait_turn().await;
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
    // SSTAT-06: an unsupported filter is refused, never treated as another.
    let filter = match &request.archived {
        None => true,
        Some(SessionArchiveFilter::Exclude | SessionArchiveFilter::Include | SessionArchiveFilter::Only) => {
            core.services.archive.is_some()
        }
        Some(_) => false,
    };
    if !filter {
        return Err(Error::invalid_params("this agent does not support that `archived` filter"));
    }
    let mut response = list(request).await?;
    if core.services.archive.is_some() {
        // SSTAT-05: every entry states whether it is archived.
        for session in &mut response.sessions {
            session.archived.get_or_insert(false);
        }
    }
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

/// SSTAT-04: an open session is closed first.
pub(super) fn archive(
    core: Arc<Core>,
    request: ArchiveSessionRequest,
) -> impl Future<Output = Result<ArchiveSessionResponse>> {
    let closed = core.sessions.remove(&request.session_id).map(|entry| core.end(entry));
    async move {
        let (archive, _) =
            core.services.archive.as_ref().ok_or_else(|| method_not_found("session/archive"))?;
        if let Some(closed) = closed {
            closed.await;
        }
        archive(request.session_id).await?;
        Ok(ArchiveSessionResponse::new())
    }
}

pub(super) async fn unarchive(
    core: Arc<Core>,
    request: UnarchiveSessionRequest,
) -> Result<UnarchiveSessionResponse> {
    let (_, unarchive) =
        core.services.archive.as_ref().ok_or_else(|| method_not_found("session/unarchive"))?;
    unarchive(request.session_id).await?;
    Ok(UnarchiveSessionResponse::new())
}

/// SSTAT-08: stored before it is answered, and never empty.
pub(super) async fn set_title(
    core: Arc<Core>,
    request: SetSessionTitleRequest,
) -> Result<SetSessionTitleResponse> {
    let set = core.services.title.as_ref().ok_or_else(|| method_not_found("session/set_title"))?;
    let title = request.title.trim();
    if title.is_empty() {
        return Err(Error::invalid_params("a title must not be empty"));
    }
    Ok(SetSessionTitleResponse::new(set(request.session_id, title.to_owned()).await?))
}

/// SSTAT-01: read-only.
pub(super) async fn status(core: Arc<Core>, request: SessionStatusRequest) -> Result<SessionStatusResponse> {
    let status = core.services.status.as_ref().ok_or_else(|| method_not_found("session/status"))?;
    if core.sessions.get(&request.session_id).is_some() {
        return Ok(SessionStatusResponse::new(SessionStatus::Open));
    }
    Ok(SessionStatusResponse::new(status(request.session_id).await?))
}
