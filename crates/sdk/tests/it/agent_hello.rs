//! The first words: versions, capabilities, logging in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::agent::{Agent, AgentSession, Auth, ClientHandle, Turn};
use attache::wire::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodEnvVar, AuthMethodId, AuthMethodTerminal, AuthState,
    AuthStatusResponse, ListSessionsResponse, SessionStatus,
};
use attache::{Error, Prompt, Result, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent, echo, new};
use crate::script::{Script, UNSTABLE_SERVICES};

/// Methods for sessions that exist already.
const SAVED_SESSIONS: [&str; 9] = [
    "session/load",
    "session/resume",
    "session/fork",
    "session/list",
    "session/delete",
    "session/archive",
    "session/unarchive",
    "session/set_title",
    "session/status",
];

#[tokio::test(start_paused = true)]
async fn the_whole_hello() {
    // shows INIT-06, INIT-11, INIT-13, INIT-18, INIT-31, RPC-01, RPC-02: a bare agent says no more
    // than it can do
    let (link, mut client) = Script::pair();
    let serving = tokio::spawn(echo().info("echo", "1.0").serve(link));
    client.raw(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#).await;
    let expected = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}},"agentInfo":{"name":"echo","version":"1.0"}}}"#;
    assert_eq!(client.text().await.unwrap(), expected);
    drop(client);
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn any_version_is_answered_with_version_1() {
    // shows INIT-05, INIT-06, INIT-07
    let mut rig = Rig::uninitialized(echo());
    for asked in [json!(1), json!(0), json!(2), json!(65535), json!("1")] {
        let hello = rig.call("i", "initialize", json!({"protocolVersion": asked})).await;
        assert_eq!(hello["protocolVersion"], 1);
    }
    for asked in [json!("1.0.0"), json!(1.5), json!(-1), json!(70000), json!(null), json!("")] {
        rig.expect_error("initialize", json!({"protocolVersion": asked}), -32602).await;
    }
    rig.expect_error("initialize", json!({}), -32602).await;
    rig.expect_error("initialize", json!([1]), -32602).await; // shows RPC-25
}

#[tokio::test(start_paused = true)]
async fn initialize_comes_first() {
    // shows INIT-03
    let mut rig = Rig::uninitialized(echo());
    for method in ["session/new", "session/prompt", "authenticate", "session/list", "_x/y"] {
        rig.expect_error(method, new(), -32600).await;
    }
    rig.cancel("s1").await;
    rig.call("i", "initialize", json!({"protocolVersion": 1})).await;
    rig.new_session("s1").await;
}

#[tokio::test(start_paused = true)]
async fn a_second_initialize_keeps_the_sessions() {
    // shows INIT-25
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                turn.say(turn.read_files().is_some().to_string()).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    rig.expect_text("s1", "false").await;
    rig.expect_end("p", "end_turn").await;
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": true}}});
    rig.call("i", "initialize", hello).await;
    rig.prompt("p", "s1", "").await;
    rig.expect_text("s1", "true").await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
}

/// Says which of the client's services it sees.
fn looks() -> Agent {
    agent(|turn, _| {
        Box::pin(async move {
            let seen = [
                ("read", turn.read_files().is_some()),
                ("write", turn.write_files().is_some()),
                ("terminal", turn.terminals().is_some()),
                ("form", turn.forms().is_some()),
                ("url", turn.links().is_some()),
            ];
            let seen: Vec<_> = seen.iter().filter(|(_, seen)| *seen).map(|(name, _)| *name).collect();
            turn.say(seen.join(" ")).await?;
            Ok(StopReason::EndTurn)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn absent_capabilities_are_not_supported() {
    // shows INIT-15, INIT-19, INIT-20, INIT-26, FS-01, FS-02, TERM-01, TERM-02, ELIC-01
    let cases = [
        (json!({}), ""),
        (json!({"fs": {"readTextFile": true}}), "read"),
        (json!({"fs": {"writeTextFile": true, "readTextFile": false}}), "write"),
        (json!({"fs": null, "terminal": null, "elicitation": null}), ""),
        (json!({"terminal": true}), "terminal"),
        (json!({"elicitation": {}}), ""),
        (json!({"elicitation": {"form": {}, "url": null}}), "form"),
        (json!({"elicitation": {"url": {}}}), "url"),
        (json!({"fs": 5, "terminal": "yes", "elicitation": []}), ""),
        (json!("x"), ""),
        (json!(null), ""),
    ];
    for (capabilities, expected) in cases {
        let mut rig = Rig::open(looks(), capabilities).await;
        rig.prompt("p", "s1", "").await;
        rig.expect_text("s1", expected).await;
        rig.expect_end("p", "end_turn").await;
    }
    let mut rig = Rig::uninitialized(looks());
    let hello =
        json!({"protocolVersion": 1, "capabilities": {"fs": {"readTextFile": true}, "terminal": true}});
    rig.call("i", "initialize", hello).await;
    rig.new_session("s1").await;
    rig.prompt("p", "s1", "").await;
    rig.expect_text("s1", "").await;
}

struct Plain;

impl AgentSession for Plain {
    async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test(start_paused = true)]
async fn installed_services_are_advertised() {
    // shows INIT-18, INIT-19, AUTH-01, PROV-01, SSTAT-05
    let everything = with_saved_sessions(Agent::new(|_| async { Ok(Plain) }))
        .images()
        .audio()
        .embedded_context()
        .mcp_over_http()
        .mcp_over_sse()
        .mcp_over_acp()
        .additional_directories()
        .system_prompts(attache::agent::SystemPromptSupport::AppendOrOverride)
        .auth(Login::default())
        .logout(|| async { Ok(()) })
        .auth_status(|| async { Ok(AuthStatusResponse::new(AuthState::Unknown)) });
    let rig = Rig::initialized(everything, json!({})).await;
    let expected = json!({
        "loadSession": true,
        "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
        "mcpCapabilities": {"http": true, "sse": true, "acp": true},
        "sessionCapabilities": {
            "resume": {}, "list": {}, "delete": {}, "fork": {}, "close": {}, "archive": {}, "status": {}, "title": {},
            "additionalDirectories": {}, "systemPrompt": {"mode": {"override": {}}},
        },
        "auth": {"logout": {}, "status": {}},
    });
    assert_eq!(rig.hello["agentCapabilities"], expected);

    // an agent that cannot list does not archive either
    let archivist = echo().archive(|_| async { Ok(()) }, |_| async { Ok(()) });
    let mut rig = Rig::initialized(archivist, json!({})).await;
    assert_eq!(rig.hello["agentCapabilities"]["sessionCapabilities"], json!({"close": {}}));
    rig.expect_error("session/archive", json!({"sessionId": "x"}), -32601).await;
}

#[tokio::test(start_paused = true)]
async fn services_that_are_not_installed_are_not_served() {
    // shows SESS-09, RPC-12, MODEL-03, PROV-01, NES-01: whatever the params are
    let mut rig = Rig::open(echo(), json!({})).await;
    let others = ["authenticate", "logout", "mcp/connect", "mcp/message", "no/such", "$/such"];
    for method in SAVED_SESSIONS.into_iter().chain(UNSTABLE_SERVICES).chain(others) {
        rig.expect_error(method, json!({"sessionId": "s1", "cwd": "/", "mcpServers": []}), -32601).await;
        rig.expect_error(method, json!({}), -32601).await;
    }
    // nor are the windows that this session does not have
    rig.expect_error("session/set_mode", json!({"sessionId": "s1", "modeId": "x"}), -32601).await;
    rig.expect_error("session/set_model", json!({"sessionId": "s1", "modelId": "x"}), -32601).await;
    let set = json!({"sessionId": "s1", "configId": "x", "value": "y"});
    rig.expect_error("session/set_config_option", set, -32601).await;
}

/// Logs in with `key`, and fails with `broken`.
#[derive(Default, Clone)]
struct Login {
    inside: bool,
    logins: Arc<AtomicUsize>,
}

impl Auth for Login {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![
            AuthMethodAgent::new("key", "Key").into(),
            AuthMethodAgent::new("broken", "Broken").into(),
            AuthMethodTerminal::new("tty", "In a terminal").into(),
            AuthMethodEnvVar::new("env", "By variables", Vec::new()).into(),
        ]
    }

    fn is_logged_in(&self) -> bool {
        self.inside
    }

    async fn login(&self, method: &AuthMethodId, _: &ClientHandle) -> Result<()> {
        self.logins.fetch_add(1, Ordering::Relaxed);
        if method.as_str() == "broken" { Err(Error::internal("no such luck")) } else { Ok(()) }
    }
}

/// An agent that requires a login.
fn guarded(login: &Login) -> Agent {
    with_saved_sessions(echo())
        .auth(login.clone())
        .logout(|| async { Ok(()) })
        .auth_status(|| async { Ok(AuthStatusResponse::new(AuthState::Unauthenticated)) })
}

/// Adds all methods for sessions that exist already.
fn with_saved_sessions(agent: Agent) -> Agent {
    agent
        .load(|_| async { Ok(Plain) })
        .resume(|_| async { Ok(Plain) })
        .fork(|_, _| async { Ok(Plain) })
        .list(|_| async { Ok(ListSessionsResponse::new(Vec::new())) })
        .delete(|_| async { Ok(()) })
        .archive(|_| async { Ok(()) }, |_| async { Ok(()) })
        .titles(|_, title| async { Ok(title) })
        .status(|_| async { Ok(SessionStatus::Saved) })
}

#[tokio::test(start_paused = true)]
async fn no_session_before_the_login() {
    // shows AUTH-05, AUTH-06, AUTH-17, AUTH-22, RPC-15
    let login = Login::default();
    let mut rig = Rig::initialized(guarded(&login), json!({})).await;
    let all = json!({"sessionId": "x", "cwd": "/", "mcpServers": [], "title": "t"});
    for method in SAVED_SESSIONS.into_iter().chain(["session/new"]) {
        rig.expect_error(method, all.clone(), -32000).await;
    }
    assert_eq!(rig.call("a", "auth/status", json!({})).await, json!({"state": "unauthenticated"}));
    rig.expect_error("session/new", new(), -32000).await;

    rig.expect_error("authenticate", json!({"methodId": "broken"}), -32603).await;
    rig.expect_error("session/new", new(), -32000).await;
    assert_eq!(rig.call("a", "authenticate", json!({"methodId": "key"})).await, json!({}));
    rig.new_session("s1").await;
    rig.call("l", "session/list", Value::Null).await;

    assert_eq!(rig.call("o", "logout", Value::Null).await, json!({}));
    rig.expect_error("session/new", new(), -32000).await;
    // AUTH-18: what is open continues
    rig.prompt("p", "s1", "still here").await;
    rig.expect_text("s1", "still here").await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn only_an_announced_method_of_the_agent_logs_in() {
    // shows AUTH-04, AUTH-10, AUTH-20
    let login = Login::default();
    let mut rig = Rig::initialized(guarded(&login), json!({"auth": {"terminal": true}})).await;
    for method in ["ghost", "tty", "env", ""] {
        rig.expect_error("authenticate", json!({"methodId": method}), -32602).await;
    }
    let draft = json!({"method": "oauth-device-code", "credentials": {"token": "secret"}});
    let error = rig.expect_error("authenticate", draft, -32602).await;
    assert!(!error.to_string().contains("secret"));
    assert_eq!(login.logins.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn terminal_logins_are_offered_to_clients_that_can_run_them() {
    // shows AUTH-01, AUTH-08
    let ids = |hello: &Value| -> Vec<String> {
        let methods = hello["authMethods"].as_array().unwrap();
        methods.iter().map(|method| method["id"].as_str().unwrap().to_owned()).collect()
    };
    let rig = Rig::initialized(guarded(&Login::default()), json!({})).await;
    assert_eq!(ids(&rig.hello), ["key", "broken", "env"]);
    let rig = Rig::initialized(guarded(&Login::default()), json!({"auth": {"terminal": true}})).await;
    assert_eq!(ids(&rig.hello), ["key", "broken", "tty", "env"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_in_the_environment_opens_the_door() {
    // shows AUTH-05, AUTH-17
    let login = Login { inside: true, ..Login::default() };
    let mut rig = Rig::initialized(guarded(&login), json!({})).await;
    rig.new_session("s1").await;
    rig.call("o", "logout", json!({})).await;
    rig.expect_error("session/new", new(), -32000).await;
}

#[tokio::test(start_paused = true)]
async fn params_that_may_be_missing_may_be_null() {
    // shows RPC-21, RPC-13
    let login = Login { inside: true, ..Login::default() };
    let mut rig = Rig::initialized(guarded(&login), json!({})).await;
    for method in ["auth/status", "session/list", "logout"] {
        rig.client.raw(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)).await;
        rig.client.result(1).await;
        rig.call("n", "authenticate", json!({"methodId": "key"})).await;
        rig.client.raw(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":null}}"#)).await;
        rig.client.result(2).await;
        rig.call("n", "authenticate", json!({"methodId": "key"})).await;
    }
    rig.client.raw(r#"{"jsonrpc":"2.0","id":3,"method":"session/new"}"#).await;
    rig.client.error(3, -32602).await;
}

#[tokio::test(start_paused = true)]
async fn the_client_is_a_value() {
    // shows INIT-29
    let agent = Agent::new(|request: attache::agent::OpenRequest| async move {
        let client: ClientHandle = request.client.clone();
        assert_eq!(client.info().unwrap().name, "zed");
        assert!(client.capabilities().terminal);
        Ok(Plain)
    });
    let mut rig = Rig::uninitialized(agent);
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "zed", "version": "2"}, "clientCapabilities": {"terminal": true}});
    rig.call("i", "initialize", hello).await;
    rig.call("n", "session/new", new()).await;
}
