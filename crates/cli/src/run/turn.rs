//! One prompt, from the request to its answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use attache::client::{ElicitationAsk, Event, PermissionAsk, Session};
use attache::wire::v1::{RequestPermissionRequest, ToolCallId, ToolCallUpdate};
use attache::{ContentBlock, Meta, Prompt, StopReason};
use attache_host::budget::{Budget, Exceeded, Meter};
use attache_host::policy::{Answer, Decision, Mode, Policy, Question, Reason, Silence, Source, Tally};
use attache_transcript::ToolCall;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::ask::{Answered, Ask};
use super::permits::Permits;
use super::renderer::View;
use crate::client_services::GuardEvent;
use crate::error::{DetailCode, Failure, Kind, Result};
use crate::forms::{self, Outcome};
use crate::tool_call::complete_request;

/// The cause to stop a turn early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// This process is to stop.
    Interrupted,
    /// A command cancelled it.
    Cancelled,
}

/// Receives the request to end a turn.
pub(crate) type Stop = watch::Receiver<Option<StopCause>>;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) reason: StopReason,
}

/// The reason why a turn ended early.
enum Cause {
    Stopped(StopCause),
    /// The output cannot be written.
    Unheard(std::io::Error),
    Time(Duration),
    Budget(Exceeded),
    /// A user had to be asked, and there was none.
    Unattended(String),
    /// The user refused a permission and gave this prompt instead.
    Replaced(String),
}

/// A prompt and its parameters.
pub(crate) struct Task<'a> {
    /// The name of the agent.
    pub(crate) agent: &'a str,
    pub(crate) session: &'a mut Session,
    pub(crate) guard: &'a mut mpsc::Receiver<GuardEvent>,
    pub(crate) policy: &'a Policy,
    pub(crate) permits: &'a Permits,
    pub(crate) blocks: &'a [ContentBlock],
    /// Covers all attempts.
    pub(crate) deadline: Option<Instant>,
}

/// Sends a prompt and sees it through.
pub(crate) async fn run(task: Task<'_>, view: &mut View<'_>, stop: &mut Stop) -> Result<Ended> {
    let Task { agent, session, guard, policy, permits, blocks, deadline } = task;
    let mut blocks = blocks.to_vec();
    let mut attempt = 0;
    loop {
        let mut turn = Running {
            agent,
            answers: permits.answers.as_ref(),
            guard: &mut *guard,
            policy,
            view: &mut *view,
            stop: &mut *stop,
            deadline,
            timeout: permits.timeout.unwrap_or_default(),
            meter: Meter::new(Budget::new().tokens(permits.max_tokens).cost(permits.max_cost)),
            tally: Tally::default(),
            cause: None,
            touched: false,
            tools: HashMap::new(),
        };
        let result = turn.run(session, blocks.clone()).await;
        // Actions that needed no permission must not be repeated either.
        let (touched, cancelled) = (turn.touched || policy.direct().allowed > 0, turn.cause.is_some());
        let replaced = match turn.cause.take() {
            Some(Cause::Replaced(prompt)) => Some(prompt),
            _ => None,
        };
        policy.turn_over(session.id());
        match result {
            Ok(_) if replaced.is_some() => {
                blocks = replaced.into_iter().map(ContentBlock::from).collect();
                attempt = 0;
            }
            Err(failure) if attempt < permits.retries && !touched && !cancelled && failure.is_temporary() => {
                attempt += 1;
                let pause = Duration::from_millis(500 << attempt.min(6));
                view.renderer
                    .note(&format!("{failure}; attempt {} of {}", attempt + 1, permits.retries + 1))
                    .await;
                tokio::time::sleep(pause).await;
            }
            result => return result,
        }
    }
}

struct Running<'a, 's> {
    /// The name of the agent.
    // ELIC-07
    agent: &'a str,
    answers: Option<&'a Map<String, Value>>,
    guard: &'a mut mpsc::Receiver<GuardEvent>,
    policy: &'a Policy,
    view: &'a mut View<'s>,
    stop: &'a mut Stop,
    deadline: Option<Instant>,
    timeout: Duration,
    meter: Meter,
    tally: Tally,
    cause: Option<Cause>,
    /// The agent has done something that must not be done twice.
    touched: bool,
    /// Tool calls that have not ended, for questions about them.
    tools: HashMap<ToolCallId, ToolCall>,
}

/// The most open tool calls that are remembered, and the largest. A question about another call
/// shows its request alone.
const MOST_TOOLS: usize = 64;
const LARGEST_TOOL: usize = 256 << 10;

/// The next event.
enum Next {
    Event(Box<Event>),
    Over(Result<(), attache::Error>),
    Guard(GuardEvent),
    Stop(StopCause),
    Late,
    Lines,
}

impl Running<'_, '_> {
    async fn run(&mut self, session: &mut Session, blocks: Vec<ContentBlock>) -> Result<Ended> {
        let mut turn = session.prompt(Prompt::from(blocks)).await.map_err(Failure::from)?;
        let mut quiet = true;
        let over = loop {
            // While events come one after the other, their lines are gathered.
            let shown = if quiet { self.view.drain().await } else { self.view.drain_if_much().await };
            if let (Err(error), None) = (shown, &self.cause) {
                self.cause = Some(Cause::Unheard(error));
                turn.cancel();
            }
            let wire = self.view.wire.clone();
            let may_stop = self.cause.is_none();
            let next = tokio::select! {
                biased;
                why = stopped(self.stop), if may_stop => Next::Stop(why),
                event = turn.next() => match event {
                    Ok(Some(event)) => Next::Event(Box::new(event)),
                    Ok(None) => Next::Over(Ok(())),
                    Err(error) => Next::Over(Err(error)),
                },
                Some(event) = self.guard.recv() => Next::Guard(event),
                () = late(self.deadline), if may_stop => Next::Late,
                () = wire.changed() => Next::Lines,
                () = self.view.renderer.turn() => continue,
            };
            quiet = matches!(next, Next::Lines);
            match next {
                Next::Event(event) => self.event(*event).await,
                Next::Guard(event) => self.guard_event(event).await,
                Next::Over(over) => break over,
                Next::Stop(why) => self.cause = Some(Cause::Stopped(why)),
                Next::Late => self.cause = Some(Cause::Time(self.timeout)),
                Next::Lines => {}
            }
            // CANCEL-09: after a cancel the agent may still send updates.
            if may_stop && self.cause.is_some() {
                turn.cancel();
            }
        };
        let _ = self.view.drain().await;
        let reason = turn.stop_reason();
        if let Some(usage) = turn.usage()
            && let Err(exceeded) = self.meter.counted(usage.total_tokens)
            && self.cause.is_none()
        {
            self.cause = Some(Cause::Budget(exceeded));
        }
        self.verdict(over, reason).await
    }

    async fn verdict(
        &mut self,
        over: Result<(), attache::Error>,
        reason: Option<StopReason>,
    ) -> Result<Ended> {
        let finished = over.is_ok() && reason.is_some_and(|reason| reason != StopReason::Cancelled);
        if let (Some(Cause::Budget(exceeded)), true) = (&self.cause, finished) {
            // The answer is there and paid for: it counts, and the user knows why the next one will
            // not come.
            let note = format!("the budget is used up: {exceeded}");
            self.view.renderer.note(&note).await;
            self.cause = None;
        }
        let direct = self.policy.direct();
        let (allowed, denied) = (self.tally.allowed + direct.allowed, self.tally.denied + direct.denied);
        match (&self.cause, over) {
            // An agent that dies when it is cancelled has stopped, too.
            (Some(Cause::Stopped(StopCause::Interrupted)), _) => Err(Failure::interrupted()),
            (Some(Cause::Unheard(error)), _) => Err(Failure::write_error(error)),
            (Some(Cause::Unattended(why)), _) => Err(Failure::new(Kind::PromptUnavailable, why)
                .hint("run in a terminal to be asked, or allow it beforehand with --approve-reads, --approve-all or --permission-policy")),
            (Some(Cause::Budget(exceeded)), _) => {
                Err(Failure::runtime(format_args!("the turn was cancelled: {exceeded}")).detail(DetailCode::BudgetExceeded))
            }
            // A turn that ended in time counts.
            (Some(Cause::Time(limit)), _) if !finished => {
                Err(timed_out(*limit))
            }
            (_, Err(error)) => Err(Failure::from(error)),
            // The answer to the next prompt counts.
            (Some(Cause::Replaced(_)), Ok(())) => Ok(Ended { reason: StopReason::Cancelled }),
            (_, Ok(())) if denied > 0 && allowed == 0 => {
                let hint = match self.policy.mode() == Mode::APPROVE_ALL {
                    true => "rules that deny, and the question about protected files, come before --approve-all; run in a terminal to be asked",
                    false => {
                        "allow it with --approve-reads, --approve-all or --permission-policy, or run in a terminal to be asked"
                    }
                };
                Err(Failure::new(Kind::PermissionDenied, "everything that the agent asked for was denied").hint(hint))
            }
            (_, Ok(())) => Ok(Ended { reason: reason.unwrap_or(StopReason::Cancelled) }),
        }
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Permission(ask) => self.permission(ask).await,
            Event::Elicitation(ask) => self.elicitation(ask).await,
            Event::FromSubagent(_, event) => match *event {
                Event::Permission(ask) => self.permission(ask).await,
                Event::Elicitation(ask) => self.elicitation(ask).await,
                _ => {}
            },
            Event::ToolCall(change) => {
                self.touched = true;
                self.note_tool(*change.update);
            }
            Event::Usage(usage) => {
                if let Err(exceeded) = self.meter.usage(&usage)
                    && self.cause.is_none()
                {
                    self.cause = Some(Cause::Budget(exceeded));
                }
            }
            _ => {}
        }
    }

    /// The agent asks whether it may run a tool.
    async fn permission(&mut self, mut ask: PermissionAsk) {
        self.touched = true;
        // The request is shown before it is answered.
        let _ = self.view.drain().await;
        if self.cause.is_some() || !ask.is_open() {
            return self.policy.withdrawn(ask.request());
        }
        let request = self.completed(&ask);
        let decision = match self.policy.decide(&request) {
            Decision::Ask(question) if self.view.renderer.is_attended() => {
                match self.person(&ask, &request, &question).await {
                    Some(decision) => decision,
                    None => return,
                }
            }
            Decision::Ask(question) => {
                let (title, reason) = (title(&ask), &question.reason);
                self.view.renderer.permission(&format!("denied (not a terminal): {title} ({reason})")).await;
                let decision = self.policy.unanswered(&request, Silence::Unattended);
                if let Some(meta) = escalation(&ask, reason) {
                    ask = ask.meta(meta);
                }
                decision
            }
            decision => {
                let word = if decision.allows() { "allowed" } else { "denied" };
                let notice = format!("{word}: {} ({})", title(&ask), decision.reason());
                self.view.renderer.permission(&notice).await;
                decision
            }
        };
        self.answer(ask, decision);
    }

    /// The request with everything that is known about its tool call, so that the question shows
    /// all of it.
    fn completed(&self, ask: &PermissionAsk) -> RequestPermissionRequest {
        let known = self.tools.get(&ask.tool_call().tool_call_id);
        complete_request(ask.request(), known.map(|call| &call.state))
    }

    fn note_tool(&mut self, update: ToolCallUpdate) {
        let id = update.tool_call_id.clone();
        let call = match self.tools.remove(&id) {
            Some(mut call) => {
                call.state.merge(update);
                call
            }
            None => ToolCall::new(update),
        };
        if !call.is_final() && call.size() <= LARGEST_TOOL && self.tools.len() < MOST_TOOLS {
            self.tools.insert(id, call);
        }
    }

    /// A person decides; `None` if the question was withdrawn.
    async fn person(
        &mut self,
        ask: &PermissionAsk,
        request: &RequestPermissionRequest,
        question: &Question,
    ) -> Option<Decision> {
        let shown = Ask::new(question);
        let limit = question.limit;
        let expired = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let choice = tokio::select! {
            choice = self.view.renderer.ask(&shown) => choice,
            () = ask.withdrawn() => {
                self.policy.withdrawn(request);
                return None;
            }
            () = expired => return Some(self.policy.unanswered(request, Silence::TimeLimit)),
            why = stopped(self.stop) => {
                self.cause = Some(Cause::Stopped(why));
                self.policy.withdrawn(request);
                return None;
            }
            () = late(self.deadline) => {
                self.cause = Some(Cause::Time(self.timeout));
                self.policy.withdrawn(request);
                return None;
            }
        };
        let chosen = self.chosen(choice, &shown).and_then(|at| question.choices.get(at));
        let decided = chosen.and_then(|chosen| self.policy.answer(request, question, &chosen.answer).ok());
        Some(decided.unwrap_or_else(|| self.policy.unanswered(request, Silence::Unattended)))
    }

    /// The chosen answer. With a refusal that says what to do instead, the turn is cancelled and
    /// the next one begins.
    fn chosen(&mut self, answered: Option<Answered>, ask: &Ask) -> Option<usize> {
        match answered? {
            Answered::Choice(at) => Some(at),
            Answered::Instead(prompt) => {
                self.cause = Some(Cause::Replaced(prompt));
                super::ask::refusal(&ask.choices)
            }
        }
    }

    fn answer(&mut self, ask: PermissionAsk, decision: Decision) {
        let allows = decision.allows();
        match decision {
            // PERM-04: the option was offered, or the question is answered `cancelled`.
            Decision::Choose(choice) => drop(ask.choose(&choice.option)),
            Decision::Fail(reason) => self.cause = Some(Cause::Unattended(reason.text)),
            Decision::Deny(_) | Decision::Ask(_) => ask.cancel(),
        }
        if allows {
            self.tally.allowed += 1;
        } else {
            self.tally.denied += 1;
        }
    }

    /// Answers a form of the agent: from `--answers`, by asking the user, or not at all.
    async fn elicitation(&mut self, ask: ElicitationAsk) {
        self.touched = true;
        let _ = self.view.drain().await;
        if self.cause.is_some() || !ask.is_open() {
            return;
        }
        let mut unfit = None;
        if let Some(answers) = self.answers {
            match forms::fill_with(answers, &ask) {
                Ok(content) => return Outcome::Filled(content).send(ask),
                Err(problem) => unfit = Some(problem),
            }
        }
        if !self.view.renderer.is_attended() {
            let message = forms::clean(ask.message());
            let why = match unfit {
                Some(problem) => format!("--answers does not fit: {problem}"),
                None => "not a terminal; give --answers".to_owned(),
            };
            return self.view.renderer.note(&format!("{} asks: {message} ({why})", self.agent)).await;
        }
        let outcome = tokio::select! {
            outcome = forms::ask(&mut *self.view.renderer, self.agent, &ask) => outcome,
            () = ask.withdrawn() => Outcome::Cancelled,
            why = stopped(self.stop) => {
                self.cause = Some(Cause::Stopped(why));
                Outcome::Cancelled
            }
            () = late(self.deadline) => {
                self.cause = Some(Cause::Time(self.timeout));
                Outcome::Cancelled
            }
        };
        outcome.send(ask);
    }

    /// The agent acts without having asked for permission.
    async fn guard_event(&mut self, event: GuardEvent) {
        let (question, mut reply) = match event {
            GuardEvent::Question(question, reply) => (question, reply),
            GuardEvent::Notice(notice) => {
                let (effect, reason) = (&notice.effect, &notice.reason);
                let text = match (notice.allowed, reason.source) {
                    (_, Source::Person | Source::Granted) => return,
                    (_, Source::Unattended) => format!("denied (not a terminal): {effect}"),
                    (true, _) => format!("allowed: {effect} ({reason})"),
                    (false, _) => format!("denied: {effect} ({reason})"),
                };
                self.view.renderer.permission(&text).await;
                return;
            }
        };
        let _ = self.view.drain().await;
        self.touched = true;
        let answer = if self.cause.is_some() {
            Answer::Unanswered
        } else if !self.view.renderer.is_attended() {
            if self.policy.fails_unanswered() {
                self.cause = Some(Cause::Unattended(Silence::Unattended.reason().text));
            }
            Answer::Unanswered
        } else {
            let ask = Ask::new(&question);
            tokio::select! {
                choice = self.view.renderer.ask(&ask) => {
                    let chosen = self.chosen(choice, &ask).and_then(|at| question.choices.get(at));
                    chosen.map_or(Answer::Reject, |chosen| chosen.answer.clone())
                }
                () = reply.closed() => return,
                why = stopped(self.stop) => {
                    self.cause = Some(Cause::Stopped(why));
                    Answer::Unanswered
                }
                () = late(self.deadline) => {
                    self.cause = Some(Cause::Time(self.timeout));
                    Answer::Unanswered
                }
            }
        };
        let _ = reply.send(answer);
    }
}

/// The answer that scripts for acpx expect if a rule escalates and no user can be asked.
fn escalation(ask: &PermissionAsk, reason: &Reason) -> Option<Meta> {
    if !matches!(reason.source, Source::Rule | Source::Default) {
        return None;
    }
    let call = ask.tool_call();
    let title = title(ask);
    let input = call.raw_input.as_ref().and_then(|input| input.parse::<Value>().ok());
    let mut escalation = json!({
        "type": "permission_escalation",
        "sessionId": ask.request().session_id,
        "toolCallId": call.tool_call_id,
        "toolTitle": title,
        "action": "escalate",
        "message": format!("Permission escalation required for {title}"),
        "timestamp": crate::time::now(),
    });
    let more = [
        ("toolName", call.name.as_deref().map(Value::from)),
        ("toolInput", input),
        ("toolKind", call.kind.map(|kind| json!(kind.as_str()))),
        ("matchedRule", reason.rule.as_deref().map(Value::from)),
    ];
    if let Some(map) = escalation.as_object_mut() {
        map.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    Meta::new(&json!({ "acpx": { "permissionEscalation": escalation } })).ok()
}

/// The subject of a question, in one line.
fn title(ask: &PermissionAsk) -> String {
    let call = ask.tool_call();
    let title = call.title.as_deref().unwrap_or(call.tool_call_id.as_str());
    title.lines().next().unwrap_or_default().to_owned()
}

/// Resolves when the turn is to end.
pub(crate) async fn stopped(stop: &mut Stop) -> StopCause {
    match stop.wait_for(Option::is_some).await {
        Ok(why) => why.unwrap_or(StopCause::Cancelled),
        // The connection is gone, so the agent cannot be notified.
        Err(_) => std::future::pending().await,
    }
}

pub(crate) async fn late(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn timed_out(limit: Duration) -> Failure {
    Failure::new(Kind::Timeout, format_args!("the agent did not answer within {} s", limit.as_secs_f64()))
        .hint("give it more time with --timeout, or see with -v what it does")
}
