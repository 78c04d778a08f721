//! What an MCP server may ask of us: the user, while one of its tools runs.

use std::sync::{Arc, Mutex, PoisonError};

use attache::agent::DetachedTurn;
use attache::wire::v1::{CreateElicitationResponse, ElicitationSchema};
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Map, Value, json};

use super::limits::{FORM_BYTES, FORM_FIELDS, QUESTION_BYTES, QUESTION_ID_BYTES, QUESTIONS, URL_BYTES};
use crate::tools::clip;

/// The turn in which a server's tool runs, if one does: without it there is nobody to ask.
#[derive(Default)]
pub(super) struct Place(Mutex<Vec<Call>>);

/// A call of a server's tool.
struct Call {
    turn: DetachedTurn,
    /// How many questions were asked during it.
    questions: usize,
}

impl Place {
    /// From here until the guard is gone, questions go to this turn.
    pub(super) fn enter(self: &Arc<Self>, turn: DetachedTurn) -> Inside {
        self.calls().push(Call { turn, questions: 0 });
        Inside(self.clone())
    }

    /// The turn in which one more question may be asked.
    fn turn(&self) -> Option<DetachedTurn> {
        let mut calls = self.calls();
        let call = calls.last_mut().filter(|call| call.questions < QUESTIONS)?;
        call.questions += 1;
        Some(call.turn.clone())
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Place::enter`].
pub(super) struct Inside(Arc<Place>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.calls().pop();
    }
}

/// Answers a server.
pub(super) struct Asked {
    server: String,
    place: Arc<Place>,
}

impl Asked {
    /// `server` is the name by which the user knows it.
    pub(super) fn new(server: &str, place: Arc<Place>) -> Self {
        Asked { server: server.to_owned(), place }
    }

    /// A question as the user sees it: who asks comes first, and every line of the server's own text is quoted, so that none
    /// of them can look like a line of ours.
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

impl ClientHandler for Asked {
    fn get_info(&self) -> ClientConfig {
        let capabilities =
            serde_json::from_value(json!({ "elicitation": { "form": {}, "url": {} } })).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("attache-agent", env!("CARGO_PKG_VERSION")))
    }

    /// Passed on to the user, with the name of the server. A client that has no forms, or no running turn, means that the user
    /// cannot be asked; neither can they too often during one call.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(turn) = self.place.turn() else { return Ok(ElicitResult::new(ElicitationAction::Cancel)) };
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
                    return Err(ErrorData::invalid_params("the address or the id is too long", None));
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
