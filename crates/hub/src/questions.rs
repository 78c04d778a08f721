//! Open questions of an agent: who is asked, and whose answer counts.

use std::collections::HashSet;
use std::time::Duration;

use attache_conn::rpc::Id;
use attache_journal::Seq;
use serde::Deserialize;
use serde_json::json;
#[cfg(unix)]
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::entry::{Decision, Question};
use crate::identity::{Identity, Role};
use crate::message::Outcome;

/// Who decides the questions of agents. Only clients that may answer are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first valid answer.
    First,
    /// An answer of the identity that sent the prompt; after this time that of anybody.
    Prompter(Duration),
    /// The first valid answer of a client with at least these rights.
    Role(Role),
    /// This many equal answers of different identities.
    Quorum(usize),
}

impl Policy {
    fn rule(self) -> String {
        match self {
            Policy::First => "first".to_owned(),
            Policy::Prompter(_) => "prompter".to_owned(),
            Policy::Role(role) => format!("role {role}"),
            Policy::Quorum(votes) => format!("quorum {votes}"),
        }
    }
}

/// Who waits for the answer to a question.
#[derive(Debug)]
pub(crate) enum Asker {
    /// The agent, in the request with this id.
    Agent(Id),
    /// The hub, before it lets the agent do something.
    #[cfg(unix)]
    Hub(oneshot::Sender<Outcome>),
}

/// The methods that are questions to a person.
pub(crate) fn is_question(method: &str) -> bool {
    matches!(method, "session/request_permission" | "elicitation/create")
}

/// The questions of a session that are not decided.
#[derive(Debug)]
pub(crate) struct Questions {
    policy: Policy,
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    entry: Question,
    seq: Seq,
    asker: Asker,
    /// The author of the prompt in whose turn it was asked.
    prompter: Option<String>,
    since: Instant,
    /// Connections that were asked.
    asked: HashSet<u64>,
    /// Answers that do not decide yet, by identity.
    votes: Vec<(String, Outcome)>,
}

impl Questions {
    pub(crate) fn new(policy: Policy) -> Self {
        Questions { policy, open: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Removes a question that was decided by another hub.
    pub(crate) fn remove(&mut self, question: &str) {
        self.open.retain(|open| open.entry.question != question);
    }

    /// The ids of the open questions.
    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        self.open.iter().map(|open| open.entry.question.clone())
    }

    /// Adds a question that is the entry `seq` of the journal.
    pub(crate) fn add(&mut self, entry: Question, seq: Seq, asker: Asker, prompter: Option<String>) {
        let since = Instant::now();
        let (asked, votes) = (HashSet::new(), Vec::new());
        self.open.push(Open { entry, seq, asker, prompter, since, asked, votes });
    }

    /// The questions up to the entry `upto` that a connection may answer and was not asked. They
    /// count as asked.
    pub(crate) fn ask(&mut self, connection: u64, identity: &Identity, upto: Seq) -> Vec<Question> {
        let policy = self.policy;
        let new = self.open.iter_mut().filter(|open| open.seq <= upto && open.is_for(policy, identity));
        new.filter_map(|open| open.asked.insert(connection).then(|| open.entry.clone())).collect()
    }

    /// Forgets what a connection was asked, so that it can be asked again.
    pub(crate) fn forget(&mut self, connection: u64) {
        for open in &mut self.open {
            open.asked.remove(&connection);
        }
    }

    /// Takes an answer. Returns the decision if this one decides, with the one who asked.
    pub(crate) fn answer(
        &mut self,
        question: &str,
        identity: &Identity,
        outcome: Outcome,
    ) -> Option<(Asker, Decision)> {
        let position = self.open.iter().position(|open| open.entry.question == question)?;
        let open = self.open.get_mut(position)?;
        if !open.is_for(self.policy, identity) || !is_valid(&open.entry, &outcome) {
            return None;
        }
        if let Policy::Quorum(needed) = self.policy {
            open.votes.retain(|(name, _)| name != identity.name());
            open.votes.push((identity.name().to_owned(), outcome.clone()));
            let chosen = choice(&outcome);
            if open.votes.iter().filter(|(_, vote)| choice(vote) == chosen).count() < needed {
                return None;
            }
        }
        let open = self.open.remove(position);
        let decision = Decision {
            question: open.entry.question,
            outcome,
            by: Some(identity.name().to_owned()),
            from: identity.address().map(str::to_owned),
            rule: self.policy.rule(),
        };
        Some((open.asker, decision))
    }

    /// Decides a question whose agent takes its request back.
    pub(crate) fn withdraw(&mut self, agent_id: &Id) -> Option<(Asker, Decision)> {
        let is_it = |open: &Open| matches!(&open.asker, Asker::Agent(id) if id == agent_id);
        let position = self.open.iter().position(is_it)?;
        Some(self.open.remove(position).decide("withdrawn", cancelled))
    }

    /// Decides all questions as cancelled.
    pub(crate) fn cancel_all(&mut self, rule: &str) -> Vec<(Asker, Decision)> {
        self.open.drain(..).map(|open| open.decide(rule, cancelled)).collect()
    }

    /// Rejects the questions that are older than `deadline`.
    pub(crate) fn expire(&mut self, deadline: Duration, now: Instant) -> Vec<(Asker, Decision)> {
        let expired = self.open.extract_if(.., |open| open.since + deadline <= now);
        expired.map(|open| open.decide("deadline", rejected)).collect()
    }

    /// The next time after `looked` at which [`expire`](Self::expire) has something to do, or
    /// others may answer.
    pub(crate) fn next_event(&self, deadline: Option<Duration>, looked: Instant) -> Option<Instant> {
        let patience = match self.policy {
            Policy::Prompter(patience) => Some(patience),
            _ => None,
        };
        let times = self.open.iter().flat_map(|open| {
            let later = patience.map(|patience| open.since + patience).filter(|time| *time > looked);
            [deadline.map(|deadline| open.since + deadline), later]
        });
        times.flatten().min()
    }
}

impl Open {
    /// Whether an identity is asked.
    fn is_for(&self, policy: Policy, identity: &Identity) -> bool {
        identity.may(Role::Answer)
            && match policy {
                Policy::First | Policy::Quorum(_) => true,
                Policy::Role(role) => identity.may(role),
                Policy::Prompter(patience) => {
                    let is_prompter = self.prompter.as_deref().is_none_or(|name| name == identity.name());
                    is_prompter || self.since + patience <= Instant::now()
                }
            }
    }

    fn decide(self, rule: &str, outcome: fn(&Question) -> Outcome) -> (Asker, Decision) {
        let outcome = outcome(&self.entry);
        let question = self.entry.question;
        (self.asker, Decision { question, outcome, by: None, from: None, rule: rule.to_owned() })
    }
}

/// The params of `session/request_permission`.
#[derive(Deserialize)]
struct Permission {
    options: Vec<PermissionOption>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption {
    option_id: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct PermissionResult {
    outcome: PermissionOutcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOutcome {
    outcome: String,
    option_id: Option<String>,
}

#[derive(Deserialize)]
struct ElicitationResult {
    action: String,
}

fn is_permission(question: &Question) -> bool {
    question.method == "session/request_permission"
}

fn options(question: &Question) -> Vec<PermissionOption> {
    serde_json::from_str::<Permission>(question.params.get()).map(|asked| asked.options).unwrap_or_default()
}

/// The part of an answer that is compared with others.
fn choice(outcome: &Outcome) -> Option<String> {
    let Outcome::Result(result) = outcome else { return None };
    match serde_json::from_str::<PermissionResult>(result.get()) {
        Ok(PermissionResult { outcome }) => Some(outcome.option_id.unwrap_or(outcome.outcome)),
        Err(_) => Some(result.get().to_owned()),
    }
}

/// Whether an answer fits its question.
// PERM-04: an answer names an offered option.
fn is_valid(question: &Question, outcome: &Outcome) -> bool {
    let Outcome::Result(result) = outcome else { return false };
    if !is_permission(question) {
        let action = serde_json::from_str::<ElicitationResult>(result.get()).map(|result| result.action);
        return action.is_ok_and(|action| matches!(action.as_str(), "accept" | "decline" | "cancel"));
    }
    let Ok(PermissionResult { outcome }) = serde_json::from_str(result.get()) else { return false };
    match (outcome.outcome.as_str(), outcome.option_id) {
        ("selected", Some(chosen)) => options(question).iter().any(|option| option.option_id == chosen),
        ("cancelled", _) => true,
        _ => false,
    }
}

/// The answer to a question of a cancelled turn.
// CANCEL-05
pub(crate) fn cancelled(question: &Question) -> Outcome {
    Outcome::result(&match is_permission(question) {
        true => json!({"outcome": {"outcome": "cancelled"}}),
        false => json!({"action": "cancel"}),
    })
}

/// The answer at a deadline: never one that allows.
fn rejected(question: &Question) -> Outcome {
    if !is_permission(question) {
        return Outcome::result(&json!({"action": "decline"}));
    }
    let options = options(question);
    let of_kind = |kind: &str| options.iter().find(|option| option.kind == kind);
    match of_kind("reject_once").or_else(|| of_kind("reject_always")) {
        Some(option) => {
            Outcome::result(&json!({"outcome": {"outcome": "selected", "optionId": option.option_id}}))
        }
        None => cancelled(question),
    }
}
