//! Stored sessions: listed, loaded, resumed, forked, titled, archived and deleted.

use std::path::PathBuf;
use std::sync::Arc;

use attache::agent::{Agent, OpenRequest, OpenedSession};
use attache::wire::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionId, SessionInfo, SessionStatus,
};
use attache::{Error, Result};

use crate::session::Session;
use crate::state::{AgentState, ModelChangeNotifier};
use crate::store::{Archived, Filter, Log, NewRow, Row};

/// Sessions on one page of the list.
const PAGE: usize = 50;

/// Creates and opens sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) agent: Arc<AgentState>,
    pub(crate) notifier: ModelChangeNotifier,
}

impl Sessions {
    /// Adds the handlers of stored sessions to an agent.
    pub(crate) fn add_handlers(&self, agent: Agent) -> Agent {
        macro_rules! handler {
            (|$this:ident $(, $argument:ident)*| $result:expr) => {{
                let $this = self.clone();
                move |$($argument),*| std::future::ready($result)
            }};
        }
        let (load, resume, fork) = (self.clone(), self.clone(), self.clone());
        agent
            .load(move |request| load.clone().load(request))
            .resume(move |request| resume.clone().resume(request))
            .fork(move |source, request| fork.clone().fork(source, request))
            .list(handler!(|this, request| this.list(&request)))
            .delete(handler!(|this, id| this.delete(&id)))
            .archive(
                handler!(|this, id| this.archive(&id, true)),
                handler!(|this, id| this.archive(&id, false)),
            )
            .titles(handler!(|this, id, title| this.set_title(&id, title)))
            .status(handler!(|this, id| this.status(&id)))
    }

    pub(crate) async fn create(self, request: OpenRequest) -> Result<OpenedSession<Session>> {
        self.agent.store.create(&row_for(&request))?;
        Ok(self.open(request, &Log::default()).await)
    }

    async fn open(&self, request: OpenRequest, log: &Log) -> OpenedSession<Session> {
        Session::open(self.agent.clone(), &self.notifier, request, log).await
    }

    /// Sends every update that the client had seen, in order, before the
    /// response.
    // SESS-11, SESS-12
    async fn load(self, request: OpenRequest) -> Result<OpenedSession<Session>> {
        let log = self.agent.store.read(request.id.as_str())?;
        for update in log.replay() {
            match request.session.send(update).await {
                Ok(()) | Err(Error::Unsupported(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.reopen(request, &log).await
    }

    /// Continues the conversation without replaying it.
    // SESS-21
    async fn resume(self, request: OpenRequest) -> Result<OpenedSession<Session>> {
        let log = self.agent.store.read(request.id.as_str())?;
        self.reopen(request, &log).await
    }

    async fn reopen(self, request: OpenRequest, log: &Log) -> Result<OpenedSession<Session>> {
        // ROOT-12: only the roots of this request count from here on.
        self.agent.store.set_roots(&row_for(&request))?;
        log.remove_temp_files();
        Ok(self.open(request, log).await)
    }

    async fn fork(self, source: SessionId, request: OpenRequest) -> Result<OpenedSession<Session>> {
        self.agent.store.fork(source.as_str(), &row_for(&request))?;
        let log = self.agent.store.read(request.id.as_str())?;
        Ok(self.open(request, &log).await)
    }

    fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse> {
        let archived = match request.archived {
            Some(SessionArchiveFilter::Include) => Archived::Include,
            Some(SessionArchiveFilter::Only) => Archived::Only,
            _ => Archived::Exclude,
        };
        let filter = Filter { cwd: request.cwd.as_ref().map(PathBuf::from), archived };
        let page = self.agent.store.list(&filter, request.cursor.as_deref(), PAGE)?;
        let mut response = ListSessionsResponse::new(page.rows.into_iter().map(info).collect::<Vec<_>>());
        response.next_cursor = page.next;
        Ok(response)
    }

    /// A session that does not exist counts as deleted.
    // DEL-04
    fn delete(&self, id: &SessionId) -> Result<()> {
        self.agent.store.delete(id.as_str())?;
        Ok(())
    }

    fn archive(&self, id: &SessionId, archived: bool) -> Result<()> {
        Ok(self.agent.store.set_archived(id.as_str(), archived)?)
    }

    fn set_title(&self, id: &SessionId, title: String) -> Result<String> {
        self.agent.store.set_title(id.as_str(), Some(&title), true)?;
        Ok(title)
    }

    fn status(&self, id: &SessionId) -> Result<SessionStatus> {
        self.agent.store.row(id.as_str())?;
        Ok(SessionStatus::Saved)
    }
}

fn row_for(request: &OpenRequest) -> NewRow<'_> {
    NewRow { id: request.id.as_str(), cwd: &request.cwd, roots: &request.additional_directories }
}

fn info(row: Row) -> SessionInfo {
    let mut info = SessionInfo::new(row.id, row.cwd.to_string_lossy());
    info.title = row.title;
    info.updated_at = Some(row.updated_at);
    info.archived = row.archived.then_some(true);
    let roots: Vec<String> = row.roots.iter().map(|root| root.to_string_lossy().into_owned()).collect();
    info.additional_directories = (!roots.is_empty()).then_some(roots);
    info
}
