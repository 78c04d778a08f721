//! Questions of MCP servers to the user, while one of their tools runs.

use std::sync::Arc;

use attache::agent::DetachedTurn;
use attache::wire::v1::{CreateElicitationResponse, ElicitationSchema};
use parking_lot::Mutex;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Map, Value, json};

use super::limits::{FORM_BYTES, FORM_FIELDS, QUESTION_BYTES, QUESTION_ID_BYTES, QUESTIONS, URL_BYTES};
use crate::text::clip;

/// The running calls of a server's tools, whose turns can ask the user.
#[derive(Default)]
pub(super) struct ActiveCalls(Mutex<Vec<Call>>);

/// A call of a server's tool.
struct Call {
    turn: DetachedTurn,
    /// The questions so far.
    questions: usize,
}

impl ActiveCalls {
    /// Sends questions to this turn until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, turn: DetachedTurn) -> ActiveCall {
        self.calls().push(Call { turn, questions: 0 });
        ActiveCall(self.clone())
    }

    /// The turn for one more question, if it is allowed.
    fn turn(&self) -> Option<DetachedTurn> {
        let mut calls = self.calls();
        let call = calls.last_mut().filter(|call| call.questions < QUESTIONS)?;
        call.questions += 1;
        Some(call.turn.clone())
    }

    fn calls(&self) -> parking_lot::MutexGuard<'_, Vec<Call>> {
        self.0.lock()
    }
}

/// See [`ActiveCalls::enter`].
pub(super) struct ActiveCall(Arc<ActiveCalls>);

impl Drop for ActiveCall {
    fn drop(&mut self) {
        self.0.calls().pop();
    }
}

/// Our side of the connection to a server.
pub(super) struct McpClient {
    server: String,
    calls: Arc<ActiveCalls>,
}

impl McpClient {
    /// `server` is the name that the user knows.
    pub(super) fn new(server: &str, calls: Arc<ActiveCalls>) -> Self {
        McpClient { server: server.to_owned(), calls }
    }

    /// A question as the user sees it. Every line of the server's text is quoted, so that none can
    /// pass for ours.
    fn question(&self, text: &str) -> String {
        let name: String = self.server.chars().filter(|char| !char.is_control() && *char != '`').collect();
        let (text, cut) = clip(text, QUESTION_BYTES);
        let lines = text.split(|char| {
            matches!(char, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
        });
        let quoted: Vec<String> = lines.map(|line| format!("> {line}")).collect();
        let more = if cut { " …" } else { "" };
        format!("MCP server `{}` asks:\n{}{more}", clip(&name, 64).0, quoted.join("\n"))
    }
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let capabilities =
            serde_json::from_value(json!({ "elicitation": { "form": {}, "url": {} } })).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("attache-agent", env!("CARGO_PKG_VERSION")))
    }

    /// Passes the question on to the user, unless the client has no forms, no turn runs, or one
    /// call asks too often.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(turn) = self.calls.turn() else { return Ok(ElicitResult::new(ElicitationAction::Cancel)) };
        let turn = turn.turn();
        let answer = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                match turn.forms() {
                    Some(forms) => forms.ask(self.question(&message), schema(&requested_schema)?).await,
                    None => return Ok(ElicitResult::new(ElicitationAction::Decline)),
                }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => {
                if url.len() > URL_BYTES || elicitation_id.len() > QUESTION_ID_BYTES {
                    return Err(ErrorData::invalid_params("the URL or the id is too long", None));
                }
                match turn.links() {
                    Some(links) => links.ask(self.question(&message), elicitation_id, url).await,
                    None => return Ok(ElicitResult::new(ElicitationAction::Decline)),
                }
            }
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        Ok(answer.map_or_else(|_| ElicitResult::new(ElicitationAction::Cancel), result))
    }
}

/// Both protocols describe forms by the same restricted JSON Schema.
fn schema(schema: &impl serde::Serialize) -> Result<ElicitationSchema, ErrorData> {
    let refuse = |why: String| Err(ErrorData::invalid_params(why, None));
    let value = match serde_json::to_value(schema) {
        Ok(value) => value,
        Err(error) => return refuse(format!("the form cannot be shown: {error}")),
    };
    let fields = value.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    if fields > FORM_FIELDS {
        return refuse(format!("the form has {fields} fields, more than {FORM_FIELDS}"));
    }
    if value.to_string().len() > FORM_BYTES {
        return refuse(format!("the form is larger than {} KiB", FORM_BYTES >> 10));
    }
    let value = serde_json::from_value(value);
    value.map_err(|error| ErrorData::invalid_params(format!("the form cannot be shown: {error}"), None))
}

fn result(answer: CreateElicitationResponse) -> ElicitResult {
    let value = serde_json::to_value(&answer).unwrap_or_default();
    match value["action"].as_str() {
        Some("accept") => {
            let content =
                value.get("content").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            ElicitResult::new(ElicitationAction::Accept).with_content(content)
        }
        Some("decline") => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}
