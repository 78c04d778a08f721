//! Permission for the effects of a tool: from the policy, or from the user.

use attache::agent::Tool as Call;
use attache::wire::v1::{PermissionOption, PermissionOptionKind};
use attache_host::policy::{Answer, Choice, Effect, Question, Request, Verdict};
use serde_json::Value;

use crate::tools::Cx;

/// The result of a call that the user did not allow, for the model.
pub(super) const DENIED: &str = "the user did not allow this";

/// The decision about effects where no question is needed.
pub(crate) fn known(cx: &Cx, effects: &[Effect]) -> Option<bool> {
    let session = cx.turn.turn().session_id().clone();
    match cx.live.policy.judge(&Request::new(Some(session), effects.to_vec())) {
        Verdict::Allow(_) => Some(true),
        Verdict::Deny(_) => Some(false),
        Verdict::Ask(_) => None,
    }
}

/// PERM-13: nothing runs before the answer. The mode is looked at now, because the user may have switched it meanwhile.
pub(crate) async fn permit(cx: &Cx, report: Option<&Call>, effects: &[Effect]) -> Result<(), String> {
    if effects.is_empty() {
        return Ok(());
    }
    let policy = &cx.live.policy;
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
            return Err(reason.text);
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
    choice.map_err(|error| error.to_string())?;
    // PERM-09, PERM-10
    if allowed { Ok(()) } else { Err(DENIED.to_owned()) }
}

/// The ids of the options.
const ONCE: &str = "allow";
const SESSION: &str = "allow-session";
const PROJECT: &str = "allow-project";
const REJECT: &str = "reject";

/// PERM-03: the options, each with the scope that it has.
fn options(cx: &Cx, question: &Question) -> Vec<PermissionOption> {
    // Attaché's own client offers the longer answers itself, keeps them where the user can revoke them, and would show each twice.
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

/// Whether the client is Attaché's, which asks about trust and remembers answers by itself.
pub(super) fn is_own_client(cx: &Cx) -> bool {
    let turn = cx.turn.turn();
    let own: Option<Value> = turn.client().capabilities().meta.as_ref().and_then(|meta| meta.get("attache"));
    own.is_some_and(|own| own.get("permissions") == Some(&Value::Bool(true)))
}

fn answer(choice: &attache::agent::Choice) -> Answer {
    // PERM-14: the scope is the one that stood on the option.
    match choice.option().map(|option| option.option_id.as_str()) {
        Some(ONCE) => Answer::Once,
        Some(SESSION) => Answer::Session,
        Some(PROJECT) => Answer::Project,
        _ => Answer::Reject,
    }
}
