//! How the parts of a policy come to a decision.

use std::path::Path;

use attache::wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, SessionId, ToolKind,
};

use super::audit::{Entry, Outcome};
use super::rules::Effect;
use super::{
    Action, Choice, CommandLine, Decision, Mode, Policy, Reason, Silence, Source, Subject, Unanswered,
    Verdict,
};

impl Policy {
    /// Decides a permission request as far as the user has said beforehand. An automatic answer is written to the audit log.
    pub fn decide(&self, request: &RequestPermissionRequest) -> Decision {
        let action = Action::of(request, &self.roots);
        let (effect, reason) = self.judge(&action, Asked::ByRequest);
        let decision = match effect {
            _ if request.options.is_empty() => {
                Decision::Deny(Reason::new(Source::Offer, "the agent offers no answers"))
            }
            Effect::Ask => return Decision::Ask(reason),
            Effect::Approve => match offered(request, true, reason.source == Source::Remembered) {
                Some(option) => choose(option, reason),
                None => {
                    // "Always" would reach further than what the user has said.
                    let text = format!("{reason}, but the agent offers no way to allow it just once");
                    return Decision::Ask(Reason { text, ..reason });
                }
            },
            Effect::Deny => refuse(request, reason),
        };
        if decision.allows() {
            self.grant(&request.session_id, action.clone());
        }
        self.record(request, &action, &decision, None);
        decision
    }

    /// A person has chosen. "Always" is remembered for this project, and what was allowed may be done in this turn.
    ///
    /// # Errors
    /// PERM-04: when the option was not offered; nothing is remembered then.
    pub fn answered(
        &self,
        request: &RequestPermissionRequest,
        option: &PermissionOptionId,
    ) -> Result<Decision, String> {
        let offered = request.options.iter().find(|offered| offered.option_id == *option);
        let offered = offered.ok_or_else(|| format!("the agent did not offer the option `{option}`"))?;
        let action = Action::of(request, &self.roots);
        let mut remembered = None;
        if matches!(offered.kind, PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways)
            && let Some(subject) = Subject::of(&action)
        {
            remembered = Some(subject.clone());
            if let Err(error) = self.memory.remember(&self.agent, offered.kind.allows(), subject) {
                self.audit.fail(format!("cannot remember: {error}"));
            }
        }
        let decision = choose(offered, Reason::new(Source::Person, "the user has decided"));
        if decision.allows() {
            self.grant(&request.session_id, action.clone());
        }
        self.record(request, &action, &decision, remembered.as_ref());
        Ok(decision)
    }

    /// Nobody has answered. Never [`Decision::Ask`], and never an approval.
    pub fn unanswered(&self, request: &RequestPermissionRequest, silence: Silence) -> Decision {
        let reason = silence.reason();
        let decision = match self.unanswered {
            Unanswered::Deny => refuse(request, reason),
            Unanswered::Fail => Decision::Fail(reason),
        };
        self.record(request, &Action::of(request, &self.roots), &decision, None);
        decision
    }

    /// The question needs no answer any more (PERM-08), or the person chose none.
    pub fn withdrawn(&self, request: &RequestPermissionRequest) {
        let decision = Decision::Deny(Reason::new(Source::Person, "the question was taken back"));
        self.record(request, &Action::of(request, &self.roots), &decision, None);
    }

    /// What an "always" would be remembered as, to show it beforehand. `None` when the request does not say enough.
    pub fn would_remember(&self, request: &RequestPermissionRequest) -> Option<Subject> {
        Subject::of(&Action::of(request, &self.roots))
    }

    /// What the request is about.
    pub fn action(&self, request: &RequestPermissionRequest) -> Action {
        Action::of(request, &self.roots)
    }

    /// Whether a file may be read for which the agent has not asked. The path is free of links and dots.
    pub fn may_read(&self, session: Option<&SessionId>, path: &Path) -> Verdict {
        self.verdict(session, &Action::read(path))
    }

    /// Whether a file may be written for which the agent has not asked. The path is free of links and dots.
    pub fn may_write(&self, session: Option<&SessionId>, path: &Path) -> Verdict {
        self.verdict(session, &Action::write(path))
    }

    /// Whether a command may be run for which the agent has not asked.
    pub fn may_run(&self, session: Option<&SessionId>, command: &CommandLine) -> Verdict {
        self.verdict(session, &Action::run(command.clone()))
    }

    /// The turn is over, and with it what was permitted for it.
    pub fn turn_over(&self, session: &SessionId) {
        self.granted().remove(session);
    }

    pub(super) fn verdict(&self, session: Option<&SessionId>, action: &Action) -> Verdict {
        match self.judge(action, Asked::Directly) {
            (Effect::Deny, reason) => Verdict::Deny(reason),
            (Effect::Approve, reason) => Verdict::Allow(reason),
            (Effect::Ask, _) if session.is_some_and(|session| self.is_granted(session, action)) => {
                Verdict::Allow(Reason::new(Source::Granted, "it was allowed in this turn"))
            }
            (Effect::Ask, reason) => Verdict::Ask(reason),
        }
    }

    /// What the policy says, before anybody looks at the options.
    fn judge(&self, action: &Action, asked: Asked) -> (Effect, Reason) {
        let by_rule = |effect, says: &str| {
            let rule = self.rules.find(effect, action, &self.roots)?;
            let text = format!("the rule {rule} {says}");
            Some((effect, Reason { source: Source::Rule, rule: Some(rule.to_owned()), text }))
        };
        let remembered = self.memory.recall(&self.agent, action, &self.roots);
        let by_memory = |wanted: bool| {
            let (allow, subject) = remembered.as_ref().filter(|(allow, _)| *allow == wanted)?;
            let (effect, word) = if *allow { (Effect::Approve, "allowed") } else { (Effect::Deny, "denied") };
            Some((
                effect,
                Reason::new(Source::Remembered, format!("always {word} in this project: {subject}")),
            ))
        };
        by_rule(Effect::Deny, "denies it")
            .or_else(|| by_memory(false))
            .or_else(|| by_rule(Effect::Approve, "approves it"))
            .or_else(|| by_rule(Effect::Ask, "wants you to decide"))
            .or_else(|| by_memory(true).filter(|_| self.mode != Mode::DenyAll))
            .or_else(|| self.by_default(action, asked))
            .unwrap_or_else(|| self.by_mode(action, asked))
    }

    fn by_default(&self, action: &Action, asked: Asked) -> Option<(Effect, Reason)> {
        // What the agent reads through us is what it could read without us; only rules that name it speak against that.
        if asked == Asked::Directly && action.kind == Some(ToolKind::Read) {
            return None;
        }
        let effect = self.rules.default?;
        let says = match effect {
            Effect::Approve => "approves it",
            Effect::Deny => "denies it",
            Effect::Ask => "wants you to decide",
        };
        Some((effect, Reason::new(Source::Default, format!("the default of the policy {says}"))))
    }

    fn by_mode(&self, action: &Action, asked: Asked) -> (Effect, Reason) {
        let is_look =
            matches!(action.kind, Some(ToolKind::Read | ToolKind::Search)) && action.commands.is_empty();
        let effect = match self.mode {
            Mode::ApproveAll => Effect::Approve,
            Mode::DenyAll => Effect::Deny,
            // ROOT-17 has been seen to when we are asked directly.
            _ if is_look && asked == Asked::Directly => Effect::Approve,
            Mode::ApproveReads if is_look && action.is_inside(&self.roots) => Effect::Approve,
            Mode::ApproveReads | Mode::Ask => Effect::Ask,
        };
        (effect, Reason::new(Source::Mode, format!("the mode is {}", self.mode)))
    }

    fn grant(&self, session: &SessionId, action: Action) {
        const MOST: usize = 256;
        let mut granted = self.granted();
        let actions = granted.entry(session.clone()).or_default();
        if actions.len() >= MOST {
            actions.remove(0);
        }
        actions.push(action);
    }

    /// Whether just this has been permitted in this turn.
    fn is_granted(&self, session: &SessionId, wanted: &Action) -> bool {
        use ToolKind::{Delete, Edit, Execute, Move, Other};
        self.granted().get(session).into_iter().flatten().any(|granted| {
            let paths = wanted.paths.iter().all(|path| granted.paths.contains(path));
            let commands =
                wanted.commands.iter().all(|line| granted.commands.iter().any(|other| other.is_same(line)));
            // A permission to look at a file is none to change it.
            let kind = match wanted.kind {
                Some(ToolKind::Read) => true,
                Some(ToolKind::Edit) => matches!(granted.kind, None | Some(Edit | Move | Delete | Other)),
                _ => matches!(granted.kind, None | Some(Execute | Other)),
            };
            kind && paths && commands
        })
    }

    fn granted(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<SessionId, Vec<Action>>> {
        self.granted.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn record(
        &self,
        request: &RequestPermissionRequest,
        action: &Action,
        decision: &Decision,
        remembered: Option<&Subject>,
    ) {
        let (outcome, option) = match decision {
            Decision::Choose(choice) if choice.allows => (Outcome::Allowed, Some(&choice.option)),
            Decision::Choose(choice) => (Outcome::Denied, Some(&choice.option)),
            _ => (Outcome::Cancelled, None),
        };
        self.audit.write(&Entry {
            event: "permission",
            session: Some(&request.session_id),
            agent: &self.agent,
            tool_call: Some(request.tool_call.tool_call_id.as_str()),
            action,
            outcome,
            option: option.map(PermissionOptionId::as_str),
            remembered,
            reason: decision.reason(),
            mask: &self.mask,
        });
    }

    /// Writes down what became of something that was asked of us directly.
    pub(super) fn record_direct(
        &self,
        event: &'static str,
        session: Option<&SessionId>,
        action: &Action,
        outcome: Outcome,
        reason: &Reason,
    ) {
        {
            let mut tally = self.direct.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match outcome {
                Outcome::Allowed if action.kind == Some(ToolKind::Read) => {}
                Outcome::Allowed if reason.source == Source::Granted => {}
                Outcome::Allowed => tally.allowed += 1,
                Outcome::Denied | Outcome::Cancelled => tally.denied += 1,
            }
        }
        self.audit.write(&Entry {
            event,
            session,
            agent: &self.agent,
            tool_call: None,
            action,
            outcome,
            option: None,
            remembered: None,
            reason,
            mask: &self.mask,
        });
    }

    pub(super) fn remember_direct(&self, action: &Action) {
        if let Some(subject) = Subject::of(action)
            && let Err(error) = self.memory.remember(&self.agent, true, subject)
        {
            self.audit.fail(format!("cannot remember: {error}"));
        }
    }
}

/// Whether the agent asks for permission, or just does it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    ByRequest,
    Directly,
}

impl Silence {
    /// What to say about it.
    pub fn reason(self) -> Reason {
        match self {
            Silence::TimeLimit => Reason::new(Source::TimeLimit, "nobody answered in time"),
            Silence::Unattended => Reason::new(
                Source::Unattended,
                "a person would have to decide, and nobody is there to be asked",
            ),
        }
    }
}

/// The option to choose. "Always" is for what was said to be for always, and there it comes first.
fn offered(request: &RequestPermissionRequest, allow: bool, always: bool) -> Option<&PermissionOption> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let (once, for_ever) = if allow { (AllowOnce, AllowAlways) } else { (RejectOnce, RejectAlways) };
    let first = |kind| request.options.iter().find(|option| option.kind == kind);
    if always { first(for_ever).or_else(|| first(once)) } else { first(once) }
}

fn choose(option: &PermissionOption, reason: Reason) -> Decision {
    Decision::Choose(Choice { option: option.option_id.clone(), allows: option.kind.allows(), reason })
}

fn refuse(request: &RequestPermissionRequest, reason: Reason) -> Decision {
    match offered(request, false, reason.source == Source::Remembered) {
        Some(option) => choose(option, reason),
        None => Decision::Deny(reason),
    }
}
