//! Requests of other hubs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attache_journal::{Seq, SessionKey};
use tokio::sync::oneshot;

use crate::entry;
use crate::hub::Shared;
use crate::network::{Action, NoReply, NodeRequest, PromptStatus, Reply};
use crate::nodes::command;
use crate::session::{Command, EndedPrompt, PromptCommand, PromptReply, Session, SessionRef};

/// How often a node is told what became of its prompt.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Answers a request. Empty if there is nothing to say.
pub(crate) async fn answer(hub: &Arc<Shared>, request: &[u8]) -> Vec<u8> {
    let Ok(NodeRequest { tenant, session, action }) = serde_json::from_slice(request) else {
        return Vec::new();
    };
    let Ok(key) = SessionKey::new(tenant, session) else { return Vec::new() };
    match action {
        Action::PromptStatus { prompt, status } => {
            if let Some(session) = hub.known(&key) {
                let _ = session.send(Command::PromptStatus(prompt, reply_of(status))).await;
            }
            entry::encode(&Reply::Done)
        }
        Action::Adopt => adopt(hub, &key).await,
        action => {
            let Some(session) = owned(hub, &key).await else { return entry::encode(&Reply::NotOwner) };
            entry::encode(&carry_out(hub, &session, action).await)
        }
    }
}

/// The session, if this hub owns it.
async fn owned(hub: &Arc<Shared>, key: &SessionKey) -> Option<SessionRef> {
    if let Some(session) = hub.known(key) {
        return (!session.is_guest()).then_some(session);
    }
    // It is not in memory any more, or not yet after a restart.
    let owner = hub.cx.journal.info(key).await.ok()?.owner?;
    if owner.name != hub.cx.options.node {
        return None;
    }
    hub.open_key(key).await.ok().filter(|session| !session.is_guest())
}

/// Becomes the owner of a session whose files are here. Returns the name of this hub, or nothing.
async fn adopt(hub: &Arc<Shared>, key: &SessionKey) -> Vec<u8> {
    let options = &hub.cx.options;
    let Ok(session) = hub.open_key(key).await else { return Vec::new() };
    let is_here = (options.reachable)(Path::new(&session.opened.cwd()));
    match is_here && !session.is_guest() {
        true => options.node.clone().into_bytes(),
        false => Vec::new(),
    }
}

async fn carry_out(hub: &Arc<Shared>, session: &Session, action: Action) -> Reply {
    let sent = match action {
        Action::Prompt { node, connection, by, prompt, params } => {
            let (reply, replied) = oneshot::channel();
            let command = PromptCommand { connection, by, prompt: prompt.clone(), params, reply };
            let sent = session.send(Command::Prompt(command)).await;
            let (hub, key) = (Arc::clone(hub), session.key.clone());
            tokio::spawn(async move {
                // A turn that begins is an entry of the journal.
                if let Ok(reply) = replied.await {
                    tell_fate(&hub, &key, &node, prompt, reply).await;
                }
            });
            sent
        }
        Action::Close => {
            let (reply, closed) = oneshot::channel();
            let sent = session.send(Command::Close(reply)).await;
            let _ = closed.await;
            sent
        }
        action => match command(action) {
            Some(command) => session.send(command).await,
            None => Ok(()),
        },
    };
    match sent {
        Ok(()) => Reply::Done,
        Err(_) => Reply::NotOwner,
    }
}

async fn tell_fate(hub: &Shared, key: &SessionKey, node: &str, prompt: String, reply: PromptReply) {
    let Some(network) = &hub.cx.options.network else { return };
    let status = match reply {
        PromptReply::Ended(end) => {
            PromptStatus::Ended { begun: end.begun.get(), ended: end.ended.get(), outcome: end.outcome }
        }
        PromptReply::Running(begun) => PromptStatus::Running { begun: begun.map(Seq::get) },
        PromptReply::Outcome(outcome) => PromptStatus::Outcome(outcome),
    };
    let (tenant, session) = (key.tenant().to_owned(), key.session().to_owned());
    let request = NodeRequest { tenant, session, action: Action::PromptStatus { prompt, status } };
    let request = bytes::Bytes::from(entry::encode(&request));
    for attempt in 1..=ATTEMPTS {
        match network.request(node, request.clone()).await {
            Ok(_) | Err(NoReply::TooLarge) => return,
            Err(NoReply::Unreachable | NoReply::Unknown) => {}
        }
        tokio::time::sleep(PAUSE * attempt).await;
    }
}

fn reply_of(status: PromptStatus) -> PromptReply {
    match status {
        PromptStatus::Ended { begun, ended, outcome } => {
            PromptReply::Ended(EndedPrompt { begun: Seq::new(begun), ended: Seq::new(ended), outcome })
        }
        PromptStatus::Running { begun } => PromptReply::Running(begun.map(Seq::new)),
        PromptStatus::Outcome(outcome) => PromptReply::Outcome(outcome),
    }
}
