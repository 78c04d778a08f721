//! Extensions, providers, next-edit suggestions, MCP over ACP.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, ClientHandle, DocumentEvent, NextEdits, OpenRequest, Providers};
use attache::wire::v1::*;
use attache::{Error, Json, Notification, Request, Result, StopReason};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent_rig::{Rig, agent, echo, prompt};

type Log = Arc<Mutex<Vec<String>>>;

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// Types of an extension, without a derive.
macro_rules! extension {
    ($name:ident) => {
        struct $name(Json);
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Json::deserialize(deserializer)?;
                if value.parse::<Value>().is_ok_and(|value| value["bad"] == true) {
                    return Err(serde::de::Error::custom("bad"));
                }
                Ok($name(value))
            }
        }
    };
}

extension!(Ask);
impl Request for Ask {
    const METHOD: &'static str = "_acme/ask";
    type Response = Json;
}

extension!(Report);
impl Notification for Report {
    const METHOD: &'static str = "_acme/report";
}

// Takes the name of a message of the protocol.
extension!(Usurper);
impl Notification for Usurper {
    const METHOD: &'static str = "session/cancel";
}

fn extended(log: &Log) -> Agent {
    let sink = log.clone();
    agent(|turn, _| {
        Box::pin(async move {
            let answer = turn.client().request(&Ask(Json::new(&json!({"q": 1})).unwrap())).await?;
            turn.client().notify(&Report(answer)).await?;
            turn.until_cancelled(std::future::pending::<()>()).await?;
            Ok(StopReason::EndTurn)
        })
    })
    .on_request(|ask: Ask, client: ClientHandle| async move {
        let ask: Value = ask.0.parse()?;
        match ask["do"].as_str() {
            Some("fail") => Err(Error::refuse(-31000, "no")),
            Some("wait") => std::future::pending().await,
            Some("call back") => client.request(&Ask(Json::new(&json!({"back": true}))?)).await,
            Some("panic") => panic!("in an extension"),
            _ => Ok(Json::new(&json!({"asked": ask}))?),
        }
    })
    .on_notification(move |report: Report, _: &ClientHandle| {
        let report: Value = report.0.parse().unwrap();
        assert!(report["panic"].is_null(), "in an extension");
        sink.lock().unwrap().push(report.to_string());
    })
    .on_notification(|_: Usurper, _: &ClientHandle| panic!("never called"))
}

#[tokio::test(start_paused = true)]
async fn extensions_are_served() {
    // shows EXT-05, EXT-06, EXT-07, EXT-08, RPC-04, RPC-12, RPC-24
    let log = Log::default();
    let mut rig = Rig::open(extended(&log), json!({})).await;
    assert_eq!(rig.call("e", "_acme/ask", json!({"x": [1, null]})).await, json!({"asked": {"x": [1, null]}}));
    assert_eq!(
        rig.call("e", "_acme/ask", json!([1])).await,
        json!({"asked": [1]}),
        "an extension takes any params"
    );
    rig.expect_error("_acme/ask", json!({"bad": true}), -32602).await;
    rig.expect_error("_acme/ask", json!({"do": "fail"}), -31000).await;
    rig.expect_error("_acme/ask", json!({"do": "panic"}), -32603).await;
    rig.expect_error("_acme/other", json!({}), -32601).await;
    rig.expect_error("acme/ask", json!({}), -32601).await;

    for (method, params) in [
        ("_acme/report", json!({"n": 1})),
        ("_acme/report", json!({"bad": true})),
        ("_acme/report", json!({"panic": true})),
        ("_acme/other", json!({})),
        ("zz/n", json!({})),
        ("$/foo", json!({})),
        ("session/new", json!({})),
        ("_acme/report", json!({"n": 2})),
    ] {
        rig.client.notify(method, params).await;
    }
    rig.assert_responsive().await;
    assert_eq!(taken(&log), [r#"{"n":1}"#, r#"{"n":2}"#], "in the order of the wire");

    // a handler that waits blocks no other, and can be cancelled
    rig.client.request("w", "_acme/ask", json!({"do": "wait"})).await;
    rig.client.request("b", "_acme/ask", json!({"do": "call back"})).await;
    let back = rig.client.expect("_acme/ask").await;
    assert_eq!(back["params"], json!({"back": true}));
    rig.client.answer(&back, json!("yes")).await;
    assert_eq!(rig.client.result("b").await, json!("yes"));
    rig.client.notify("$/cancel_request", json!({"requestId": "w"})).await;
    rig.client.error("w", -32800).await;
}

#[tokio::test(start_paused = true)]
async fn extensions_are_called_and_cannot_replace_protocol_methods() {
    // shows EXT-05, EXT-06
    let log = Log::default();
    let mut rig = Rig::open(extended(&log), json!({})).await;
    rig.prompt("p", "s1", "").await;
    let ask = rig.client.expect("_acme/ask").await;
    assert_eq!(ask["params"], json!({"q": 1}));
    rig.client.answer(&ask, json!({"a": 2})).await;
    assert_eq!(rig.client.expect("_acme/report").await["params"], json!({"a": 2}));
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn meta_and_unknown_members_do_no_harm() {
    // shows EXT-01, EXT-03, EXT-04, EXT-11, EXT-12
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let log = seen.clone();
    let inner = crate::agent_rig::acts(|turn, prompt| {
        Box::pin(async move {
            // shows EXT-10
            let trace: Option<String> = turn.meta().and_then(|meta| meta.get("traceparent"));
            turn.say(if trace.is_some() { "traced".to_owned() } else { prompt.text().into_owned() }).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let agent = Agent::new(move |request: OpenRequest| {
        log.lock().unwrap().push(request.meta.is_some());
        let opened = attache::agent::OpenedSession::new(inner.clone()).id("s1");
        async { Ok(opened) }
    });
    let metas = [
        (json!({"traceparent": "00-1-2-01", "x": [1, {"y": null}]}), true),
        (json!({}), true),
        (json!(null), false),
        (json!(5), false),
        (json!("x"), false),
    ];
    let mut rig = Rig::initialized(agent, json!({"_meta": {"x": 1}, "zz": 1})).await;
    for (meta, kept) in &metas {
        let params = json!({"cwd": "/", "mcpServers": [], "_meta": meta, "zz": {"deep": [1]}});
        rig.call("n", "session/new", params).await;
        assert_eq!(seen.lock().unwrap().pop(), Some(*kept), "{meta}");
        let mut params = prompt("s1", "x");
        params["_meta"] = meta.clone();
        params["prompt"][0]["_meta"] = meta.clone();
        params["zz"] = json!(1);
        rig.client.request("p", "session/prompt", params).await;
        rig.expect_text("s1", if meta["traceparent"].is_string() { "traced" } else { "x" }).await;
        rig.expect_end("p", "end_turn").await;
        rig.client.notify("session/cancel", json!({"sessionId": "s1", "_meta": meta, "zz": 1})).await;
    }
    rig.assert_responsive().await;
}

struct Routes(Log);

impl Providers for Routes {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        let current = ProviderCurrentConfig::new(LlmProtocol::Anthropic, "https://a");
        Ok(vec![
            ProviderInfo::new("main", vec![LlmProtocol::Anthropic], true).current(current),
            ProviderInfo::new("spare", vec![LlmProtocol::OpenAi, LlmProtocol::Other("_x".to_owned())], false),
        ])
    }

    async fn set(&self, request: SetProviderRequest) -> Result<()> {
        let headers = request.headers.len();
        self.0.lock().unwrap().push(format!("set {} {} {headers}", request.provider_id, request.api_type));
        Ok(())
    }

    async fn disable(&self, id: ProviderId) -> Result<()> {
        self.0.lock().unwrap().push(format!("disable {id}"));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn providers_are_checked_before_the_author_is_asked() {
    // shows PROV-01, PROV-03, PROV-04, PROV-05, PROV-06, PROV-07, PROV-08, PROV-09, PROV-10,
    // PROV-12, RPC-21
    let log = Log::default();
    let mut rig = Rig::initialized(echo().providers(Routes(log.clone())), json!({})).await;
    assert_eq!(rig.hello["agentCapabilities"]["providers"], json!({}));
    let list = rig.call("l", "providers/list", Value::Null).await;
    assert_eq!(
        list["providers"],
        json!([
            {"providerId": "main", "supported": ["anthropic"], "required": true, "current": {"apiType": "anthropic", "baseUrl": "https://a"}},
            {"providerId": "spare", "supported": ["openai", "_x"], "required": false},
        ])
    );
    let set =
        |id: &str, protocol: &str| json!({"providerId": id, "apiType": protocol, "baseUrl": "https://b"});
    assert_eq!(rig.call("s", "providers/set", set("spare", "openai")).await, json!({}));
    rig.call("s", "providers/set", set("spare", "_x")).await;
    let old = json!({"id": "main", "apiType": "anthropic", "baseUrl": "https://b", "headers": {"k": "v"}});
    rig.call("s", "providers/set", old).await;
    for (id, protocol) in [("ghost", "openai"), ("main", "openai"), ("spare", "_y")] {
        rig.expect_error("providers/set", set(id, protocol), -32602).await;
    }
    rig.expect_error("providers/set", json!({"providerId": "main"}), -32602).await;
    rig.expect_error("providers/disable", json!({"providerId": "main"}), -32602).await;
    rig.call("d", "providers/disable", json!({"providerId": "spare"})).await;
    rig.call("d", "providers/disable", json!({"id": "spare"})).await;
    assert_eq!(rig.call("d", "providers/disable", json!({"providerId": "ghost"})).await, json!({}));
    let expected =
        ["set spare openai 0", "set spare _x 0", "set main anthropic 1", "disable spare", "disable spare"];
    assert_eq!(taken(&log), expected);
}

struct Edits {
    log: Log,
    go: Arc<Notify>,
}

impl Edits {
    fn note(&self, what: impl std::fmt::Display) {
        self.log.lock().unwrap().push(what.to_string());
    }
}

impl NextEdits for Edits {
    fn capabilities(&self) -> NesCapabilities {
        let document = NesDocumentEventCapabilities::new().did_open(NesDocumentDidOpenCapabilities::new());
        NesCapabilities::new().events(NesEventCapabilities::new().document(document))
    }

    fn encodings(&self) -> &[PositionEncodingKind] {
        &[PositionEncodingKind::Utf8, PositionEncodingKind::Utf32]
    }

    async fn start(&self, _: &SessionId, request: StartNesRequest, _: ClientHandle) -> Result<()> {
        self.note(format_args!("start {:?}", request.workspace_uri));
        Ok(())
    }

    async fn suggest(&self, request: SuggestNesRequest) -> Result<Vec<NesSuggestion>> {
        if request.uri == "file:///wait" {
            self.go.notified().await;
        }
        let at = Position::new(0_u32, 0_u32);
        Ok(vec![
            NesEditSuggestion::new("1", request.uri.clone(), Vec::new()).into(),
            NesJumpSuggestion::new("2", request.uri.clone(), at.clone()).into(),
            NesRenameSuggestion::new("3", request.uri.clone(), at, "x").into(),
            NesSearchAndReplaceSuggestion::new("4", request.uri, "a", "b").into(),
        ])
    }

    fn document(&self, event: DocumentEvent) {
        self.note(match event {
            DocumentEvent::Opened(_) => "opened",
            DocumentEvent::Changed(_) => "changed",
            DocumentEvent::Closed(_) => "closed document",
            DocumentEvent::Saved(_) => "saved",
            DocumentEvent::Focused(_) => "focused",
            _ => "?",
        });
    }

    fn accepted(&self, accepted: AcceptNesNotification) {
        self.note(format_args!("accepted {}", accepted.id));
    }

    fn rejected(&self, rejected: RejectNesNotification) {
        self.note(format_args!("rejected {}", rejected.id));
    }

    fn closed(&self, _: &SessionId) {
        self.note("closed");
    }
}

fn suggest(session: &str, uri: &str, version: i64) -> Value {
    json!({"sessionId": session, "uri": uri, "version": version, "position": {"line": 0, "character": 0}, "triggerKind": "manual"})
}

/// An agent with suggestions.
pub(crate) fn suggesting() -> Agent {
    echo().next_edits(Edits { log: Log::default(), go: Arc::new(Notify::new()) })
}

async fn editor(capabilities: Value) -> (Rig, Log, String) {
    let log = Log::default();
    let agent = echo().next_edits(Edits { log: log.clone(), go: Arc::new(Notify::new()) });
    let mut rig = Rig::initialized(agent, capabilities).await;
    let started = rig.call("n", "nes/start", json!({"workspaceUri": "file:///w"})).await;
    assert_eq!(taken(&log), [r#"start Some("file:///w")"#]);
    (rig, log, started["sessionId"].as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn unsupported_kinds_of_suggestions_are_removed() {
    // shows NES-01, NES-04, NES-05, NES-06, NES-10, NES-19
    let kinds = |answer: Value| -> Vec<String> {
        let list = answer["suggestions"].as_array().unwrap().clone();
        list.iter().map(|suggestion| suggestion["kind"].as_str().unwrap().to_owned()).collect()
    };
    let (mut rig, log, id) = editor(json!({})).await;
    assert_eq!(rig.hello["agentCapabilities"]["nes"], json!({"events": {"document": {"didOpen": {}}}}));
    assert_eq!(rig.hello["agentCapabilities"]["positionEncoding"], "utf-16");
    assert_eq!(kinds(rig.call("s", "nes/suggest", suggest(&id, "file:///a", 1)).await), ["edit"]);
    rig.expect_error("session/prompt", prompt(&id, "x"), -32002).await;
    rig.client.raw(r#"{"jsonrpc":"2.0","id":1,"method":"nes/start"}"#).await;
    assert_ne!(rig.client.result(1).await["sessionId"], id.as_str());
    assert_eq!(taken(&log), ["start None"]);

    let all = json!({"nes": {"jump": {}, "rename": {}, "searchAndReplace": {}}, "positionEncodings": ["utf-32", "utf-16"]});
    let (mut rig, _, id) = editor(all).await;
    assert_eq!(rig.hello["agentCapabilities"]["positionEncoding"], "utf-32");
    let all = kinds(rig.call("s", "nes/suggest", suggest(&id, "file:///a", 1)).await);
    assert_eq!(all, ["edit", "jump", "rename", "searchAndReplace"]);
}

#[tokio::test(start_paused = true)]
async fn documents_are_followed() {
    // shows NES-16, NES-20
    let (mut rig, log, id) = editor(json!({})).await;
    let uri = "file:///a";
    let at = json!({"line": 0, "character": 0});
    let events = |id: &str| {
        [
            (
                "document/didOpen",
                json!({"sessionId": id, "uri": uri, "languageId": "rust", "version": 1, "text": ""}),
            ),
            (
                "document/didChange",
                json!({"sessionId": id, "uri": uri, "version": 5, "contentChanges": [{"text": "x"}]}),
            ),
            ("document/didSave", json!({"sessionId": id, "uri": uri})),
            (
                "document/didFocus",
                json!({"sessionId": id, "uri": uri, "version": 5, "position": at, "visibleRange": {"start": at, "end": at}}),
            ),
            ("nes/accept", json!({"sessionId": id, "id": "1"})),
            ("nes/reject", json!({"sessionId": id, "id": "2", "reason": "ignored"})),
        ]
    };
    for (method, params) in events(&id).into_iter().chain(events("ghost")) {
        rig.client.notify(method, params).await;
        rig.client.notify(method, json!({"sessionId": id})).await; // cannot be read, is dropped
    }
    rig.assert_responsive().await;
    assert_eq!(taken(&log), ["opened", "changed", "saved", "focused", "accepted 1", "rejected 2"]);

    assert_eq!(rig.call("s", "nes/suggest", suggest(&id, uri, 4)).await, json!({"suggestions": []}));
    for version in [5, 6] {
        let list = rig.call("s", "nes/suggest", suggest(&id, uri, version)).await;
        assert_eq!(list["suggestions"].as_array().unwrap().len(), 1);
    }
    rig.client.notify("document/didClose", json!({"sessionId": id, "uri": uri})).await;
    let list = rig.call("s", "nes/suggest", suggest(&id, uri, 1)).await;
    assert_eq!(list["suggestions"].as_array().unwrap().len(), 1);
    rig.expect_error("nes/suggest", suggest("ghost", uri, 1), -32002).await;
    rig.expect_error("nes/close", json!({"sessionId": "ghost"}), -32002).await;
}

#[tokio::test(start_paused = true)]
async fn closing_cancels_suggestions() {
    // shows NES-08
    let (mut rig, log, id) = editor(json!({})).await;
    rig.client.request("s", "nes/suggest", suggest(&id, "file:///wait", 1)).await;
    rig.client.request("c", "nes/close", json!({"sessionId": id})).await;
    let mut lines = [rig.client.line().await, rig.client.line().await];
    lines.sort_by_key(|line| line["id"].to_string());
    assert_eq!(lines[0]["result"], json!({}));
    assert_eq!(lines[1]["error"]["code"], -32800);
    assert_eq!(taken(&log), ["closed"]);
    rig.expect_error("nes/suggest", suggest(&id, "file:///a", 1), -32002).await;
    // and so does the end of the connection
    rig.call("n", "nes/start", json!({})).await;
    rig.disconnect().await;
    assert_eq!(taken(&log), ["start None", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn mcp_over_acp_is_a_request_like_any_other() {
    // shows MCPA-04, MCPA-05, MCPA-06
    let log = Log::default();
    let notes = log.clone();
    let agent = agent(|turn, _| {
        Box::pin(async move {
            let request = MessageMcpRequest::new("server", "r1", "tools/list");
            let answer = turn.client().request(&request).await?;
            turn.say(serde_json::to_string(&answer)?).await?;
            Ok(StopReason::EndTurn)
        })
    })
    .mcp_over_acp()
    .on_notification(move |note: MessageMcpNotification, _: &ClientHandle| {
        notes.lock().unwrap().push(note.method);
    });
    let mut rig = Rig::open(agent, json!({})).await;
    rig.prompt("p", "s1", "").await;
    let request = rig.client.expect("mcp/message").await;
    assert_eq!(request["params"], json!({"serverId": "server", "requestId": "r1", "method": "tools/list"}));
    let note = json!({"serverId": "server", "requestId": "r1", "method": "notifications/progress"});
    rig.client.notify("mcp/message", note).await;
    rig.client.answer(&request, json!({"result": {"tools": []}})).await;
    rig.expect_text("s1", r#"{"result":{"tools":[]}}"#).await;
    rig.expect_end("p", "end_turn").await;
    assert_eq!(taken(&log), ["notifications/progress"]);
}
