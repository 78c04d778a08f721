//! The sentences that rules come from.
//!
//! `sources.jsonl` holds one line per checked rule:
//!
//! - `id`;
//! - `quotes`: the sentences, each with its document and place. `cargo xtask sources` compares them
//!   with the documents;
//! - `asked`: the answer to the question whether a careful maintainer could say that the
//!   specification does not ask for it;
//! - `cause`: what is usually wrong in a peer that breaks the rule.

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
            (line.id, Sources { quotes, asked: line.asked, cause: line.cause })
        };
        lines.map(sources).collect()
    });
    ALL.get(id).unwrap_or(&NONE)
}
