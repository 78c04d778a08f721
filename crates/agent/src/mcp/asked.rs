//! What an MCP server may ask of us: the user, while one of its tools runs.

use std::sync::{Arc, Mutex, PoisonError};

use attache::agent::DetachedTurn;
use attache::wire::v1::{CreateElicitationResponse, ElicitationSchema};
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Value, json};

/// The turn in which a server's tool runs, if one does: without it there is nobody to ask.
#[derive(Default)]
pub(super) struct Place(Mutex<Vec<DetachedTurn>>);

impl Place {
    /// From here until the guard is gone, questions go to this turn.
    pub(super) fn enter(self: &Arc<Self>, turn: DetachedTurn) -> Inside {
        self.turns().push(turn);
        Inside(self.clone())
    }

    fn turn(&self) -> Option<DetachedTurn> {
        self.turns().last().cloned()
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, Vec<DetachedTurn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Place::enter`].
pub(super) struct Inside(Arc<Place>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.turns().pop();
    }
}

/// Answers a server.
pub(super) struct Asked {
    pub(super) place: Arc<Place>,
    /// The name of the server in the settings, which it cannot choose itself.
    pub(super) server: String,
}

impl Asked {
    /// Returns the question with the name of the server before it.
    fn message(&self, message: &str) -> String {
        format!("MCP server `{}` asks: {message}", self.server)
    }
}

impl ClientHandler for Asked {
    fn get_info(&self) -> ClientConfig {
        let capabilities =
            serde_json::from_value(json!({ "elicitation": { "form": {}, "url": {} } })).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("attache-agent", env!("CARGO_PKG_VERSION")))
    }

    /// Passed on to the user under the name of the server. A client that has no forms, or no running turn, means that the user cannot be asked.
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
                    Some(forms) => forms.ask(self.message(&message), schema(&requested_schema)?).await,
                    None => return Ok(ElicitResult::new(ElicitationAction::Decline)),
                }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => {
                match turn.links() {
                    Some(links) => links.ask(self.message(&message), elicitation_id, url).await,
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
    let value = serde_json::to_value(schema).and_then(serde_json::from_value);
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
