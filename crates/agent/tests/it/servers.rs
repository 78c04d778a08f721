//! MCP servers that a client brings along.

use std::sync::Arc;

use attache::client::{Client, Event, Session};
use attache::wire::v1::{
    EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio, PermissionOptionKind,
};
use attache_agent::{Mode, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use crate::models_server::{Server, Step};
use crate::rig::{Project, Seen, allow, connect, run};

fn program() -> String {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/mcp_server");
    assert!(path.exists(), "build it first: cargo build -p attache-agent --example mcp_server");
    path.display().to_string()
}

fn stdio(env: Vec<EnvVariable>) -> McpServer {
    McpServerStdio::new("hand", program(), Vec::<String>::new(), env).into()
}

/// A session with this server and a script that calls one of its tools.
async fn session(project: &Project, client: Client, server: McpServer, call: &str, mode: Mode) -> Session {
    let script = format!("== when \"go\"\n--\ncall {call}\n--\nsay done\n");
    let options = Options { mode: Some(mode), ..project.script(&script) };
    connect(client, options).await.new_session(project.path()).mcp_server(server).await.unwrap()
}

async fn call(server: McpServer, call: &str) -> Seen {
    let project = Project::new();
    let mut session = session(&project, Client::new(), server, call, Mode::Code).await;
    allow(&mut session, "go").await
}

#[tokio::test]
async fn a_tool_of_a_server_is_called_with_permission() {
    // shows MCP-02, MCP-05
    let seen = call(stdio(vec![]), r#"hand_echo {"text": "hello server"}"#).await;
    assert_eq!(seen.titles_asked(), ["hand: echo"]);
    assert!(seen.contents().contains("hello server"), "{}", seen.contents());
    assert_eq!(seen.states().last().unwrap(), "hand: echo: completed");
    assert_eq!(seen.text, "done");
}

#[tokio::test]
async fn annotations_of_a_server_grant_nothing() {
    let project = Project::new();
    let mut session =
        session(&project, Client::new(), stdio(vec![]), r#"hand_echo {"text": "x"}"#, Mode::Code).await;
    let seen = run(&mut session, "go", PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.states().last().unwrap(), "hand: echo: failed");
    assert!(!seen.contents().contains("\"x\"}]"), "{}", seen.contents());
    // Although it calls itself read-only, it is not there in a mode that only reads.
    let mut session =
        self::session(&project, Client::new(), stdio(vec![]), r#"hand_echo {"text": "x"}"#, Mode::Plan).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.asked.is_empty());
}

#[tokio::test]
async fn pictures_failures_and_resources_come_through() {
    let seen = call(stdio(vec![]), "hand_picture {}").await;
    assert!(seen.contents().contains(r#""mimeType":"image/png""#), "{}", seen.contents());
    let seen = call(stdio(vec![]), "hand_fail {}").await;
    assert_eq!(seen.states().last().unwrap(), "hand: fail: failed");
    assert!(seen.contents().contains("it went wrong"));
    let seen = call(stdio(vec![]), r#"hand_resources {"uri": "mem://one"}"#).await;
    assert!(seen.contents().contains("what is in one"), "{}", seen.contents());
}

#[tokio::test]
async fn a_server_gets_the_variables_it_is_given() {
    let seen = call(stdio(vec![]), "hand_key {}").await;
    assert!(seen.contents().contains("no key here"), "{}", seen.contents());
    let seen = call(stdio(vec![EnvVariable::new("TEST_API_KEY", "for you")]), "hand_key {}").await;
    assert!(seen.contents().contains("for you"), "{}", seen.contents());
}

#[tokio::test]
async fn a_dead_server_is_reported_and_restarted() {
    let project = Project::new();
    let script = "== when \"die\"\n--\ncall hand_die {}\n--\nsay went on\n== when \"echo\"\n--\ncall hand_echo {\"text\": \"back again\"}\n--\nsay done\n";
    let options = Options { mode: Some(Mode::Code), ..project.script(script) };
    let mut session = connect(Client::new(), options)
        .await
        .new_session(project.path())
        .mcp_server(stdio(vec![]))
        .await
        .unwrap();
    let seen = allow(&mut session, "die").await;
    assert_eq!(seen.text, "went on");
    assert!(
        seen.contents().contains("it has ended") || seen.states().last().unwrap().ends_with("failed"),
        "{seen:#?}"
    );
    let seen = allow(&mut session, "echo").await;
    assert!(seen.contents().contains("back again"), "{seen:#?}");
}

#[tokio::test]
async fn a_server_that_cannot_be_started_does_not_stop_the_session() {
    let project = Project::new();
    let missing = McpServerStdio::new("gone", "/no/such/program", Vec::<String>::new(), Vec::new());
    let mut session =
        session(&project, Client::new(), missing.into(), r#"list {"path": "."}"#, Mode::Code).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("gone cannot be used") && seen.text.ends_with("done"), "{}", seen.text);
}

#[tokio::test]
async fn a_question_of_a_server_reaches_the_user() {
    let project = Project::new();
    let client = Client::new().elicitation_forms();
    let mut session = session(&project, client, stdio(vec![]), "hand_ask {}", Mode::Code).await;
    let mut turn = session.prompt("go").await.unwrap();
    let mut contents = String::new();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::Permission(ask) => ask.choose_kind(PermissionOptionKind::AllowOnce),
            Event::Elicitation(ask) => {
                assert_eq!(ask.message(), "MCP server `hand` asks:\n> Who are you?");
                ask.decline();
            }
            Event::ToolCall(change) => {
                contents.push_str(&serde_json::to_string(&change.update.content).unwrap())
            }
            _ => {}
        }
    }
    assert!(contents.contains("decline"), "{contents}");
}

/// What a server answers to a message, whatever carries it.
fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "serverInfo": { "name": "web", "version": "1" }, "capabilities": { "tools": {} },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] })
        }
        _ => {
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

#[tokio::test]
async fn a_server_behind_http_is_reached_with_its_headers() {
    // shows MCP-03
    let server = Server::answering(|seen| {
        let reply = match answer(&seen.body) {
            _ if seen.head.starts_with("GET") => "HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            Some(body) => {
                let body = body.to_string();
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: abc\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
            }
        };
        vec![Step::Send(reply.into_bytes())]
    })
    .await;
    let wanted =
        McpServerHttp::new("web", format!("{}/mcp", server.url), vec![HttpHeader::new("x-token", "t0ken")]);
    let seen = call(wanted.into(), r#"web_echo {"text": "over http"}"#).await;
    assert!(seen.contents().contains("over http"), "{seen:#?}");
    let requests = server.seen();
    assert!(requests.iter().all(|request| request.header("x-token") == Some("t0ken")));
    assert!(requests.iter().any(|request| request.header("mcp-session-id") == Some("abc")));
}

#[tokio::test]
async fn a_server_behind_events_is_reached() {
    // shows MCP-03
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let events: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (head, body) = request(&mut stream).await;
            if head.starts_with("GET") {
                let hello = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /post\n\n";
                stream.write_all(hello.as_bytes()).await.unwrap();
                *events.lock().await = Some(stream);
                continue;
            }
            if let (Some(answer), Some(events)) = (answer(&body), events.lock().await.as_mut()) {
                events.write_all(format!("event: message\ndata: {answer}\n\n").as_bytes()).await.unwrap();
            }
            stream
                .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await
                .unwrap();
        }
    });
    let seen =
        call(McpServerSse::new("web", url, Vec::new()).into(), r#"web_echo {"text": "by events"}"#).await;
    assert!(seen.contents().contains("by events"), "{seen:#?}");
}

async fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    let end = loop {
        bytes.push(stream.read_u8().await.unwrap());
        if bytes.ends_with(b"\r\n\r\n") {
            break bytes.len();
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), serde_json::from_slice(&body).unwrap_or_default())
}
