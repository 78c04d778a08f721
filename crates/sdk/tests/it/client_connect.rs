//! Connecting: the first words, versions, authentication, noise, the end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::client::{Client, ConnectionEvent};
use attache::wire::v1::ClientNesCapabilities;
use attache::{Error, Link, Meta};
use serde_json::json;

use crate::script::{Script, connect};

#[tokio::test(start_paused = true)]
async fn initialize_comes_first_and_nothing_before_its_answer() {
    // shows INIT-01, INIT-02, INIT-04, INIT-12, INIT-15, INIT-17, INIT-24
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().info("ed", "1.2").connect(link).await });
    let hello = agent.expect("initialize").await;
    assert_eq!(
        hello["params"],
        json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "ed", "version": "1.2"}})
    );
    agent.expect_silence().await;
    let info = json!({"name": "ag", "version": "0"});
    agent
        .answer(
            &hello,
            json!({"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {"loadSession": true}}),
        )
        .await;
    let handle = connecting.await.unwrap().unwrap();
    assert_eq!(handle.info().unwrap().display_name(), "ag");
    assert!(handle.capabilities().load_session && handle.loader().is_some());
    assert!(handle.resumer().is_none() && handle.lister().is_none() && handle.deleter().is_none());
    assert!(handle.forker().is_none() && handle.archiver().is_none() && handle.titler().is_none());
    assert!(handle.status_reader().is_none() && handle.logout().is_none() && handle.auth_status().is_none());
    assert!(handle.providers().is_none() && handle.nes().is_none());
}

#[tokio::test(start_paused = true)]
async fn exactly_the_installed_services_are_advertised() {
    let (link, mut agent) = Script::pair();
    let client = Client::new()
        .read_files(|_, _| async { Ok(String::new()) })
        .elicitation_forms()
        .terminal_auth()
        .boolean_options()
        .notices()
        .compaction()
        .plans()
        .subagents()
        .nes(ClientNesCapabilities::new())
        .extensions(Meta::new(&json!({"acme.dev": {"reindex": true}})).unwrap());
    let connecting = tokio::spawn(async move { client.connect(link).await });
    let hello = agent.initialize(json!({})).await;
    let _handle = connecting.await.unwrap().unwrap();
    assert_eq!(
        hello["params"]["clientCapabilities"],
        json!({
            "fs": {"readTextFile": true},
            "session": {"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}},
            "subagents": {}, "plan": {}, "auth": {"terminal": true}, "elicitation": {"form": {}}, "nes": {},
            "_meta": {"acme.dev": {"reindex": true}},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_silent_agent_is_reported() {
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    agent.expect("initialize").await;
    agent.raw("Usage: agent [--acp]").await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }));
    let error = error.to_string();
    assert!(error.contains("`initialize` within 30s") && error.contains("Usage: agent [--acp]"), "{error}");
    agent.expect("$/cancel_request").await;
    agent.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn the_output_of_an_agent_that_exits_is_reported() {
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    agent.expect("initialize").await;
    agent.raw("command not found").await;
    drop(agent);
    let Err(Error::Closed(closed)) = connecting.await.unwrap() else { panic!() };
    assert_eq!(closed.stdout, "command not found");
    assert!(closed.to_string().contains("stdout: command not found"), "{closed}");

    let (link, agent) = Script::pair();
    drop(agent);
    assert!(matches!(Client::new().connect(link).await, Err(Error::Closed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_we_do_not_speak_ends_the_connection() {
    // shows INIT-09
    for version in [0, 2, 999] {
        let (link, mut agent) = Script::pair();
        let connecting = tokio::spawn(async move { Client::new().connect(link).await });
        let hello = agent.expect("initialize").await;
        // some answer 2 in the shape of version 2
        agent.answer(&hello, json!({"protocolVersion": version, "capabilities": {}, "info": {"name": "a", "version": "1"}})).await;
        let error = connecting.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Version { .. }));
        let error = error.to_string();
        assert!(error.contains(&format!("version {version} of the protocol")), "{error}");
        agent.expect_eof().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_initialize_is_an_error() {
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    let hello = agent.expect("initialize").await;
    agent.refuse(&hello, 400, "{\"json\":true}").await;
    let Err(Error::Refused(error)) = connecting.await.unwrap() else { panic!() };
    assert_eq!(error.code, 400);
    agent.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn an_initialize_that_is_answered_with_nonsense_is_explained() {
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    let hello = agent.expect("initialize").await;
    agent.raw("warning: old config").await;
    agent.answer(&hello, json!({"protocolVersion": "one"})).await;
    let error = connecting.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("invalid `initialize`") && error.contains("old config"), "{error}");
    agent.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn only_methods_that_the_agent_performs_are_passed_to_authenticate() {
    // shows AUTH-03, AUTH-07, AUTH-10, AUTH-21, RPC-22
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().terminal_auth().connect(link).await });
    let hello = agent.expect("initialize").await;
    let methods = json!([
        {"id": "plain", "name": "Plain"},
        {"id": "typed", "name": "Typed", "type": "agent"},
        {"id": "term", "name": "Terminal", "type": "terminal", "args": ["login"], "env": {"A": "b"}},
        {"id": "vars", "name": "Variables", "type": "env_var", "vars": []},
        {"id": "odd", "name": "Odd", "type": "_hologram"},
        5,
    ]);
    agent.answer(&hello, json!({"protocolVersion": 1, "authMethods": methods})).await;
    let handle = connecting.await.unwrap().unwrap();
    assert_eq!(handle.auth_methods().len(), 5);
    for refused in ["term", "vars", "odd", "ghost"] {
        assert!(matches!(handle.authenticate(refused).await, Err(Error::Unsupported(_))), "{refused}");
    }
    agent.expect_silence().await;
    for id in ["plain", "typed"] {
        let (done, request) = tokio::join!(handle.authenticate(id), async {
            let request = agent.expect("authenticate").await;
            agent.answer(&request, json!(null)).await;
            request
        });
        done.unwrap();
        assert_eq!(request["params"], json!({"methodId": id}));
    }
    let base = || attache::Command::new("agent");
    assert!(handle.login_command(base(), &"term".into()).is_some());
    assert!(handle.login_command(base(), &"plain".into()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_session_may_need_authentication_first() {
    // shows AUTH-02, AUTH-05
    let (handle, mut agent) = connect(Client::new(), json!({"auth": {"logout": {}}})).await;
    let (refused, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        agent.refuse(&request, -32000, "authentication required").await;
    });
    assert!(refused.unwrap_err().is_auth_required());
    let (done, ()) = tokio::join!(handle.logout().unwrap().send(), async {
        let request = agent.expect("logout").await;
        agent.answer(&request, json!({})).await;
    });
    done.unwrap();
}

#[tokio::test(start_paused = true)]
async fn noise_is_reported_and_not_fatal() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let hook = received.clone();
    let client = Client::new()
        .on_noise(move |line, _| hook.lock().unwrap().push(String::from_utf8_lossy(line).into_owned()));
    let (handle, mut agent) = connect(client, json!({})).await;
    let mut events = handle.events().unwrap();
    agent.raw("[info] starting").await;
    agent.raw("").await;
    agent.raw("warning: no config").await;
    agent.notify("zz/unknown", json!({"a": 1})).await;
    agent.update("nobody", json!({"sessionUpdate": "plan", "entries": []})).await;
    // log lines are not answered, a broken message is (RPC-09)
    agent.raw("{oops").await;
    agent.error(json!(null), -32700).await;
    let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session("s1"));
    session.unwrap();
    assert_eq!(*received.lock().unwrap(), ["[info] starting", "warning: no config", "{oops"]);
    assert!(matches!(events.next().await, Some(ConnectionEvent::Noise { .. })));
    assert!(
        matches!(events.next().await, Some(ConnectionEvent::Noise { line, .. }) if line == "warning: no config")
    );
    assert!(
        matches!(events.next().await, Some(ConnectionEvent::Notification { method, .. }) if method == "zz/unknown")
    );
    // shows SESS-32
    assert!(
        matches!(events.next().await, Some(ConnectionEvent::Stray { session_id, .. }) if session_id == "nobody")
    );
    assert!(matches!(events.next().await, Some(ConnectionEvent::Noise { line, .. }) if line == "{oops"));
    drop(agent);
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_connection_ends_with_its_last_handle() {
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session("s1"));
    let second = handle.clone();
    drop(handle);
    drop(second);
    agent.expect_silence().await; // the session is a handle too
    drop(session);
    agent.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_everything() {
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session("s1"));
    let mut session = session.unwrap();
    assert!(handle.shutdown().await.is_none());
    agent.expect_eof().await;
    assert!(handle.is_closed());
    assert!(matches!(session.prompt("x").await, Err(Error::Closed(_))));
    assert!(matches!(handle.new_session("/work").await, Err(Error::Closed(_))));
    handle.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connect_closes_the_link() {
    let (link, mut agent) = Script::pair();
    let client = Client::new();
    let given_up = tokio::time::timeout(Duration::from_secs(1), client.connect(link)).await;
    assert!(given_up.is_err());
    agent.expect("initialize").await;
    agent.expect("$/cancel_request").await;
    agent.expect_eof().await;
}

#[tokio::test]
async fn a_child_that_is_no_agent_is_explained() {
    let command = attache::Command::new("/bin/sh")
        .args(["-c", "echo 'oops on stdout'; echo 'oops on stderr' >&2; exit 3"]);
    let Ok(link) = Link::command(command) else { return };
    let error = Client::new().connect(link).await.unwrap_err().to_string();
    assert!(
        error.contains("exit code 3") && error.contains("oops on stdout") && error.contains("oops on stderr"),
        "{error}"
    );
}
