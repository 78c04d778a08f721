//! What a client serves: files, terminals, extensions, suggestions.

use std::sync::{Arc, Mutex};

use attache::client::{Client, Event, RequestContext, SuggestionPoint, Terminal, Terminals};
use attache::wire::v1::{
    CreateTerminalRequest, McpError, MessageMcpRequest, MessageMcpResponse, NesRejectReason,
    NesSuggestContext, NesTriggerKind, Position, Range, ReadTextFileRequest, StartNesRequest,
    TerminalExitStatus, TerminalId, TerminalOutputResponse, TextDocumentContentChangeEvent,
    TextDocumentSyncKind, WriteTextFileRequest,
};
use attache::{CancelToken, Error, Notification, Request, Result};
use serde_json::{Value, json};

use crate::script::{connect, open};

#[tokio::test(start_paused = true)]
async fn files_are_read_and_written() {
    // shows FS-04, FS-05, FS-07, FS-12, FS-13, FS-14, ROOT-04, ROOT-05
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = written.clone();
    let client = Client::new()
        .read_files(|cx: RequestContext, request: ReadTextFileRequest| async move {
            assert_eq!(cx.session_id().unwrap(), &"s1");
            assert_eq!(cx.cwd().unwrap(), std::path::Path::new("/work"));
            match &*request.path {
                "/work/missing" => Err(Error::not_found("no such file")),
                "/work/broken" => Err(Error::internal("disk on fire at /dev/sda")),
                _ => Ok(format!("{:?} {:?}", request.line, request.limit)),
            }
        })
        .write_files(move |_: RequestContext, request: WriteTextFileRequest| {
            sink.lock().unwrap().push((request.path, request.content));
            async { Ok(()) }
        });
    let (_session, mut agent) = open(client).await;
    let read = |path: &str| json!({"sessionId": "s1", "path": path, "line": 0, "limit": 2});
    agent.request(1, "fs/read_text_file", read("/work/a")).await;
    assert_eq!(agent.result(1).await, json!({"content": "Some(1) Some(2)"}));
    agent.request(2, "fs/read_text_file", read("relative")).await;
    agent.error(2, -32602).await;
    agent.request(3, "fs/read_text_file", read("/work/missing")).await;
    agent.error(3, -32002).await;
    agent.request(4, "fs/read_text_file", read("/work/broken")).await;
    let error = agent.error(4, -32603).await;
    assert!(!error.to_string().contains("sda"), "internal detail was sent: {error}");
    agent.request(5, "fs/read_text_file", json!({"path": "/work/a"})).await;
    agent.error(5, -32602).await;
    agent.request(6, "fs/read_text_file", json!({"sessionId": "ghost", "path": "/work/a"})).await;
    assert_eq!(agent.error(6, -32002).await["data"], json!({"sessionId": "ghost"}));
    agent
        .request(7, "fs/write_text_file", json!({"sessionId": "s1", "path": "/work/a", "content": "x\r\n"}))
        .await;
    assert_eq!(agent.result(7).await, json!({}));
    agent.request(8, "fs/write_text_file", json!({"sessionId": "s1", "path": "a", "content": "x"})).await;
    agent.error(8, -32602).await;
    assert_eq!(*written.lock().unwrap(), [("/work/a".to_owned(), "x\r\n".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn services_that_are_not_installed_are_unknown_methods() {
    // shows FS-03, TERM-03, RPC-12, EXT-07, EXT-08
    let (_session, mut agent) = open(Client::new()).await;
    let methods = [
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
        "elicitation/create",
        "mcp/message",
        "mcp/connect",
        "proxy/successor",
        "_acme/x",
        "session/new",
    ];
    for (id, method) in methods.into_iter().enumerate() {
        agent.request(id, method, json!({"sessionId": "s1"})).await;
        agent.error(id, -32601).await;
        agent.notify(method, json!({})).await;
    }
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_stops_nothing_and_can_be_cancelled() {
    // shows CANCEL-15, CANCEL-16
    let gate = CancelToken::new();
    let open_gate = gate.clone();
    let client = Client::new().read_files(move |_, request: ReadTextFileRequest| {
        let gate = gate.clone();
        async move {
            if request.path == "/work/slow" {
                gate.cancelled().await;
            }
            Ok(request.path)
        }
    });
    let (mut session, mut agent) = open(client).await;
    let read = |path: &str| json!({"sessionId": "s1", "path": path});
    for id in [1, 2] {
        agent.request(id, "fs/read_text_file", read("/work/slow")).await;
    }
    agent.request(3, "fs/read_text_file", read("/work/fast")).await;
    assert_eq!(agent.result(3).await["content"], "/work/fast");
    agent.notify("$/cancel_request", json!({"requestId": 1})).await;
    agent.error(1, -32800).await;
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    turn.finish().await.unwrap();
    open_gate.cancel();
    assert_eq!(agent.result(2).await["content"], "/work/slow");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_answers() {
    let client = Client::new().read_files(|_, request: ReadTextFileRequest| async move {
        assert!(request.path != "/work/bad", "deliberate");
        Ok(String::new())
    });
    let (_session, mut agent) = open(client).await;
    agent.request(1, "fs/read_text_file", json!({"sessionId": "s1", "path": "/work/bad"})).await;
    agent.error(1, -32603).await;
    agent.request(2, "fs/read_text_file", json!({"sessionId": "s1", "path": "/work/good"})).await;
    agent.result(2).await;
}

/// Terminals that run nothing and remember everything.
#[derive(Clone, Default)]
struct Fake {
    log: Arc<Mutex<Vec<String>>>,
    exit: CancelToken,
}

impl Terminals for Fake {
    type Terminal = Fake;
    async fn create(&self, _: RequestContext, request: CreateTerminalRequest) -> Result<Fake> {
        if request.command == "nonexistent" {
            return Err(Error::invalid_params("cannot start `nonexistent`"));
        }
        self.log.lock().unwrap().push(format!("create {}", request.command));
        Ok(Fake { log: self.log.clone(), exit: CancelToken::new() })
    }
}

impl Terminal for Fake {
    async fn output(&self) -> Result<TerminalOutputResponse> {
        let status = self.exit.is_cancelled().then(|| TerminalExitStatus::new().signal("SIGKILL".to_owned()));
        Ok(TerminalOutputResponse::new("out", false).exit_status(status))
    }
    async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        self.exit.cancelled().await;
        Ok(TerminalExitStatus::new().signal("SIGKILL".to_owned()))
    }
    async fn kill(&self) -> Result<()> {
        self.exit.cancel();
        self.log.lock().unwrap().push("kill".to_owned());
        Ok(())
    }
    async fn release(&self) -> Result<()> {
        self.exit.cancel();
        self.log.lock().unwrap().push("release".to_owned());
        Ok(())
    }
}

/// A terminal that wants to know what the agent calls it.
struct Named(Fake);

impl Terminals for Named {
    type Terminal = Named;
    async fn create(&self, cx: RequestContext, request: CreateTerminalRequest) -> Result<Named> {
        self.0.create(cx, request).await.map(Named)
    }
}

impl Terminal for Named {
    async fn output(&self) -> Result<TerminalOutputResponse> {
        self.0.output().await
    }
    async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        self.0.wait_for_exit().await
    }
    async fn kill(&self) -> Result<()> {
        self.0.kill().await
    }
    async fn release(&self) -> Result<()> {
        self.0.release().await
    }
    fn named(&self, id: &TerminalId) {
        self.0.log.lock().unwrap().push(id.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_gets_its_id_before_the_agent_does() {
    // shows TOOL-16
    let fake = Fake::default();
    let (_session, mut agent) = open(Client::new().terminals(Named(fake.clone()))).await;
    agent.request(1, "terminal/create", json!({"sessionId": "s1", "command": "sleep"})).await;
    let id = agent.result(1).await["terminalId"].as_str().unwrap().to_owned();
    assert_eq!(*fake.log.lock().unwrap(), ["create sleep".to_owned(), id]);
}

#[tokio::test(start_paused = true)]
async fn terminals_live_from_create_to_release() {
    // shows TERM-04, TERM-08, TERM-09, TERM-10, TERM-11, TERM-13, TERM-17, TERM-18, TERM-21
    let fake = Fake::default();
    let (session, mut agent) = open(Client::new().terminals(fake.clone())).await;
    agent.request(1, "terminal/create", json!({"sessionId": "s1", "command": "sleep", "args": ["5"]})).await;
    let id = agent.result(1).await["terminalId"].clone();
    agent.request(2, "terminal/create", json!({"sessionId": "s1", "command": "nonexistent"})).await;
    agent.error(2, -32602).await;
    agent.request(3, "terminal/create", json!({"sessionId": "s1", "command": "ls", "cwd": "rel"})).await;
    agent.error(3, -32602).await;
    let this = || json!({"sessionId": "s1", "terminalId": id});
    agent.request(4, "terminal/output", this()).await;
    assert_eq!(agent.result(4).await, json!({"output": "out", "truncated": false}));
    for wait in [5, 6] {
        agent.request(wait, "terminal/wait_for_exit", this()).await;
    }
    agent.request(7, "terminal/kill", this()).await;
    let mut answers: Vec<Value> = vec![agent.line().await, agent.line().await, agent.line().await];
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers[0]["result"], json!({"signal": "SIGKILL"}));
    assert_eq!(answers[1]["result"], json!({"signal": "SIGKILL"}));
    assert_eq!(answers[2]["result"], json!({}));
    agent.request(8, "terminal/output", this()).await;
    assert_eq!(agent.result(8).await["exitStatus"], json!({"signal": "SIGKILL"}));
    agent.request(9, "terminal/release", this()).await;
    assert_eq!(agent.result(9).await, json!({}));
    for (id, method) in ["output", "wait_for_exit", "kill", "release"].iter().enumerate() {
        agent.request(id, &format!("terminal/{method}"), this()).await;
        agent.error(id, -32002).await;
    }
    assert_eq!(*fake.log.lock().unwrap(), ["create sleep", "kill", "release"]);
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn terminals_die_with_their_session_and_with_the_connection() {
    // shows TERM-20
    let fake = Fake::default();
    let (handle, mut agent) = connect(Client::new().terminals(fake.clone()), json!({})).await;
    let (one, _) = tokio::join!(handle.new_session("/work"), agent.new_session("one"));
    let (two, _) = tokio::join!(handle.new_session("/work"), agent.new_session("two"));
    for (number, session) in ["one", "two"].into_iter().enumerate() {
        agent.request(number, "terminal/create", json!({"sessionId": session, "command": session})).await;
        agent.result(number).await;
    }
    // a terminal of one session is none of another
    agent.request(5, "terminal/create", json!({"sessionId": "two", "command": "x"})).await;
    let id = agent.result(5).await["terminalId"].clone();
    agent.request(6, "terminal/output", json!({"sessionId": "one", "terminalId": id})).await;
    agent.error(6, -32002).await;
    drop(one.unwrap());
    agent.expect_silence().await;
    assert_eq!(fake.log.lock().unwrap().iter().filter(|line| *line == "release").count(), 1);
    drop(agent);
    handle.closed().await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(fake.log.lock().unwrap().iter().filter(|line| *line == "release").count(), 3);
    drop(two);
}

/// A number that an extension sends and gets back.
#[derive(Debug, PartialEq)]
struct Reindex(u32);

impl serde::Serialize for Reindex {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("depth", self.0)])
    }
}

impl<'de> serde::Deserialize<'de> for Reindex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = std::collections::BTreeMap::<String, u32>::deserialize(deserializer)?;
        members.remove("depth").map(Reindex).ok_or_else(|| serde::de::Error::missing_field("depth"))
    }
}

impl Request for Reindex {
    const METHOD: &'static str = "_acme.dev/reindex";
    type Response = u32;
}

impl Notification for Reindex {
    const METHOD: &'static str = "_acme.dev/reindexed";
}

#[tokio::test(start_paused = true)]
async fn extensions_go_both_ways() {
    // shows EXT-05, EXT-06, EXT-07, RPC-13
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = received.clone();
    let client = Client::new()
        .on_request(|request: Reindex, cx: RequestContext| async move {
            assert!(cx.agent().is_some() && cx.session_id().is_none());
            Ok(request.0 * 2)
        })
        .on_notification(move |notification: Reindex, agent| {
            assert!(agent.is_some());
            sink.lock().unwrap().push(notification.0);
        });
    let (handle, mut agent) = connect(client, json!({})).await;
    for depth in 0..100 {
        agent.notify("_acme.dev/reindexed", json!({"depth": depth})).await;
    }
    agent.notify("_acme.dev/reindexed", json!({"deep": 1})).await;
    agent.request("a", "_acme.dev/reindex", json!({"depth": 21})).await;
    assert_eq!(agent.result("a").await, 42);
    assert_eq!(*received.lock().unwrap(), (0..100).collect::<Vec<_>>());
    agent.request("b", "_acme.dev/reindex", json!({"deep": 21})).await;
    agent.error("b", -32602).await;
    let (answer, ()) = tokio::join!(handle.request(&Reindex(1)), async {
        let request = agent.expect("_acme.dev/reindex").await;
        agent.answer(&request, json!(7)).await;
    });
    assert_eq!(answer.unwrap(), 7);
    handle.notify(&Reindex(3)).await.unwrap();
    assert_eq!(agent.expect("_acme.dev/reindexed").await["params"], json!({"depth": 3}));
    // a request whose caller is gone is cancelled
    tokio::select! {
        _ = handle.request(&Reindex(1)) => panic!(),
        request = agent.expect("_acme.dev/reindex") => {
            assert_eq!(request["params"]["depth"], 1);
        }
    }
    agent.expect("$/cancel_request").await;
}

#[tokio::test(start_paused = true)]
async fn an_mcp_server_through_the_connection() {
    // shows MCP-12, MCPA-04, MCPA-05
    let client = Client::new().on_request(|request: MessageMcpRequest, _: RequestContext| async move {
        match (request.server_id.as_str(), &*request.method) {
            ("mine", "tools/list") => Ok(MessageMcpResponse::result(json!({"tools": []}))),
            ("mine", _) => Ok(MessageMcpResponse::error(McpError::new(-32601, "no such method"))),
            _ => Err(Error::invalid_params("no such server")),
        }
    });
    let (_session, mut agent) = open(client).await;
    let message =
        |server: &str, method: &str| json!({"serverId": server, "requestId": "r", "method": method});
    agent.request(1, "mcp/message", message("mine", "tools/list")).await;
    assert_eq!(agent.result(1).await, json!({"result": {"tools": []}}));
    agent.request(2, "mcp/message", message("mine", "x")).await;
    assert_eq!(agent.result(2).await["error"]["code"], -32601);
    agent.request(3, "mcp/message", message("ghost", "x")).await;
    agent.error(3, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_ends_nothing() {
    let client = Client::new()
        .on_noise(|_, _| panic!("deliberate"))
        .on_notification(|_: Reindex, _| panic!("deliberate"))
        .on_request(|_: Reindex, _: RequestContext| -> std::future::Ready<Result<u32>> {
            panic!("deliberate")
        });
    let (_session, mut agent) = open(client).await;
    agent.raw("noise").await;
    agent.notify("_acme.dev/reindexed", json!({"depth": 1})).await;
    agent.request(1, "_acme.dev/reindex", json!({"depth": 1})).await;
    agent.error(1, -32603).await;
}

#[tokio::test(start_paused = true)]
async fn suggestions_and_documents() {
    // shows NES-01, NES-02, NES-03, NES-11, NES-13, NES-18
    let capabilities = json!({"nes": {
        "events": {"document": {"didOpen": {}, "didChange": {"syncKind": "full"}}},
        "context": {"diagnostics": {}, "recentFiles": {"maxCount": 1}},
    }});
    let (handle, mut agent) = connect(Client::new(), capabilities).await;
    let nes = handle.nes().unwrap();
    assert_eq!(nes.position_encoding().as_str(), "utf-16");
    let (session, ()) = tokio::join!(nes.start(StartNesRequest::new()), async {
        let request = agent.expect("nes/start").await;
        agent.answer(&request, json!({"sessionId": "n"})).await;
    });
    let session = session.unwrap();
    assert_eq!(session.sync_kind(), Some(TextDocumentSyncKind::Full));
    session.did_open("file:///a", "rust", 1, "text").await.unwrap();
    agent.expect("document/didOpen").await;
    let change = TextDocumentContentChangeEvent::new("x")
        .range(Range::new(Position::new(0u32, 0u32), Position::new(0u32, 1u32)));
    session.did_change("file:///a", 2, vec![change], || "whole".to_owned()).await.unwrap();
    assert_eq!(
        agent.expect("document/didChange").await["params"]["contentChanges"],
        json!([{"text": "whole"}])
    );
    // not asked for, not sent
    session.did_save("file:///a").await.unwrap();
    session.did_close("file:///a").await.unwrap();
    let spot = Range::new(Position::new(0u32, 0u32), Position::new(1u32, 0u32));
    session.did_focus("file:///a", 2, Position::new(0u32, 0u32), spot).await.unwrap();
    agent.expect_silence().await;

    let mut context = NesSuggestContext::new();
    context.open_files = Some(Vec::new());
    context.diagnostics = Some(Vec::new());
    context.recent_files = serde_json::from_value(json!([
        {"uri": "file:///a", "languageId": "rust", "text": ""},
        {"uri": "file:///b", "languageId": "rust", "text": ""},
    ]))
    .unwrap();
    let spot = SuggestionPoint {
        uri: "file:///a".into(),
        version: 2,
        position: Position::new(0u32, 0u32),
        selection: None,
        trigger: NesTriggerKind::Manual,
    };
    let (suggestions, request) = tokio::join!(session.suggest(spot, context), async {
        let request = agent.expect("nes/suggest").await;
        let edit =
            json!({"kind": "jump", "id": "j", "uri": "file:///b", "position": {"line": 0, "character": 0}});
        agent.answer(&request, json!({"suggestions": [edit]})).await;
        request
    });
    assert_eq!(suggestions.unwrap().len(), 1);
    let context = &request["params"]["context"];
    assert!(context.get("openFiles").is_none() && context.get("diagnostics").is_some());
    assert_eq!(context["recentFiles"].as_array().unwrap().len(), 1);
    session.accept("j").await.unwrap();
    assert_eq!(agent.expect("nes/accept").await["params"], json!({"sessionId": "n", "id": "j"}));
    session.reject("j", NesRejectReason::Replaced).await.unwrap();
    assert_eq!(agent.expect("nes/reject").await["params"]["reason"], "replaced");
    let (closed, ()) = tokio::join!(session.close(), async {
        let request = agent.expect("nes/close").await;
        agent.answer(&request, json!({})).await;
    });
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn notices_and_compactions_are_events() {
    // shows NOTE-03, NOTE-05, NOTE-09, NOTE-11
    let (mut session, mut agent) = open(Client::new().notices().compaction()).await;
    agent.update("s1", json!({"sessionUpdate": "notice", "severity": "_odd", "title": "t"})).await;
    agent
        .update(
            "s1",
            json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}),
        )
        .await;
    let chunk = json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": {"type": "text", "text": "x"}});
    agent.update("s1", chunk).await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Notice(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::Compaction(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::CompactionSummary(_)));
}
