//! Elicitations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Request, Watcher};
use super::{is_one_of, is_text, text};
use crate::Role;

// ELIC-04, ELIC-05, ELIC-10, ELIC-15, ELIC-21, ELIC-24, ELIC-26, ELIC-27, ELIC-31
#[derive(Default)]
pub(super) struct Elicitations {
    /// URL elicitations that were asked for and are not known to be over.
    open: BTreeSet<String>,
    /// All of this connection.
    asked: BTreeSet<String>,
}

const PROPERTIES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];
/// Words that name what belongs into no form.
const SECRETS: [&str; 8] = [
    "password",
    "passphrase",
    "api key",
    "api_key",
    "apikey",
    "access token",
    "private key",
    "client_secret",
];
/// Query members that carry a right with them.
const CREDENTIALS: [&str; 6] = ["password", "access_token", "api_key", "apikey", "client_secret", "email"];

impl Watcher for Elicitations {
    fn rules(&self) -> &'static [&'static str] {
        &["ELIC-04", "ELIC-05", "ELIC-10", "ELIC-15", "ELIC-21", "ELIC-24", "ELIC-26", "ELIC-27", "ELIC-31"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((asked, outcome)) = log.response(message) {
            if asked.method == "elicitation/create" {
                self.answered(asked, outcome);
            }
            return;
        }
        let is_request = message.id().is_some();
        match message.call(Role::Agent) {
            Some(("elicitation/create", params)) if is_request => {
                question(message, params, out);
                if params["mode"] == "url" {
                    self.page(message, params, out);
                }
            }
            Some(("elicitation/complete", params)) if !is_request => {
                let id = text(&params["elicitationId"]);
                out.check("ELIC-24", message, self.asked.contains(id), || {
                    format!("no elicitation {id:?} was asked for")
                });
                self.open.remove(id);
            }
            _ => {}
        }
    }
}

impl Elicitations {
    /// Accepted is not over; everything else is.
    fn answered(&mut self, asked: &Request, outcome: Result<&Value, &Value>) {
        let accepted = outcome.is_ok_and(|result| result["action"] == "accept");
        if !accepted {
            self.open.remove(asked.params["elicitationId"].as_str().unwrap_or_default());
        }
    }

    fn page(&mut self, message: &Message, params: &Value, out: &mut Findings) {
        let id = params["elicitationId"].as_str().unwrap_or_default();
        out.check("ELIC-21", message, !id.is_empty() && self.open.insert(id.to_owned()), || {
            format!("the elicitation id {id:?} is missing or still open")
        });
        self.asked.insert(id.to_owned());
        let url = params["url"].as_str().unwrap_or_default();
        let found = credentials(url);
        out.check("ELIC-26", message, found.is_none(), || {
            format!("the URL carries {}", found.unwrap_or_default())
        });
        let local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| url.contains(host));
        out.check("ELIC-27", message, url.starts_with("https://") || local, || format!("{url} is not https"));
    }
}

fn credentials(url: &str) -> Option<&'static str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Some("a user name or password");
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query).to_lowercase();
    let named = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        CREDENTIALS.into_iter().find(|name| *name == key && !value.is_empty())
    };
    query.split(['&', '#']).find_map(named)
}

fn question(message: &Message, params: &Value, out: &mut Findings) {
    out.check("ELIC-04", message, is_text(&params["mode"]), || "`mode` is missing".to_owned());
    let scoped = params["sessionId"].is_string() || params.get("requestId").is_some();
    out.check("ELIC-05", message, scoped, || "neither `sessionId` nor `requestId` is given".to_owned());
    let prose = text(&params["message"]);
    out.check("ELIC-31", message, !prose.contains("://"), || "`message` holds a URL".to_owned());
    if params["mode"] != "form" {
        if params["mode"] == "url" {
            out.pass("ELIC-15", message);
        }
        return;
    }
    let schema = &params["requestedSchema"];
    let object = schema["type"].is_null() || schema["type"] == "object";
    out.check("ELIC-10", message, object, || "the schema is not of type object".to_owned());
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = &property["type"];
        let extension = kind.as_str().is_some_and(|kind| kind.starts_with('_'));
        out.check("ELIC-10", message, is_one_of(kind, &PROPERTIES) || extension, || {
            format!("the property {name:?} is of type {kind}")
        });
        let words = format!("{name} {}", property["title"].as_str().unwrap_or_default()).to_lowercase();
        let secret = SECRETS.into_iter().find(|secret| words.contains(secret));
        if let Some(secret) = secret {
            out.fail("ELIC-15", message, format!("a form asks for a {secret}"));
        }
    }
}
