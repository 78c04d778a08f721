//! Permission for the effects of a tool, from the policy or from the user.

use attache::agent::Tool as Call;
use attache::wire::v1::{PermissionOption, PermissionOptionKind};
use attache_host::policy::{Answer, Choice, Effect, Question, Request, Verdict};
use serde::Deserialize;

use super::{Result, ToolContext, ToolError};

/// The decision about effects, if the policy makes it without a question.
pub(super) fn decided(cx: &ToolContext, effects: &[Effect]) -> Option<bool> {
    let session = cx.turn.turn().session_id().clone();
    match cx.session.policy.judge(&Request::new(Some(session), effects.to_vec())) {
        Verdict::Allow(_) => Some(true),
        Verdict::Deny(_) => Some(false),
        Verdict::Ask(_) => None,
    }
}

/// Asks the policy, and the user if the policy says so. Nothing runs before the answer.
/// The mode is read now, because the user may have switched it during the turn.
// PERM-13
pub(crate) async fn request(cx: &ToolContext, report: Option<&Call>, effects: &[Effect]) -> Result<()> {
    if effects.is_empty() {
        return Ok(());
    }
    let policy = &cx.session.policy;
    let session = cx.turn.turn().session_id().clone();
    let question = match policy.judge(&Request::new(Some(session.clone()), effects.to_vec())) {
        Verdict::Allow(reason) => {
            if !effects.iter().all(|effect| matches!(effect, Effect::Read(_))) {
                policy.record_direct("tool", Some(&session), effects, true, &reason, None);
            }
            return Ok(());
        }
        Verdict::Deny(reason) => {
            policy.record_direct("tool", Some(&session), effects, false, &reason, None);
            return Err(reason.text.into());
        }
        Verdict::Ask(question) => question,
    };
    // A call that is not reported cannot be asked about.
    let report = report.ok_or("this needs a permission that cannot be asked for")?;
    let choice = cx.turn.turn().ask(report, options(cx, &question)).await;
    let answer = match &choice {
        Ok(choice) => answer(choice),
        Err(_) => Answer::Unanswered,
    };
    let (allowed, _) = policy.settle("tool", &question, &answer);
    choice?;
    // PERM-09, PERM-10, PERM-15
    if allowed { Ok(()) } else { Err(ToolError::Denied) }
}

/// The ids of the options.
const ONCE: &str = "allow";
const SESSION: &str = "allow-session";
const PROJECT: &str = "allow-project";
const REJECT: &str = "reject";

/// The options, each with the scope that it has.
// PERM-03, PERM-16
fn options(cx: &ToolContext, question: &Question) -> Vec<PermissionOption> {
    // Attaché's own client offers the longer answers itself and stores them where the user can
    // revoke them.
    let remembers = is_own_client(cx);
    let option = |choice: &Choice| {
        let (id, kind) = match choice.answer {
            Answer::Once => (ONCE, PermissionOptionKind::AllowOnce),
            Answer::Session if !remembers => (SESSION, PermissionOptionKind::AllowAlways),
            Answer::Project if !remembers => (PROJECT, PermissionOptionKind::AllowAlways),
            Answer::Reject => (REJECT, PermissionOptionKind::RejectOnce),
            _ => return None,
        };
        Some(PermissionOption::new(id, choice.label.clone(), kind))
    };
    question.choices.iter().filter_map(option).collect()
}

/// The `_meta.attache` of our own client.
#[derive(Deserialize)]
struct OwnClient {
    permissions: bool,
}

/// Whether the client is Attaché's, which asks about trust and remembers answers itself.
pub(crate) fn is_own_client(cx: &ToolContext) -> bool {
    let turn = cx.turn.turn();
    let own = turn.client().capabilities().meta.as_ref().and_then(|meta| meta.get::<OwnClient>("attache"));
    own.is_some_and(|own| own.permissions)
}

fn answer(choice: &attache::agent::Choice) -> Answer {
    // PERM-14: the scope is the one that the option showed.
    match choice.option().map(|option| option.option_id.as_str()) {
        Some(ONCE) => Answer::Once,
        Some(SESSION) => Answer::Session,
        Some(PROJECT) => Answer::Project,
        _ => Answer::Reject,
    }
}
