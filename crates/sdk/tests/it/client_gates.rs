//! What a client asks only of an agent that offers it, and what it repeats whenever it asks.

use std::path::PathBuf;

use attache::client::{Client, Event};
use attache::wire::v1::{ClientNesCapabilities, StartNesRequest, SystemPrompt, SystemPromptMode};
use attache::{Error, Meta};
use serde_json::{Value, json};

use crate::script::{connect, open};
use crate::turn_events::SkipStates;

/// Every capability that opens a door, in the form in which an agent states it.
fn everything() -> Value {
    json!({
        "loadSession": true,
        "sessionCapabilities": {
            "resume": {}, "list": {}, "delete": {}, "fork": {}, "close": {}, "archive": {}, "title": {}, "status": {},
            "additionalDirectories": {}, "systemPrompt": {},
        },
        "auth": {"logout": {}, "status": {}},
        "providers": {},
        "nes": {},
    })
}

/// The doors that are open.
fn doors(agent: &attache::client::AgentHandle) -> [bool; 12] {
    [
        agent.loader().is_some(),
        agent.resumer().is_some(),
        agent.lister().is_some(),
        agent.deleter().is_some(),
        agent.forker().is_some(),
        agent.archiver().is_some(),
        agent.titler().is_some(),
        agent.status_reader().is_some(),
        agent.logout().is_some(),
        agent.auth_status().is_some(),
        agent.providers().is_some(),
        agent.nes().is_some(),
    ]
}

#[tokio::test(start_paused = true)]
async fn optional_abilities_follow_the_capabilities() {
    // shows INIT-16, SESS-07, SESS-08, SESS-20, SESS-21, LIST-01, LIST-02, DEL-01, DEL-02, FORK-01,
    // AUTH-16, PROV-02, NES-01
    let (agent, _script) = connect(Client::new(), json!({})).await;
    assert_eq!(doors(&agent), [false; 12]);
    let (agent, _script) = connect(Client::new(), everything()).await;
    assert_eq!(doors(&agent), [true; 12]);
    let members = ["resume", "list", "delete", "fork", "archive", "title", "status"];
    for (at, member) in members.into_iter().enumerate() {
        for (offered, expected) in [(json!({}), true), (Value::Null, false), (json!(true), false)] {
            let capabilities = json!({"sessionCapabilities": {member: offered}});
            let (agent, _script) = connect(Client::new(), capabilities).await;
            let mut only = [false; 12];
            only[at + 1] = expected;
            assert_eq!(doors(&agent), only, "{member}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_closed_only_with_an_agent_that_can() {
    // shows SESS-25, SESS-26, SESS-34
    let (agent, mut script) = connect(Client::new(), json!({})).await;
    let (session, _) = tokio::join!(agent.new_session("/work"), script.new_session("s1"));
    session.unwrap().close().await.unwrap();
    script.expect_silence().await;
    let (agent, mut script) = connect(Client::new(), json!({"sessionCapabilities": {"close": {}}})).await;
    let (session, _) = tokio::join!(agent.new_session("/work"), script.new_session("s1"));
    let closing = tokio::spawn(session.unwrap().close());
    let request = script.expect("session/close").await;
    assert_eq!(request["params"], json!({"sessionId": "s1"}));
    script.answer(&request, Value::Null).await;
    closing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn roots_and_system_prompt_are_repeated_whenever_a_session_is_opened() {
    // shows ROOT-07, ROOT-09, ROOT-13, SYSP-04
    let (agent, mut script) = connect(Client::new(), everything()).await;
    let prompt = || SystemPrompt::new(SystemPromptMode::Append, vec!["be brief".into()]);
    let opening = tokio::spawn(
        agent
            .resumer()
            .unwrap()
            .resume("old", "/work")
            .additional_directories(["/lib", "/work", "/lib"])
            .system_prompt(prompt())
            .into_future(),
    );
    let request = script.expect("session/resume").await;
    let stated = json!({"mode": "append", "content": [{"type": "text", "text": "be brief"}]});
    assert_eq!(request["params"]["additionalDirectories"], json!(["/lib"]));
    assert_eq!(request["params"]["systemPrompt"], stated);
    script.answer(&request, json!({})).await;
    let session = opening.await.unwrap().unwrap();
    assert_eq!(session.roots(), [PathBuf::from("/work"), PathBuf::from("/lib")]);

    let forking =
        agent.forker().unwrap().fork("old", "/work").additional_directories(["/lib"]).system_prompt(prompt());
    let forking = tokio::spawn(forking.into_future());
    let request = script.expect("session/fork").await;
    assert_eq!(request["params"]["additionalDirectories"], json!(["/lib"]));
    assert_eq!(request["params"]["systemPrompt"], stated);
    script.answer(&request, json!({"sessionId": "new"})).await;
    drop(forking.await.unwrap().unwrap());

    let relative = agent.resumer().unwrap().resume("old", "/work").additional_directories(["lib"]).await;
    assert!(relative.is_err());
    script.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_session_elsewhere_is_not_open_here() {
    // shows SSTAT-03
    let (agent, mut script) = connect(Client::new(), everything()).await;
    let asking = agent.clone();
    let asking = tokio::spawn(async move { asking.status_reader().unwrap().get("s9").await });
    let request = script.expect("session/status").await;
    script.answer(&request, json!({"status": "open"})).await;
    assert_eq!(asking.await.unwrap().unwrap(), attache::wire::v1::SessionStatus::Open);
    assert!(!agent.has_session(&"s9".into()));
    // Its updates are stray, and its requests are refused.
    script.ask(1, "s9").await;
    script.error(1, -32002).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_its_agent() {
    // shows SESS-04
    let (mut first, mut one) = open(Client::new()).await;
    let (mut second, mut two) = open(Client::new()).await;
    drop(first.prompt("a").await.unwrap());
    drop(second.prompt("b").await.unwrap());
    assert_eq!(one.expect("session/prompt").await["params"]["prompt"][0]["text"], "a");
    assert_eq!(two.expect("session/prompt").await["params"]["prompt"][0]["text"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_permission_waits_for_the_decision() {
    // shows PERM-05, PERM-06
    let (mut session, mut script) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    script.expect("session/prompt").await;
    script.ask(1, "s1").await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    script.expect_silence().await;
    ask.choose(&"yes".into()).unwrap();
    let outcome = script.result(1).await;
    assert_eq!(outcome, json!({"outcome": {"outcome": "selected", "optionId": "yes"}}));
}

#[tokio::test(start_paused = true)]
async fn extensions_are_announced_in_meta_and_nowhere_else() {
    // shows INIT-27, INIT-28, EXT-09
    let meta = Meta::new(&json!({"acme.dev": {"reindex": true}})).unwrap();
    let (link, mut script) = crate::script::Script::pair();
    let client = Client::new().extensions(meta);
    let (agent, hello) = tokio::join!(client.connect(link), script.initialize(json!({})));
    agent.unwrap();
    let stated = &hello["params"]["clientCapabilities"];
    assert_eq!(stated["_meta"], json!({"acme.dev": {"reindex": true}}));
    let known = ["_meta", "fs", "terminal", "session", "auth", "elicitation"];
    assert!(stated.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{stated}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_start_of_suggestions_is_auth_required() {
    // shows NES-07
    let client = Client::new().nes(ClientNesCapabilities::new());
    let (agent, mut script) = connect(client, everything()).await;
    for refused in [true, false] {
        let asking = agent.clone();
        let asking =
            tokio::spawn(async move { asking.nes().unwrap().start(StartNesRequest::new()).await.map(drop) });
        let request = script.expect("nes/start").await;
        if refused {
            script.refuse(&request, -32000, "log in first").await;
            assert!(asking.await.unwrap().is_err_and(|error| Error::is_auth_required(&error)));
        } else {
            script.answer(&request, json!({"sessionId": "n1"})).await;
            asking.await.unwrap().unwrap();
        }
    }
}
