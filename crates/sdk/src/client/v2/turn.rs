//! When a turn of version 2 ends: with the first idle state after its message is part of the conversation.

use std::collections::VecDeque;

use attache_wire::v1::{MessageId, PromptResponse};
use attache_wire::v2;

use super::convert;
use crate::client::lane::TurnEnd;

/// Prompts of this client whose messages are remembered; the agent echoes each message.
const OWN_MESSAGES: usize = 256;
/// Messages of the user that wait for the answer to a prompt, and their bytes.
const HELD: usize = 64;
const HELD_BYTES: usize = 4 << 20;

/// The prompts of this client in one session.
#[derive(Default)]
pub(crate) struct Prompts {
    current: Option<Prompt>,
    /// The messages of this client, the oldest first.
    own: VecDeque<MessageId>,
}

/// A prompt whose turn has not ended.
enum Prompt {
    /// The agent has not answered yet.
    Sent {
        /// Messages of the user since then. One of them may be this prompt.
        held: Vec<(v2::SessionUpdate, usize)>,
        held_bytes: usize,
        /// An end of work since then, and the number of messages before it.
        idle: Option<(usize, TurnEnd)>,
    },
    /// The message is part of the conversation.
    Inserted,
}

/// What follows from the answer to a prompt.
#[derive(Default)]
pub(crate) struct PromptAnswer {
    /// Messages of other clients, to be given out.
    pub(crate) others: Vec<(v2::SessionUpdate, usize)>,
    /// The end of the turn, if it came before the answer.
    pub(crate) end: Option<TurnEnd>,
}

impl Prompts {
    /// A prompt is being sent.
    pub(crate) fn sent(&mut self) {
        self.current = Some(Prompt::Sent { held: Vec::new(), held_bytes: 0, idle: None });
    }

    /// The turn ended, or was given up.
    pub(crate) fn forget(&mut self) -> Vec<(v2::SessionUpdate, usize)> {
        match self.current.take() {
            Some(Prompt::Sent { held, .. }) => held,
            _ => Vec::new(),
        }
    }

    /// The agent answered with the id of the message.
    // V2-08, V2-10: the message may come before the answer or after it.
    pub(crate) fn answered(&mut self, id: MessageId) -> PromptAnswer {
        let Some(Prompt::Sent { held, idle, .. }) = self.current.take() else {
            return PromptAnswer::default();
        };
        let is_own = |(update, _): &(v2::SessionUpdate, usize)| message_id(update) == Some(&id);
        let place = held.iter().position(is_own);
        // An end counts only if the message was there before.
        let end = idle.filter(|(before, _)| place.is_some_and(|place| place < *before)).map(|(_, end)| end);
        let others = held.into_iter().filter(|held| !is_own(held)).collect();
        self.current = end.is_none().then_some(Prompt::Inserted);
        self.own.push_back(id);
        if self.own.len() > OWN_MESSAGES {
            self.own.pop_front();
        }
        PromptAnswer { others, end }
    }

    /// Takes a message of the user, unless it is to be given out now. The echo of a prompt is not: the client has shown it.
    pub(crate) fn take(&mut self, update: v2::SessionUpdate, bytes: usize) -> Option<v2::SessionUpdate> {
        let Some(id) = message_id(&update) else { return Some(update) };
        if self.own.contains(id) {
            return None;
        }
        match &mut self.current {
            Some(Prompt::Sent { held, held_bytes, .. })
                if held.len() < HELD && *held_bytes + bytes <= HELD_BYTES =>
            {
                *held_bytes += bytes;
                held.push((update, bytes));
                None
            }
            _ => Some(update),
        }
    }

    /// The foreground work has ended. Returns the end of the turn if that work was the turn's.
    // V2-37: an idle state before the message is not the end of its turn.
    pub(crate) fn idle(&mut self, state: v2::IdleStateUpdate) -> Option<TurnEnd> {
        let end = || {
            let reason = convert::turn_end(state.stop_reason);
            reason.map(|reason| {
                let response = PromptResponse::new(reason);
                #[cfg(feature = "unstable")]
                let response = response.usage(state.usage);
                Some(response)
            })
        };
        match &mut self.current {
            Some(Prompt::Inserted) => {
                self.current = None;
                Some(end())
            }
            Some(Prompt::Sent { held, idle, .. }) => {
                *idle = Some((held.len(), end()));
                None
            }
            None => None,
        }
    }
}

/// The id of a message of the user.
fn message_id(update: &v2::SessionUpdate) -> Option<&MessageId> {
    match update {
        v2::SessionUpdate::UserMessage(message) => Some(&message.message_id),
        v2::SessionUpdate::UserMessageChunk(chunk) => Some(&chunk.message_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str) -> v2::SessionUpdate {
        v2::UserMessage::new(id).into()
    }

    fn idle(prompts: &mut Prompts) -> bool {
        prompts.idle(v2::IdleStateUpdate::new(None)).is_some()
    }

    #[test]
    fn a_turn_ends_with_the_first_idle_state_after_its_message() {
        // shows V2-08, V2-10, V2-37
        let mut prompts = Prompts::default();
        assert!(!idle(&mut prompts));
        prompts.sent();
        assert!(!idle(&mut prompts), "the end of earlier work");
        assert!(prompts.answered("a".into()).end.is_none());
        assert!(prompts.take(user("a"), 1).is_none(), "the echo");
        assert!(idle(&mut prompts));
        assert!(!idle(&mut prompts), "a repeated state");
    }

    #[test]
    fn the_answer_may_come_last() {
        // shows V2-10
        let mut prompts = Prompts::default();
        prompts.sent();
        assert!(prompts.take(user("other"), 1).is_none());
        assert!(prompts.take(user("a"), 1).is_none());
        assert!(!idle(&mut prompts));
        let answer = prompts.answered("a".into());
        assert!(answer.end.is_some());
        assert_eq!(answer.others, [(user("other"), 1)]);
        assert!(!idle(&mut prompts));
    }

    #[test]
    fn the_work_of_another_client_does_not_end_the_turn() {
        // shows V2-10, V2-37
        let mut prompts = Prompts::default();
        prompts.sent();
        assert!(prompts.take(user("other"), 1).is_none());
        assert!(!idle(&mut prompts));
        assert!(prompts.take(user("a"), 1).is_none());
        assert!(prompts.answered("a".into()).end.is_none());
        assert!(idle(&mut prompts));
    }

    #[test]
    fn few_messages_wait_for_an_answer() {
        let mut prompts = Prompts::default();
        prompts.sent();
        let given_out =
            (0..200).filter(|number| prompts.take(user(&number.to_string()), 1).is_some()).count();
        assert_eq!(given_out, 200 - HELD);
        prompts.sent();
        assert!(prompts.take(user("big"), HELD_BYTES + 1).is_some());
    }
}
