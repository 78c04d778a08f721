//! Opening and closing sessions: new, load, resume, fork, close.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use attache_conn::Responder;
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    AvailableCommand, CloseSessionRequest, CloseSessionResponse, ForkSessionRequest, ForkSessionResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SystemPrompt, SystemPromptMode,
};

use super::builder::{Services, Start, SystemPrompts};
use super::client::Client;
use super::core::{Answer, Core};
use super::handle::SessionHandle;
use super::options;
use super::session::{Boxed, NewSession, Offers, Opened};
use super::table::{Entry, fresh_id};
use crate::check;
use crate::race::{First, race};
use crate::{Error, Result, SessionId};

/// Checks what is asked for against what the agent offers; whatever is wrong is refused before anything is made.
fn check(asked: &NewSession, services: &Services) -> Result<()> {
    as_params(check::absolute(&asked.cwd))?; // ROOT-01
    if !asked.additional_directories.is_empty() && !services.additional_directories {
        // ROOT-14: refused, never ignored.
        return Err(Error::invalid_params("this agent takes no `additionalDirectories`"));
    }
    for root in &asked.additional_directories {
        as_params(check::absolute(root))?; // ROOT-10
    }
    for server in &asked.mcp_servers {
        // MCP-08
        let (taken, kind) = match server {
            McpServer::Http(_) => (services.mcp.http, "http"),
            McpServer::Sse(_) => (services.mcp.sse, "sse"),
            McpServer::Acp(_) => (services.mcp.acp, "acp"),
            _ => (true, "stdio"),
        };
        if !taken {
            return Err(Error::invalid_params(format!("this agent takes no MCP servers of type `{kind}`")));
        }
    }
    asked.system_prompt.as_ref().map_or(Ok(()), |prompt| check_system_prompt(prompt, services))
}

/// SYSP-02: what is not supported makes no session.
fn check_system_prompt(prompt: &SystemPrompt, services: &Services) -> Result<()> {
    let fits = match (services.system_prompt, &prompt.mode) {
        (Some(_), SystemPromptMode::Append) => true,
        (Some(which), SystemPromptMode::Override) => which == SystemPrompts::AppendOrOverride,
        _ => false,
    };
    if !fits {
        return Err(Error::invalid_params(format!(
            "this agent takes no system prompt of mode `{}`",
            prompt.mode
        )));
    }
    as_params(check::system_prompt_content(prompt))
}

/// The client's argument is to blame.
fn as_params<T>(checked: Result<T>) -> Result<T> {
    checked.map_err(|error| Error::invalid_params(error.to_string()))
}

/// The requests that open a session are four types with the same members; a new member is taken over here, for all.
macro_rules! asked {
    ($request:ident, $servers:expr, $handle:ident) => {
        NewSession {
            id: $handle.id().clone(),
            cwd: PathBuf::from($request.cwd),
            additional_directories: match $request.additional_directories {
                Some(roots) => roots.into_iter().map(PathBuf::from).collect(),
                None => Vec::new(),
            },
            mcp_servers: $servers,
            system_prompt: $request.system_prompt,
            meta: $request.meta,
            client: $handle.client().clone(),
            session: $handle.clone(),
        }
    };
}

/// Their answers, likewise.
macro_rules! with_offers {
    ($response:expr, $offers:expr) => {
        match $offers {
            None => $response,
            Some(offers) => {
                $response.modes(offers.modes).models(offers.models).config_options(offers.options)
            }
        }
    };
}

/// What the answer of an opened session shows.
struct Shown {
    id: SessionId,
    offers: Option<Box<Offers>>,
}

/// One of the ways to open a session.
struct Way {
    /// Whether the agent may give the session an id of its own; else the client knows it already.
    names: bool,
    respond: fn(Responder, Shown),
}

/// A session that is being opened.
struct Opening {
    responder: Responder,
    handle: SessionHandle,
    way: Way,
}

/// The way every session is opened: check, let the author make it, put it into the table, answer.
fn open(
    core: &Arc<Core>,
    responder: Responder,
    asked: NewSession,
    handle: SessionHandle,
    make: impl FnOnce(&Services, NewSession, Start) -> Option<Boxed<'static, Result<Opened>>>,
    way: Way,
) {
    if let Err(error) = check(&asked, &core.services) {
        return responder.err(error.to_wire());
    }
    let Some(mut making) = make(&core.services, asked, core.start) else {
        return responder.err(ErrorObject::internal("this agent cannot open sessions that way"));
    };
    let opening = Opening { responder, handle, way };
    match core.begin(&mut making) {
        Some(made) => {
            // Nothing of it is left but the box.
            drop(making);
            opening.at_once(core, made);
        }
        None => drop(core.spawn(opening.run(core.clone(), making))),
    }
}

impl Opening {
    /// The author's function has ended already.
    fn at_once(self, core: &Arc<Core>, made: Result<Opened>) {
        let made = match made.and_then(checked) {
            Ok(opened) => opened,
            Err(error) => return self.failed(&error),
        };
        let made = Made::new(&self.way, &self.handle, made);
        if core.sessions.add(&made.entry) {
            return self.finish(made);
        }
        // The client opened it once more: the older one has to leave first, and that may take a while.
        drop(core.spawn(self.relieve(core.clone(), made)));
    }

    async fn run(self, core: Arc<Core>, mut making: Boxed<'static, Result<Opened>>) {
        let token = self.responder.cancellation();
        match race(making.as_mut(), pin!(token.cancelled())).await {
            First::Left(Ok(opened)) => match checked(opened) {
                Ok(opened) => {
                    let made = Made::new(&self.way, &self.handle, opened);
                    self.relieve(core, made).await;
                }
                Err(error) => self.failed(&error),
            },
            First::Left(Err(error)) => self.failed(&error),
            First::Right(()) => self.failed(&Error::Cancelled),
        }
    }

    /// An older session of the same id is over before the new one is there.
    async fn relieve(self, core: Arc<Core>, made: Made) {
        let token = self.responder.cancellation();
        let leaving = async {
            while let Some(older) = core.sessions.remove(&made.entry.id) {
                core.end(older).await;
            }
        };
        if let First::Right(()) = race(pin!(leaving), pin!(token.cancelled())).await {
            return self.failed(&Error::Cancelled);
        }
        if let Some(older) = core.sessions.replace(&made.entry) {
            // Somebody else opened it in the same moment; the last one counts.
            drop(core.end(older));
        }
        self.finish(made);
    }

    /// The answer is written after the session can be found and before any update of it that was held back (SESS-31).
    fn finish(self, made: Made) {
        let Opening { responder, handle, way } = self;
        let Made { entry, shown, commands } = made;
        (way.respond)(responder, shown);
        handle.opened(&entry, commands);
    }

    fn failed(self, error: &Error) {
        self.handle.failed();
        self.responder.err(error.to_wire());
    }
}

fn checked(opened: Opened) -> Result<Opened> {
    opened.offers.as_deref().map_or(Ok(()), options::check_offers)?;
    Ok(opened)
}

/// A session on its way into the table.
struct Made {
    entry: Arc<Entry>,
    shown: Shown,
    commands: Option<Vec<AvailableCommand>>,
}

impl Made {
    fn new(way: &Way, handle: &SessionHandle, opened: Opened) -> Made {
        let Opened { session, id, offers, commands } = opened;
        let id = id.filter(|_| way.names).unwrap_or_else(|| handle.id().clone());
        let visible = |offers: &Offers| {
            let options = options::visible(offers, handle.client());
            Box::new(Offers { modes: offers.modes.clone(), models: offers.models.clone(), options })
        };
        let shown = Shown { id: id.clone(), offers: offers.as_deref().map(visible) };
        Made { entry: Entry::new(id, session, offers), shown, commands }
    }
}

pub(super) fn new(core: &Arc<Core>, client: Client, request: NewSessionRequest, responder: Responder) {
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(NewSessionResponse::new(shown.id), shown.offers));
    };
    let handle = SessionHandle::shut(client, fresh_id());
    let asked = asked!(request, request.mcp_servers, handle);
    let make = |services: &Services, asked, start| Some((services.open)(asked, start));
    open(core, responder, asked, handle, make, Way { names: true, respond });
}

pub(super) fn load(core: &Arc<Core>, client: Client, request: LoadSessionRequest, responder: Responder) {
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(LoadSessionResponse::new(), shown.offers));
    };
    // The client knows the id, so the replay needs no gate: it is sent as it comes, before the answer (SESS-12).
    let handle = SessionHandle::replay(client, request.session_id);
    let asked = asked!(request, request.mcp_servers, handle);
    let make = |services: &Services, asked, start| services.load.as_ref().map(|load| load(asked, start));
    open(core, responder, asked, handle, make, Way { names: false, respond });
}

pub(super) fn resume(core: &Arc<Core>, client: Client, request: ResumeSessionRequest, responder: Responder) {
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(ResumeSessionResponse::new(), shown.offers));
    };
    // SESS-23: nothing comes before the answer.
    let handle = SessionHandle::shut(client, request.session_id);
    let asked = asked!(request, request.mcp_servers.unwrap_or_default(), handle);
    let make =
        |services: &Services, asked, start| services.resume.as_ref().map(|resume| resume(asked, start));
    open(core, responder, asked, handle, make, Way { names: false, respond });
}

pub(super) fn fork(core: &Arc<Core>, client: Client, request: ForkSessionRequest, responder: Responder) {
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(ForkSessionResponse::new(shown.id), shown.offers));
    };
    // FORK-02: a session of its own, with an id of its own.
    let handle = SessionHandle::shut(client, fresh_id());
    let asked = asked!(request, request.mcp_servers.unwrap_or_default(), handle);
    let source = request.session_id;
    let make = |services: &Services, asked, _| services.fork.as_ref().map(|fork| fork(source, asked));
    open(core, responder, asked, handle, make, Way { names: true, respond });
}

/// SESS-27: cancels what runs, waits for its answer, then frees the session. SESS-30: whatever the client sends behind this
/// request does not find the session any more.
pub(super) fn close(core: &Arc<Core>, request: CloseSessionRequest, responder: Responder) {
    match core.sessions.remove(&request.session_id) {
        None => responder.err(Error::unknown_session(request.session_id.as_str()).to_wire()),
        Some(entry) => {
            let ended = core.end(entry);
            core.answer_later(responder, async move {
                ended.await;
                Ok(Box::new(|responder: Responder| responder.ok(&CloseSessionResponse::new())) as Answer)
            });
        }
    }
}

pub(super) fn no_method(method: &str) -> Error {
    Error::Refused(ErrorObject::method_not_found(method))
}
