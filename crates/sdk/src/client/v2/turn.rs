//! When a turn of version 2 ends: with the first end of work after its message is part of the
//! conversation.

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
    /// Checksums of the ids of this client's messages, the oldest first.
    own: VecDeque<u64>,
    work: Work,
}

/// The evidence that an idle state ends work, and does not only repeat that there is none.
#[derive(Default)]
struct Work {
    /// Whether the latest state was another one than idle.
    is_busy: bool,
    /// Whether the agent said or did something since the latest prompt or idle state. An agent that
    /// reports no `running` is known to work by that.
    has_output: bool,
    /// The stop reason of the latest idle state, which repetitions of it may carry.
    last_reason: Option<v2::StopReason>,
}

impl Work {
    /// Notes an idle state and returns whether work ended with it.
    // V2-37
    fn idle(&mut self, reason: Option<&v2::StopReason>) -> bool {
        let is_repeated = reason.is_none_or(|reason| self.last_reason.as_ref() == Some(reason));
        let is_end = self.is_busy || self.has_output || !is_repeated;
        if is_end || reason.is_some() {
            self.last_reason = reason.cloned();
        }
        self.is_busy = false;
        self.has_output = false;
        is_end
    }
}

/// A prompt whose turn has not ended.
enum Prompt {
    /// The agent has not answered yet.
    Sent {
        /// Messages of the user since then. One of them may be this prompt.
        held: Vec<HeldMessage>,
        held_bytes: usize,
        /// An end of work since then, and the number of messages before it.
        idle: Option<(usize, TurnEnd)>,
    },
    /// The message is part of the conversation.
    Inserted,
}

/// A message of the user that waits for the answer to a prompt.
#[derive(Debug, PartialEq)]
pub(crate) struct HeldMessage {
    message: Message,
    /// The size of its params.
    bytes: usize,
}

#[derive(Debug, PartialEq)]
enum Message {
    Update(v2::SessionUpdate),
    /// Most messages are the echo of the prompt and never decoded.
    Text {
        message_id: Box<str>,
        update: Box<str>,
    },
}

impl HeldMessage {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Decodes the message. Its text is JSON with a message id, and every other member may be
    /// malformed.
    pub(crate) fn into_update(self) -> Option<v2::SessionUpdate> {
        match self.message {
            Message::Update(update) => Some(update),
            Message::Text { update, .. } => serde_json::from_str(&update).ok(),
        }
    }

    fn message_id(&self) -> Option<&str> {
        match &self.message {
            Message::Update(update) => message_id(update),
            Message::Text { message_id, .. } => Some(message_id),
        }
    }
}

/// The consequences of the answer to a prompt.
#[derive(Default)]
pub(crate) struct PromptAnswer {
    /// Messages of other clients, to be given out.
    pub(crate) others: Vec<HeldMessage>,
    /// The end of the turn, if it came before the answer.
    pub(crate) end: Option<TurnEnd>,
}

impl Prompts {
    /// The session has a state that is not idle.
    // V2-35
    pub(crate) fn busy(&mut self) {
        self.work.is_busy = true;
    }

    /// Notes an update of the agent.
    pub(crate) fn note(&mut self, update: &v2::SessionUpdate) {
        self.work.has_output |= matches!(
            update,
            v2::SessionUpdate::AgentMessageChunk(_)
                | v2::SessionUpdate::AgentThoughtChunk(_)
                | v2::SessionUpdate::AgentMessage(_)
                | v2::SessionUpdate::AgentThought(_)
                | v2::SessionUpdate::ToolCallUpdate(_)
                | v2::SessionUpdate::ToolCallContentChunk(_)
        );
    }

    /// A prompt is being sent.
    pub(crate) fn sent(&mut self) {
        self.work.has_output = false;
        self.current = Some(Prompt::Sent { held: Vec::new(), held_bytes: 0, idle: None });
    }

    /// The turn ended, or was given up.
    pub(crate) fn forget(&mut self) -> Vec<HeldMessage> {
        match self.current.take() {
            Some(Prompt::Sent { held, .. }) => {
                held.into_iter().filter(|message| !self.is_echo(message.message_id())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a message is one of this client.
    fn is_echo(&self, message_id: Option<&str>) -> bool {
        message_id.is_some_and(|id| self.own.contains(&checksum(id)))
    }

    /// The agent answered with the id of the message.
    // V2-08, V2-10: the message may come before the answer or after it.
    pub(crate) fn answered(&mut self, id: MessageId) -> PromptAnswer {
        let Some(Prompt::Sent { held, idle, .. }) = self.current.take() else {
            return PromptAnswer::default();
        };
        let is_own = |message: &HeldMessage| message.message_id() == Some(id.as_str());
        let place = held.iter().position(is_own);
        // An end counts only if the message was there before.
        let end = idle.filter(|(before, _)| place.is_some_and(|place| place < *before)).map(|(_, end)| end);
        let is_other = |message: &HeldMessage| !is_own(message) && !self.is_echo(message.message_id());
        let others = held.into_iter().filter(is_other).collect();
        self.current = end.is_none().then_some(Prompt::Inserted);
        self.own.push_back(checksum(id.as_str()));
        if self.own.len() > OWN_MESSAGES {
            self.own.pop_front();
        }
        PromptAnswer { others, end }
    }

    /// Takes a message of the user, unless it is to be given out now. The echo of a prompt is not:
    /// the client has shown it.
    pub(crate) fn take(&mut self, update: v2::SessionUpdate, bytes: usize) -> Option<v2::SessionUpdate> {
        match self.room(bytes) {
            Some(held) => {
                held.push(HeldMessage { message: Message::Update(update), bytes });
                None
            }
            None => (!self.is_echo(message_id(&update))).then_some(update),
        }
    }

    /// Takes the text of a message of the user, unless it is to be given out now.
    pub(crate) fn take_text(&mut self, message_id: &str, update: &str, bytes: usize) -> bool {
        match self.room(bytes) {
            Some(held) => {
                let message = Message::Text { message_id: message_id.into(), update: update.into() };
                held.push(HeldMessage { message, bytes });
                true
            }
            None => self.is_echo(Some(message_id)),
        }
    }

    /// The messages that wait for the answer to a prompt, if there is one and they may be more.
    fn room(&mut self, bytes: usize) -> Option<&mut Vec<HeldMessage>> {
        match &mut self.current {
            Some(Prompt::Sent { held, held_bytes, .. })
                if held.len() < HELD && *held_bytes + bytes <= HELD_BYTES =>
            {
                *held_bytes += bytes;
                Some(held)
            }
            _ => None,
        }
    }

    /// The session has no foreground work. Returns the end of the turn if work ended with this and
    /// was the turn's.
    // V2-37: an idle state before the message is not the end of its turn, and a repeated one is the
    // end of nothing.
    pub(crate) fn idle(&mut self, state: v2::IdleStateUpdate) -> Option<TurnEnd> {
        if !self.work.idle(state.stop_reason.as_ref()) {
            return None;
        }
        let end = || {
            let unknown = convert::unknown_reason(state.stop_reason.as_ref());
            let reason = convert::turn_end(state.stop_reason);
            reason.map(|reason| {
                let response = PromptResponse::new(reason).meta(unknown);
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

/// FNV-1a. Ids with the same checksum hide messages of the user that the agent could have left out,
/// so it needs no key.
fn checksum(id: &str) -> u64 {
    id.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// The id of a message of the user.
fn message_id(update: &v2::SessionUpdate) -> Option<&str> {
    match update {
        v2::SessionUpdate::UserMessage(message) => Some(message.message_id.as_str()),
        v2::SessionUpdate::UserMessageChunk(chunk) => Some(chunk.message_id.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn user(id: &str) -> v2::SessionUpdate {
        v2::UserMessage::new(id).into()
    }

    fn given_out(held: Vec<HeldMessage>) -> Vec<v2::SessionUpdate> {
        held.into_iter().filter_map(HeldMessage::into_update).collect()
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
        prompts.busy();
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
        prompts.busy();
        assert!(!idle(&mut prompts));
        let answer = prompts.answered("a".into());
        assert!(answer.end.is_some());
        assert_eq!(given_out(answer.others), [user("other")]);
        assert!(!idle(&mut prompts));
    }

    #[test]
    fn the_work_of_another_client_does_not_end_the_turn() {
        // shows V2-10, V2-37
        let mut prompts = Prompts::default();
        prompts.sent();
        assert!(prompts.take(user("other"), 1).is_none());
        prompts.busy();
        assert!(!idle(&mut prompts));
        assert!(prompts.take(user("a"), 1).is_none());
        assert!(prompts.answered("a".into()).end.is_none());
        prompts.busy();
        assert!(idle(&mut prompts));
    }

    #[test]
    fn a_repeated_state_after_the_message_does_not_end_the_turn() {
        // shows V2-37
        let ended = |prompts: &mut Prompts, reason| prompts.idle(v2::IdleStateUpdate::new(reason)).is_some();
        let end_turn = || Some(v2::StopReason::EndTurn);
        let mut prompts = Prompts::default();
        for id in ["a", "b"] {
            prompts.sent();
            drop(prompts.answered(id.into()));
            assert!(!ended(&mut prompts, None), "no work has started");
            if id == "b" {
                assert!(!ended(&mut prompts, end_turn()), "the state of the turn before");
            }
            prompts.busy();
            assert!(ended(&mut prompts, end_turn()));
            assert!(!ended(&mut prompts, end_turn()));
        }
        // An agent that never reports `running` ends its turns all the same.
        prompts.sent();
        drop(prompts.answered("c".into()));
        prompts.note(&v2::AgentMessage::new("m").into());
        assert!(ended(&mut prompts, end_turn()));
        prompts.sent();
        drop(prompts.answered("d".into()));
        assert!(ended(&mut prompts, Some(v2::StopReason::Refusal)), "another reason");
    }

    #[test]
    fn late_echoes_are_not_given_out() {
        let mut prompts = Prompts::default();
        for id in ["a", "b"] {
            prompts.sent();
            drop(prompts.answered(id.into()));
        }
        assert!(prompts.take(user("a"), 1).is_none() && prompts.take(user("c"), 1).is_some());
        prompts.sent();
        assert!(prompts.take(user("a"), 1).is_none());
        assert_eq!(prompts.answered("d".into()).others, []);
        prompts.sent();
        assert!(prompts.take(user("b"), 1).is_none() && prompts.take(user("other"), 1).is_none());
        assert_eq!(given_out(prompts.forget()), [user("other")]);
    }

    #[test]
    fn texts_are_decoded_only_to_be_given_out() {
        // shows V2-10
        let text = |id: &str| serde_json::to_string(&user(id)).unwrap();
        let mut prompts = Prompts::default();
        assert!(!prompts.take_text("other", &text("other"), 1), "no prompt");
        prompts.sent();
        for id in ["other", "a"] {
            assert!(prompts.take_text(id, &text(id), 1));
        }
        prompts.busy();
        assert!(!idle(&mut prompts));
        let answer = prompts.answered("a".into());
        assert!(answer.end.is_some());
        assert_eq!(given_out(answer.others), [user("other")]);
        assert!(prompts.take_text("a", &text("a"), 1), "a late echo");
        prompts.sent();
        assert!(!prompts.take_text("big", &text("big"), HELD_BYTES + 1));
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
