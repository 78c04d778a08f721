//! The decision about a request.

use attache::wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionRequest, SessionId, ToolKind,
};
use parking_lot::MutexGuard;

use super::audit::{Entry, Outcome};
use super::effect::Fingerprint;
use super::mode::Stance;
use super::question::{choices, offered_choices};
use super::{
    Answer, Claim, Confined, Decision, Effect, Mode, Policy, Question, Reason, RuleAction, Run, Scope,
    Selected, Silence, Source, Unanswered, Verdict,
};

/// A request to judge.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The session.
    pub session: Option<SessionId>,
    /// The effects.
    pub effects: Vec<Effect>,
    /// Whether the agent acts without having asked for permission.
    pub direct: bool,
    /// What the agent calls it. Rules that deny or ask look at this too; it approves nothing.
    pub(super) labels: Labels,
}

impl Request {
    /// A request of an agent's own tool.
    pub fn new(session: Option<SessionId>, effects: Vec<Effect>) -> Self {
        Request { session, effects, ..Request::default() }
    }

    /// A request that an agent makes without having asked for permission.
    pub fn direct(session: Option<&SessionId>, effect: Effect) -> Self {
        Request { session: session.cloned(), effects: vec![effect], direct: true, labels: Labels::default() }
    }
}

/// The agent's own words for a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub(super) kind: Option<ToolKind>,
    pub(super) tool: Option<String>,
    pub(super) title: Option<String>,
}

/// Permissions for exactly the effects that were shown, each to be used once.
#[derive(Debug, Default)]
pub(super) struct Grants {
    fingerprints: Vec<Fingerprint>,
    runs: Vec<Run>,
}

/// Grants that a session can have at a time.
const MOST_GRANTS: usize = 256;

impl Grants {
    fn add(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Run(run) => self.runs.push(run.clone()),
                effect => self.fingerprints.extend(effect.fingerprint()),
            }
        }
        let (files, runs) = (self.fingerprints.len(), self.runs.len());
        self.fingerprints.drain(..files.saturating_sub(MOST_GRANTS));
        self.runs.drain(..runs.saturating_sub(MOST_GRANTS));
    }

    /// Uses up the grants for these effects, if there is one for each.
    fn take(&mut self, effects: &[Effect]) -> bool {
        let find = |effect: &Effect| match effect {
            // A command that is confined more than was agreed to does less.
            Effect::Run(run) => {
                let fits = |granted: &Run| granted.is_same(run) && run.confined >= granted.confined;
                self.runs.iter().position(fits).map(Used::Run)
            }
            effect => {
                let wanted = effect.fingerprint()?;
                self.fingerprints.iter().position(|granted| *granted == wanted).map(Used::File)
            }
        };
        let Some(mut used) = effects.iter().map(find).collect::<Option<Vec<_>>>() else { return false };
        used.sort();
        used.dedup();
        // One grant serves one effect.
        if used.len() != effects.len() {
            return false;
        }
        for used in used.into_iter().rev() {
            match used {
                Used::Run(at) => drop(self.runs.remove(at)),
                Used::File(at) => drop(self.fingerprints.remove(at)),
            }
        }
        true
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Used {
    Run(usize),
    File(usize),
}

impl Policy {
    /// Decides a permission request as far as the user's settings do. An automatic answer is
    /// logged.
    pub fn decide(&self, request: &RequestPermissionRequest) -> Decision {
        let claim = Claim::new(request, &self.roots);
        let wanted = Request {
            session: Some(request.session_id.clone()),
            effects: claim.effects.clone(),
            direct: false,
            labels: Labels {
                kind: request.tool_call.kind,
                tool: claim.tool.clone(),
                title: claim.title.clone(),
            },
        };
        let (stance, reason) = self.weigh(&wanted);
        let decision = match stance {
            _ if request.options.is_empty() => {
                Decision::Deny(Reason::new(Source::Offer, "the agent offers no answers"))
            }
            Stance::Allow => match offered(request, PermissionOptionKind::AllowOnce) {
                Some(option) => select(option, reason),
                // "Always" would grant more than the user agreed to.
                None => {
                    let text = format!("{reason}, but the agent offers no way to allow it just once");
                    return self.question(request, claim, Reason { text, ..reason });
                }
            },
            Stance::Ask => return self.question(request, claim, reason),
            Stance::Deny(_) => refuse(request, reason),
        };
        self.record(request, &claim, &decision, None);
        decision
    }

    fn question(&self, request: &RequestPermissionRequest, claim: Claim, reason: Reason) -> Decision {
        let scopes = Scope::of_all(&claim.effects, &self.roots).unwrap_or_default();
        Decision::Ask(Box::new(Question {
            session: Some(request.session_id.clone()),
            agent: self.display_name().to_owned(),
            choices: offered_choices(request, &scopes, self.base(), self.display_name(), self.span),
            title: claim.title,
            notes: claim.notes,
            effects: claim.effects,
            reason,
            limit: self.ask_limit,
            scopes,
            base: self.base().to_owned(),
        }))
    }

    /// Carries out a person's answer to a permission request: remembers the scope that was on the
    /// button, and grants what was shown for this turn.
    ///
    /// # Errors
    /// If it leads to an option that was not offered. Nothing is remembered then.
    // PERM-04
    pub fn answer(
        &self,
        request: &RequestPermissionRequest,
        question: &Question,
        answer: &Answer,
    ) -> Result<Decision, String> {
        use PermissionOptionKind::{AllowOnce, RejectOnce};
        let reason = Reason::new(Source::Person, "you decided");
        let missing = || "the agent did not offer this answer".to_owned();
        let decision = match answer {
            Answer::Once | Answer::Session | Answer::Project => {
                select(offered(request, AllowOnce).ok_or_else(missing)?, reason)
            }
            Answer::Offered(id) => {
                let option = request.options.iter().find(|option| option.option_id == *id);
                select(option.ok_or_else(missing)?, reason)
            }
            Answer::Reject | Answer::Never => match offered(request, RejectOnce) {
                Some(option) => select(option, reason),
                None => Decision::Deny(reason),
            },
            Answer::Unanswered => return Ok(self.unanswered(request, Silence::Unattended)),
        };
        let remembered = self.remember(question, answer);
        if decision.allows() {
            self.grants().entry(request.session_id.clone()).or_default().add(&question.effects);
        }
        let claim = Claim {
            title: question.title.clone(),
            tool: None,
            notes: Vec::new(),
            effects: question.effects.clone(),
        };
        self.record(request, &claim, &decision, remembered);
        Ok(decision)
    }

    /// Decides a request that got no answer. Never [`Decision::Ask`], and never an approval.
    pub fn unanswered(&self, request: &RequestPermissionRequest, silence: Silence) -> Decision {
        let reason = silence.reason();
        let decision = match self.unanswered {
            Unanswered::Deny => refuse(request, reason),
            Unanswered::Fail => Decision::Fail(reason),
        };
        self.record(request, &Claim::new(request, &self.roots), &decision, None);
        decision
    }

    // PERM-08
    /// Logs that a question needs no answer any more, or that the person gave none.
    pub fn withdrawn(&self, request: &RequestPermissionRequest) {
        let decision = Decision::Deny(Reason::new(Source::Person, "the question was withdrawn"));
        self.record(request, &Claim::new(request, &self.roots), &decision, None);
    }

    /// Ends the permissions that were given for a turn.
    pub fn turn_over(&self, session: &SessionId) {
        self.grants().remove(session);
    }

    /// Judges effects: of an agent's own tool, or of a request that an agent makes without asking
    /// for permission.
    pub fn judge(&self, request: &Request) -> Verdict {
        let (stance, reason) = self.weigh(request);
        match stance {
            Stance::Allow => Verdict::Allow(reason),
            Stance::Deny(_) => Verdict::Deny(reason),
            Stance::Ask if request.direct && self.take_grant(request) => {
                Verdict::Allow(Reason::new(Source::Granted, "you allowed it in this turn"))
            }
            Stance::Ask => {
                let scopes = Scope::of_all(&request.effects, &self.roots).unwrap_or_default();
                Verdict::Ask(Box::new(Question {
                    session: request.session.clone(),
                    agent: self.display_name().to_owned(),
                    title: None,
                    notes: Vec::new(),
                    choices: choices(&scopes, self.base(), self.display_name(), self.span),
                    effects: request.effects.clone(),
                    reason,
                    limit: self.ask_limit,
                    scopes,
                    base: self.base().to_owned(),
                }))
            }
        }
    }

    fn take_grant(&self, request: &Request) -> bool {
        let Some(session) = &request.session else { return false };
        self.grants().get_mut(session).is_some_and(|grants| grants.take(&request.effects))
    }

    /// Carries out an answer to a question of [`judge`](Self::judge). Returns whether the effects
    /// may happen, and why.
    pub fn settle(&self, event: &'static str, question: &Question, answer: &Answer) -> (bool, Reason) {
        let (allowed, reason) = match answer {
            Answer::Once | Answer::Session | Answer::Project => {
                (true, Reason::new(Source::Person, "you allowed it"))
            }
            Answer::Reject | Answer::Never | Answer::Offered(_) => {
                (false, Reason::new(Source::Person, "you denied it"))
            }
            Answer::Unanswered => (false, Silence::Unattended.reason()),
        };
        let remembered = self.remember(question, answer);
        self.record_direct(event, question.session.as_ref(), &question.effects, allowed, &reason, remembered);
        (allowed, reason)
    }

    /// Remembers what was on the button. Returns it for the log.
    fn remember(&self, question: &Question, answer: &Answer) -> Option<String> {
        let span = match (answer, &question.session) {
            (Answer::Session, Some(session)) => {
                question.scopes.iter().for_each(|scope| self.memory.remember_for_session(session, scope));
                "session"
            }
            (Answer::Project | Answer::Never, _) => {
                for scope in &question.scopes {
                    if let Err(error) = self.memory.remember(&self.agent, *answer == Answer::Project, scope) {
                        self.audit.fail(format!("cannot remember an answer: {error}"));
                    }
                }
                "project"
            }
            _ => return None,
        };
        let scopes = question.scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        (!scopes.is_empty()).then(|| format!("{span}: {scopes}"))
    }

    /// The strictest decision about any of the effects, with its reason.
    fn weigh(&self, request: &Request) -> (Stance, Reason) {
        let each = request.effects.iter().map(|effect| self.weigh_effect(effect, request));
        let strictest = each.reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
        // A request without an effect cannot be judged.
        strictest.unwrap_or_else(|| (Stance::Ask, Reason::new(Source::Mode, "it states no effect")))
    }

    fn weigh_effect(&self, effect: &Effect, request: &Request) -> (Stance, Reason) {
        let mode = self.mode();
        let by_rule = |action: RuleAction, stance: Stance| {
            let rule = self.rules.find(action, effect, &request.labels, &self.roots)?;
            let text = format!("rule {}: {}", rule.place, rule.text);
            Some((stance, Reason { source: Source::Rule, rule: Some(rule.text), text }))
        };
        let remembered = self.memory.recall(&self.agent, effect);
        let by_memory = |allow: bool, stance: Stance| {
            let rule = remembered.as_ref().filter(|rule| rule.allow == allow)?;
            let text = format!("your rule {}: {}", rule.id, rule.scope.describe(self.base()));
            Some((stance, Reason::new(Source::Remembered, text)))
        };
        let by_session = || {
            let scope = self.memory.recall_for_session(request.session.as_ref()?, effect)?;
            let text = format!("your answer in this session: {}", scope.describe(self.base()));
            Some((Stance::Allow, Reason::new(Source::Session, text)))
        };
        let may_remember = mode != Mode::DENY_ALL && !effect.is_protected();
        let refusal = Stance::Deny("denied");
        // A line that is not understood may run anything, so only a person, or an answer about this
        // very line, can allow it.
        let unclear = matches!(effect, Effect::Run(run) if !run.command.is_clear() && run.confined != Confined::ReadOnly)
            && self.rules.restricts_commands();
        by_rule(RuleAction::Deny, refusal)
            .or_else(|| by_memory(false, refusal))
            .or_else(|| by_rule(RuleAction::Approve, Stance::Allow).filter(|_| !unclear))
            .or_else(|| by_rule(RuleAction::Ask, Stance::Ask))
            .or_else(|| by_session().filter(|_| may_remember))
            .or_else(|| by_memory(true, Stance::Allow).filter(|_| may_remember))
            .or_else(|| {
                self.by_default(effect, request).filter(|(stance, _)| !unclear || *stance != Stance::Allow)
            })
            .unwrap_or_else(|| match mode.stance(effect, request.direct, &self.roots) {
                Stance::Allow if unclear => (
                    Stance::Ask,
                    Reason::new(
                        Source::Rule,
                        "a rule restricts commands, and this one is not plain enough to check",
                    ),
                ),
                stance @ Stance::Deny(text) => (stance, Reason::new(Source::Mode, text)),
                Stance::Ask if effect.is_protected() => {
                    (Stance::Ask, Reason::new(Source::Mode, "no mode approves a change of a protected file"))
                }
                stance => (stance, Reason::new(Source::Mode, format!("mode {mode}"))),
            })
    }

    fn by_default(&self, effect: &Effect, request: &Request) -> Option<(Stance, Reason)> {
        // An agent that reads through this side could read without it; only rules that name the
        // file speak against that.
        if request.direct && matches!(effect, Effect::Read(_)) {
            return None;
        }
        let (stance, text) = match self.rules.default? {
            RuleAction::Approve => (Stance::Allow, "defaultAction approve"),
            RuleAction::Deny => (Stance::Deny("denied"), "defaultAction deny"),
            RuleAction::Ask => (Stance::Ask, "defaultAction escalate"),
        };
        let stance = if effect.is_protected() { stance.max(Stance::Ask) } else { stance };
        Some((stance, Reason::new(Source::Default, text)))
    }

    fn grants(&self) -> MutexGuard<'_, std::collections::HashMap<SessionId, Grants>> {
        self.grants.lock()
    }

    fn record(
        &self,
        request: &RequestPermissionRequest,
        claim: &Claim,
        decision: &Decision,
        remembered: Option<String>,
    ) {
        let (outcome, option) = match decision {
            Decision::Choose(selected) if selected.allows => (Outcome::Allowed, Some(&selected.option)),
            Decision::Choose(selected) => (Outcome::Denied, Some(&selected.option)),
            _ => (Outcome::Cancelled, None),
        };
        self.audit.write(&Entry {
            event: "permission",
            session: Some(&request.session_id),
            agent: &self.agent,
            tool_call: Some(request.tool_call.tool_call_id.as_str()),
            title: claim.title.as_deref(),
            effects: &claim.effects,
            outcome,
            option: option.map(PermissionOptionId::as_str),
            remembered,
            reason: decision.reason(),
            mask: &self.mask,
        });
    }

    /// Logs and counts a decision about effects that the agent did not ask a permission for.
    pub fn record_direct(
        &self,
        event: &'static str,
        session: Option<&SessionId>,
        effects: &[Effect],
        allowed: bool,
        reason: &Reason,
        remembered: Option<String>,
    ) {
        {
            let mut tally = self.direct.lock();
            let is_read = effects.iter().all(|effect| match effect {
                Effect::Read(_) => true,
                Effect::Run(run) => run.confined == Confined::ReadOnly,
                _ => false,
            });
            match allowed {
                true if is_read || reason.source == Source::Granted => {}
                true => tally.allowed += 1,
                false => tally.denied += 1,
            }
        }
        self.audit.write(&Entry {
            event,
            session,
            agent: &self.agent,
            tool_call: None,
            title: None,
            effects,
            outcome: if allowed { Outcome::Allowed } else { Outcome::Denied },
            option: None,
            remembered,
            reason,
            mask: &self.mask,
        });
    }
}

/// The first option of a kind.
fn offered(request: &RequestPermissionRequest, kind: PermissionOptionKind) -> Option<&PermissionOption> {
    request.options.iter().find(|option| option.kind == kind)
}

fn select(option: &PermissionOption, reason: Reason) -> Decision {
    Decision::Choose(Selected { option: option.option_id.clone(), allows: option.kind.allows(), reason })
}

fn refuse(request: &RequestPermissionRequest, reason: Reason) -> Decision {
    match offered(request, PermissionOptionKind::RejectOnce) {
        Some(option) => select(option, reason),
        None => Decision::Deny(reason),
    }
}
