//! Permission requests.

use super::Client;
use super::wire::{Answer, bad_params, failure};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A question that waits for the user.
pub(crate) struct Question {
    session: String,
    decided: oneshot::Sender<Decision>,
}

#[derive(Clone, Copy)]
enum Decision {
    Allow,
    Cancelled,
}

pub(super) async fn ask(client: &Client, id: &Value, params: &Value) -> Answer {
    let session = params.get("sessionId").and_then(Value::as_str);
    let options = params.get("options").and_then(Value::as_array);
    let call = match client.speaks_2() {
        true => super::v2::subject(client, params),
        false => params.pointer("/toolCall/toolCallId").and_then(Value::as_str),
    };
    let (Some(session), Some(options), Some(_)) = (session, options, call) else {
        // RPC-13: invalid params are refused as such.
        if client.is("RPC-13") && params.get("title").is_none() && client.speaks_2() {
            return Err(failure(-32603, "something is missing"));
        }
        return Err(bad_params("sessionId, toolCall and options are needed"));
    };
    // PERM-12: several questions may be open.
    if client.is("PERM-12") && call == Some("call-2") {
        return Err(super::wire::Failure::Silence);
    }
    // PERM-05, PERM-06: only the user decides, possibly in advance (PERM-07).
    let undecided = ["ask", "cancel"].contains(&client.setup.act.as_str())
        && !client.is("PERM-05")
        && !client.is("PERM-06");
    let decision = match undecided {
        false => Decision::Allow,
        true => {
            let withdrawn = client.serve(id);
            let (decided, decision) = oneshot::channel();
            client.state().questions.push(Question { session: session.to_owned(), decided });
            tokio::select! {
                decision = decision => match decision {
                    Ok(decision) => decision,
                    Err(_) if client.is("CANCEL-03/second") => std::future::pending().await,
                    Err(_) => Decision::Cancelled,
                },
                () = withdrawn.notified() => Decision::Cancelled,
            }
        }
    };
    match decision {
        Decision::Cancelled if client.is("CANCEL-16") => Err(super::wire::Failure::Silence),
        Decision::Cancelled if client.is("CANCEL-22") => Err(failure(-32800, "the turn was cancelled")),
        Decision::Cancelled if client.is("CANCEL-03/error") => Err(failure(-32603, "the dialog was closed")),
        Decision::Cancelled if client.is("PERM-08") || client.is("V2-43") => Ok(selected(client, options)),
        Decision::Cancelled if client.is("PERM-08/rejects") => {
            let reject = options
                .iter()
                .find(|option| option["kind"].as_str().is_some_and(|kind| kind.starts_with("reject")));
            let id = reject.map(|option| option["optionId"].clone()).unwrap_or_default();
            Ok(json!({ "outcome": { "outcome": "selected", "optionId": id } }))
        }
        Decision::Cancelled => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        Decision::Allow => Ok(selected(client, options)),
    }
}

/// PERM-04, PERM-11: one of the options that were offered, by its id.
fn selected(client: &Client, options: &[Value]) -> Value {
    let kind = |option: &&Value| option.get("kind").is_some_and(|kind| kind == "allow_once");
    let option = options.iter().find(kind).or(options.first());
    let of = |name: &str| option.and_then(|option| option.get(name)).cloned().unwrap_or_default();
    let id = match client.setup.variant.as_deref() {
        Some("PERM-04") => json!("allow-everything"),
        Some("PERM-11") => of("kind"),
        _ => of("optionId"),
    };
    json!({ "outcome": { "outcome": "selected", "optionId": id } })
}

impl Client {
    /// CANCEL-03, PERM-08: open questions of a cancelled turn are answered.
    pub(super) fn cancel_questions(&self, session: &str) {
        if self.is("CANCEL-03") {
            return;
        }
        if self.is("CANCEL-03/second") {
            // Only the question that is shown.
            self.state().questions.truncate(1);
        }
        self.decide(Decision::Cancelled, |question| question == session);
    }

    /// The user allows the open questions.
    pub(super) fn allow_questions(&self) {
        self.decide(Decision::Allow, |_| true);
    }

    fn decide(&self, decision: Decision, of: impl Fn(&str) -> bool) {
        let questions = std::mem::take(&mut self.state().questions);
        for question in questions {
            if of(&question.session) {
                let _ = question.decided.send(decision);
            } else {
                self.state().questions.push(question);
            }
        }
    }
}
