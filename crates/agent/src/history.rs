//! Sessions that were there before: listed, loaded, taken up, copied, named, put away.

use std::path::PathBuf;
use std::sync::Arc;

use attache::agent::{Agent, OpenRequest, OpenedSession};
use attache::wire::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionId, SessionInfo, SessionStatus,
    SessionUpdate,
};
use attache::{Error, Prompt, Result};

use crate::house::{House, internal, missing};
use crate::session::{Live, Session};
use crate::store::{Archived, Filter, Log, NewRow, Row, StoreError};

/// How many sessions a page has.
const PAGE: usize = 50;
/// The longest title that is made up.
const TITLE: usize = 60;

/// Offers what can be done with sessions that were there before.
pub(crate) fn offer(agent: Agent, house: &Arc<House>) -> Agent {
    let with = |house: &Arc<House>| house.clone();
    let (load, resume, fork, list, delete) =
        (with(house), with(house), with(house), with(house), with(house));
    let (archive, unarchive, title, status) = (with(house), with(house), with(house), with(house));
    agent
        .load(move |request| load.clone().load(request))
        .resume(move |request| resume.clone().resume(request))
        .fork(move |source, request| fork.clone().fork(source, request))
        .list(move |request| std::future::ready(list.list(&request)))
        .delete(move |id| std::future::ready(delete.delete(&id)))
        .archive(
            move |id| std::future::ready(archive.put_away(&id, true)),
            move |id| std::future::ready(unarchive.put_away(&id, false)),
        )
        .titles(move |id, title_| std::future::ready(title.name(&id, title_)))
        .status(move |id| std::future::ready(status.status(&id)))
}

impl House {
    /// SESS-11, SESS-12: everything that the client had seen, in order, and then the answer.
    async fn load(self: Arc<Self>, request: OpenRequest) -> Result<OpenedSession<Session>> {
        let log = self.kept(&request.id)?;
        for update in log.replay() {
            // An update that this version cannot read any more must not make the whole session unreadable.
            let Ok(update) = serde_json::from_value::<SessionUpdate>(update) else { continue };
            match request.session.send(update).await {
                // What this client does not understand it cannot miss.
                Ok(()) | Err(Error::Unsupported(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.take_up(request, &log).await
    }

    /// SESS-21: the conversation goes on, without being told again.
    async fn resume(self: Arc<Self>, request: OpenRequest) -> Result<OpenedSession<Session>> {
        let log = self.kept(&request.id)?;
        self.take_up(request, &log).await
    }

    async fn take_up(self: Arc<Self>, request: OpenRequest, log: &Log) -> Result<OpenedSession<Session>> {
        // ROOT-12: only the roots of this request count from here on.
        let placed = self.store.set_place(request.id.as_str(), &request.cwd, &request.additional_directories);
        placed.map_err(|error| missing(&request.id, error))?;
        log.sweep();
        Ok(self.open(request, log).await)
    }

    async fn fork(
        self: Arc<Self>,
        source: SessionId,
        request: OpenRequest,
    ) -> Result<OpenedSession<Session>> {
        let new =
            NewRow { id: request.id.as_str(), cwd: &request.cwd, roots: &request.additional_directories };
        self.store.fork(source.as_str(), &new).map_err(|error| missing(&source, error))?;
        let log = self.kept(&request.id)?;
        Ok(self.open(request, &log).await)
    }

    fn kept(&self, id: &SessionId) -> Result<Log> {
        self.store.read(id.as_str()).map_err(|error| missing(id, error))
    }

    fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse> {
        let archived = match request.archived {
            Some(SessionArchiveFilter::Include) => Archived::Too,
            Some(SessionArchiveFilter::Only) => Archived::Only,
            _ => Archived::Not,
        };
        let filter = Filter { cwd: request.cwd.as_ref().map(PathBuf::from), archived };
        let page =
            self.store.list(&filter, request.cursor.as_deref(), PAGE).map_err(|error| match error {
                // LIST-07
                StoreError::Damaged(why) => Error::invalid_params(why),
                error => internal(error),
            })?;
        let mut response = ListSessionsResponse::new(page.rows.into_iter().map(info).collect::<Vec<_>>());
        response.next_cursor = page.next;
        Ok(response)
    }

    /// DEL-04: a session that does not exist counts as deleted.
    fn delete(&self, id: &SessionId) -> Result<()> {
        self.store.delete(id.as_str()).map_err(internal)?;
        Ok(())
    }

    fn put_away(&self, id: &SessionId, archived: bool) -> Result<()> {
        self.store.set_archived(id.as_str(), archived).map_err(|error| missing(id, error))
    }

    fn name(&self, id: &SessionId, title: String) -> Result<String> {
        self.store.set_title(id.as_str(), Some(&title), true).map_err(|error| missing(id, error))?;
        Ok(title)
    }

    fn status(&self, id: &SessionId) -> Result<SessionStatus> {
        self.store.row(id.as_str()).map_err(|error| missing(id, error))?;
        Ok(SessionStatus::Saved)
    }
}

/// Gives a session without a title one from its first prompt.
pub(crate) async fn title(live: &Live, prompt: &Prompt) -> Result<()> {
    let row = live.store().row(live.id()).map_err(internal)?;
    let Some(title) = title_of(&prompt.text()).filter(|_| row.title.is_none()) else { return Ok(()) };
    // SSTAT-09: the store keeps a title that the client gave.
    if live.store().set_title(live.id(), Some(&title), false).map_err(internal)? {
        live.handle.set_title(Some(title)).await?;
    }
    Ok(())
}

/// The first line that says something, cut between words.
fn title_of(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(|line| line.trim_start_matches(['#', '>', '-', '*', ' ', '/']))
        .find(|line| !line.trim().is_empty())?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= TITLE {
        return Some(line);
    }
    let cut: String = line.chars().take(TITLE).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    Some(format!("{}…", whole.trim_end_matches([',', '.', ':', ';'])))
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

#[cfg(test)]
mod tests {
    use super::title_of;

    #[test]
    fn a_title_is_the_first_thing_said() {
        assert_eq!(title_of("\n\n# Fix   the build\nmore").as_deref(), Some("Fix the build"));
        assert_eq!(title_of("   \n"), None);
        let long = title_of(&"many words, ".repeat(20)).unwrap_or_default();
        assert!(long.ends_with("words…") && long.chars().count() <= 61, "{long}");
        assert_eq!(title_of(&"ä".repeat(100)).map(|title| title.chars().count()), Some(61));
    }
}
