//! The sentences that rules come from.
//!
//! `sources.jsonl` holds one line per checked rule:
//!
//! - `id`;
//! - `quotes`: the sentences, each with its document and place. `cargo xtask sources` compares them
//!   with the documents;
//! - `asked`: the answer to the question whether a careful maintainer could say that the
//!   specification does not ask for it;
//! - `cause`: what is usually wrong in a peer that breaks the rule; that of its section if absent.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The documents, each with the address of its revision.
const DOCUMENTS: [(&str, &str); 5] = [
    (
        "acp",
        "https://github.com/agentclientprotocol/agent-client-protocol/blob/b7f0005493b98de32fabee3e9540e2b64da68535/",
    ),
    (
        "schema",
        "https://github.com/agentclientprotocol/agent-client-protocol/blob/b7f0005493b98de32fabee3e9540e2b64da68535/schema/v1/schema.json#",
    ),
    ("crate", "https://docs.rs/crate/agent-client-protocol-schema/1.15.1/source/"),
    ("jsonrpc", "https://www.jsonrpc.org/specification"),
    ("rfc6455", "https://www.rfc-editor.org/rfc/rfc6455#"),
];

/// The usual causes of failures, by section. Rules whose cause is another one name it themselves.
const CAUSES: [(&str, &str); 34] = [
    ("RPC", "messages are built by hand instead of by one function for requests, results and errors"),
    ("STDIO", "something else than the protocol library writes to the stream or reads from it"),
    (
        "HTTP",
        "the server routes by path alone and does not look at method, headers and ids of the connection",
    ),
    ("WS", "the WebSocket library is used with its defaults, and frames other than text are not thought of"),
    ("INIT", "the answer to `initialize` is written once and not compared with what the program does"),
    (
        "AUTH",
        "the login was added for one method, and the announced ids and capabilities were not kept in step",
    ),
    (
        "SESS",
        "sessions are opened without a look at what the other side announced, or their state is kept in one global place",
    ),
    ("ROOT", "the list of roots is taken as it comes, or only the working directory is looked at"),
    ("MCP", "the list of MCP servers is handed on as it comes"),
    (
        "LIST",
        "the list is taken from storage as it is, or a page is requested without the cursor of the one before",
    ),
    ("DEL", "the session is only hidden, or the capability is not looked at"),
    ("FORK", "the session is shared with its source instead of copied"),
    ("SSTAT", "the state of a session is read from storage, and running work is not considered"),
    ("PROMPT", "blocks of a prompt are handed to the model, or sent, without a look at the capabilities"),
    ("MSG", "message ids come from the model, whose chunks do not have one each"),
    ("CANCEL", "the turn is aborted by an exception that is not turned into a stop reason"),
    ("CONT", "content is built from what the model or an MCP server returns, member by member"),
    ("TOOL", "tool calls are reported as the model or the SDK names them, without a translation"),
    ("PERM", "the question is shown as a dialog of the program, whose answers are mapped to other options"),
    ("FS", "paths and ranges go to the file system as they come"),
    ("TERM", "terminals follow the process library: what it does at exit, kill and release is passed on"),
    ("PLAN", "only the changed entries are sent, or the plan of the model is passed on"),
    ("CMD", "names of commands are sent as the user types them"),
    ("MODE", "the mode is kept in two places that are not kept in step"),
    (
        "CONF",
        "one option is answered where the whole list is asked for, or values are those of the model provider",
    ),
    ("ELIC", "the form is that of an MCP server, passed on without a look at what this protocol allows"),
    ("EXT", "own members and methods were added under plain names"),
    ("NOTE", "updates of drafts are sent to every client, without a look at its capabilities"),
    ("PROV", "the provider is taken from the settings, and requests only change a copy"),
    (
        "NES",
        "positions and documents are kept as the editor sends them, without a look at the negotiated encoding",
    ),
    ("MCPA", "messages of MCP are tunnelled without their connection and request ids"),
    ("SUBA", "work of a child is reported under the session of its parent"),
    ("SYSP", "the system prompt is put into the conversation like a message of the user"),
    (
        "V2",
        "the code of version 1 answers, with other names only; version 2 has other states and ends of a turn",
    ),
];

/// The revision of the specification's text that the sentences are taken from.
pub fn revision() -> &'static str {
    DOCUMENTS[0].1.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A sentence of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The address of the document, with its revision.
    pub url: String,
    /// The sentence, or the part of it that is meant. Of a schema: the members that it requires.
    pub text: String,
}

/// The sources of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The sentences that it comes from. A rule without one is never a MUST that counts.
    pub quotes: Vec<Quote>,
    /// Whether the specification asks for it, in words.
    pub asked: String,
    /// The usual cause of a failure.
    pub cause: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    quotes: Vec<SourceQuote>,
    asked: String,
    cause: Option<String>,
}

#[derive(Deserialize)]
struct SourceQuote {
    doc: String,
    path: String,
    text: String,
}

impl SourceQuote {
    fn quote(self) -> Option<Quote> {
        let (_, base) = DOCUMENTS.iter().find(|(name, _)| *name == self.doc)?;
        // JSON-RPC is one page.
        let path = if self.path == "-" { "" } else { &self.path };
        Some(Quote { url: format!("{base}{path}"), text: self.text })
    }
}

/// The sources of the rule with this id; empty for an unknown one.
pub(crate) fn of(id: &str) -> &'static Sources {
    static NONE: LazyLock<Sources> = LazyLock::new(Sources::default);
    static ALL: LazyLock<HashMap<String, Sources>> = LazyLock::new(|| {
        let lines = include_str!("../sources.jsonl").lines();
        let lines = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let sources = |line: Line| {
            let quotes = line.quotes.into_iter().filter_map(SourceQuote::quote).collect();
            let cause = line.cause.or_else(|| cause_of_section(&line.id));
            (line.id, Sources { quotes, asked: line.asked, cause })
        };
        lines.map(sources).collect()
    });
    ALL.get(id).unwrap_or(&NONE)
}

fn cause_of_section(id: &str) -> Option<String> {
    let section = id.split('-').next()?;
    CAUSES.iter().find(|(known, _)| *known == section).map(|(_, cause)| (*cause).to_owned())
}
