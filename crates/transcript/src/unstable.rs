//! Updates that the specification marks as unstable: several plans, subagents, and messages between
//! sessions.

use attache_wire::Patch;
use attache_wire::v1::{
    ContentBlock, MessageId, PlanUpdateContent, SessionId, SessionMessage, SessionUpdate, SubagentUpdate,
};

use crate::change::Change;
use crate::model::{Item, ItemKind, Plan, PlanBody, Transcript, merge_patch};
use crate::v1::{append, set, with_meta};

impl Transcript {
    pub(crate) fn unstable_update(
        &self,
        session: Option<SessionId>,
        update: SessionUpdate,
    ) -> Option<Change> {
        let plan = |id, body, meta| Change::Plan(Plan { id: Some(id), body, meta });
        Some(match update {
            SessionUpdate::PlanUpdate(update) => match update.plan {
                PlanUpdateContent::Items(new) => plan(new.plan_id, PlanBody::Entries(new.entries), new.meta),
                PlanUpdateContent::Markdown(new) => {
                    plan(new.plan_id, PlanBody::Markdown(new.content), new.meta)
                }
                PlanUpdateContent::File(new) => plan(new.plan_id, PlanBody::File(new.uri), new.meta),
                _ => return None,
            },
            SessionUpdate::PlanRemoved(removed) => Change::RemovePlan(Some(removed.plan_id)),
            SessionUpdate::SubagentUpdate(update) => Change::Subagent(update),
            SessionUpdate::SessionMessage(message) => {
                match self.session_message(&session, &message.message_id) {
                    Some((at, _)) => Change::SessionMessage(at, message),
                    None => Change::Push(Item { session, kind: ItemKind::SessionMessage(message) }),
                }
            }
            SessionUpdate::SessionMessageChunk(chunk) => {
                let block = with_meta(chunk.content, chunk.meta);
                match self.session_message(&session, &chunk.message_id) {
                    Some((at, known)) => append(at, known, block),
                    None => {
                        let mut first = SessionMessage::new(chunk.message_id);
                        first.content = Patch::Set(vec![block]);
                        Change::Push(Item { session, kind: ItemKind::SessionMessage(Box::new(first)) })
                    }
                }
            }
            _ => return None,
        })
    }

    pub(crate) fn apply_unstable(&mut self, change: Change) {
        match change {
            Change::RemovePlan(id) => self.plans.retain(|plan| plan.id != id),
            Change::Subagent(update) => self.merge_subagent(*update),
            Change::SessionMessage(at, update) => {
                if let Some(ItemKind::SessionMessage(known)) = self.get_mut(at).map(|item| &mut item.kind) {
                    merge_patch(&mut known.sender_session_id, update.sender_session_id);
                    merge_patch(&mut known.recipient_session_id, update.recipient_session_id);
                    merge_patch(&mut known.sender_message_id, update.sender_message_id);
                    merge_patch(&mut known.recipient_message_id, update.recipient_message_id);
                    merge_patch(&mut known.content, update.content);
                    merge_patch(&mut known.meta, update.meta);
                }
            }
            _ => {}
        }
    }

    // SUBA-05
    /// What is absent stays.
    fn merge_subagent(&mut self, update: SubagentUpdate) {
        let Some(known) = self.subagents.iter_mut().find(|known| known.session_id == update.session_id)
        else {
            return self.subagents.push(update);
        };
        merge_patch(&mut known.title, update.title);
        merge_patch(&mut known.description, update.description);
        merge_patch(&mut known.capabilities, update.capabilities);
        merge_patch(&mut known.state, update.state);
        merge_patch(&mut known.cwd, update.cwd);
        merge_patch(&mut known.additional_directories, update.additional_directories);
        merge_patch(&mut known.meta, update.meta);
    }

    fn session_message(&self, session: &Option<SessionId>, id: &MessageId) -> Option<(u64, &[ContentBlock])> {
        let of = |kind: &ItemKind| matches!(kind, ItemKind::SessionMessage(known) if known.message_id == *id);
        match self.find(session, of)? {
            (at, ItemKind::SessionMessage(known)) => Some((at, set(&known.content))),
            _ => None,
        }
    }
}
