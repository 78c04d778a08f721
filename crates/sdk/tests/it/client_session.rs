//! Sessions: how they begin, what they are asked with, and where their messages go.

use attache::client::{Client, Event};
use attache::wire::v1::{
    ContentBlock, McpServer, McpServerAcp, McpServerHttp, McpServerSse, McpServerStdio, ProviderInfo,
    SessionStatus, SystemPrompt, SystemPromptMode,
};
use attache::{Error, StopReason};
use serde_json::{Value, json};

use crate::script::{Script, connect, open};
use crate::turn_events::SkipStates;

#[tokio::test(start_paused = true)]
async fn a_directory_is_absolute() {
    // shows ROOT-01, SESS-33, MCP-07
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    assert!(handle.new_session("relative/dir").await.is_err());
    assert!(handle.new_session("").await.is_err());
    agent.expect_silence().await;
    let stdio = McpServerStdio::new("m", "/bin/m", Vec::<String>::new(), Vec::new());
    let (session, request) =
        tokio::join!(handle.new_session("/work").mcp_server(stdio), agent.new_session("s1"));
    assert_eq!(session.unwrap().roots(), [std::path::PathBuf::from("/work")]);
    let server = json!({"name": "m", "command": "/bin/m", "args": [], "env": []});
    assert_eq!(request["params"], json!({"cwd": "/work", "mcpServers": [server]}));
}

#[tokio::test(start_paused = true)]
async fn unsupported_requests_are_not_sent() {
    // shows ROOT-08, MCP-03, MCPA-01, MCPA-02, SYSP-01, SYSP-03
    let http = || McpServer::from(McpServerHttp::new("m", "http://a", Vec::new()));
    let sse = || McpServer::from(McpServerSse::new("m", "http://a", Vec::new()));
    let acp = || McpServer::from(McpServerAcp::new("m", "id"));
    let append = || SystemPrompt::new(SystemPromptMode::Append, vec!["be brief".into()]);
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    for refused in [
        handle.new_session("/work").additional_directories(["/other"]).await,
        handle.new_session("/work").mcp_server(http()).await,
        handle.new_session("/work").mcp_server(sse()).await,
        handle.new_session("/work").mcp_server(acp()).await,
        handle.new_session("/work").system_prompt(append()).await,
    ] {
        assert!(matches!(refused, Err(Error::Unsupported(_))));
    }
    agent.expect_silence().await;

    let all = json!({
        "mcpCapabilities": {"http": true, "sse": true, "acp": true},
        "sessionCapabilities": {"additionalDirectories": {}, "systemPrompt": {}},
    });
    let (handle, mut agent) = connect(Client::new(), all).await;
    let overriding = SystemPrompt::new(SystemPromptMode::Override, vec!["x".into()]);
    let empty = SystemPrompt::new(SystemPromptMode::Append, Vec::new());
    let link = SystemPrompt::new(
        SystemPromptMode::Append,
        vec![ContentBlock::from(attache::wire::v1::ResourceLink::new("a", "file:///a"))],
    );
    for prompt in [overriding, empty, link] {
        assert!(handle.new_session("/work").system_prompt(prompt).await.is_err());
    }
    assert!(handle.new_session("/work").mcp_servers([acp(), acp()]).await.is_err());
    assert!(handle.new_session("/work").additional_directories(["rel"]).await.is_err());
    agent.expect_silence().await;
    // shows ROOT-19
    let opening = handle
        .new_session("/work")
        .additional_directories(["/a", "/work", "/a", "/b"])
        .mcp_servers([http(), sse(), acp()])
        .system_prompt(append());
    let (session, request) = tokio::join!(opening, agent.new_session("s1"));
    assert_eq!(session.unwrap().roots().len(), 3);
    assert_eq!(request["params"]["additionalDirectories"], json!(["/a", "/b"]));
    assert_eq!(request["params"]["mcpServers"].as_array().unwrap().len(), 3);
    assert_eq!(request["params"]["systemPrompt"]["mode"], "append");
}

fn full() -> Value {
    json!({
        "loadSession": true,
        "sessionCapabilities": {
            "list": {}, "delete": {}, "fork": {}, "archive": {}, "status": {}, "title": {}, "resume": {}, "close": {},
        },
        "auth": {"status": {}},
        "providers": {},
    })
}

#[tokio::test(start_paused = true)]
async fn a_loaded_session_replays_its_history_first() {
    // shows SESS-10, SESS-12, SESS-13, SESS-18
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let mut loading = handle.loader().unwrap().load("old", "/work").await.unwrap();
    let request = agent.expect("session/load").await;
    assert_eq!(request["params"], json!({"sessionId": "old", "cwd": "/work", "mcpServers": []}));
    assert!(handle.loader().unwrap().load("old", "/work").await.is_err(), "it is open already");
    let user = json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}});
    agent.update("old", user).await;
    agent.say("old", "hello").await;
    agent.answer(&request, json!(null)).await;
    agent.say("old", "after").await;
    let Some(Event::User(text)) = loading.next().await.unwrap() else { panic!() };
    assert_eq!(&*text, "hi");
    let mut session = loading.finish().await.unwrap();
    let Event::Text(text) = session.next_update().await.unwrap() else { panic!() };
    assert_eq!(&*text, "after");
    let turn = session.prompt("go on").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn a_failed_or_dropped_load_leaves_no_session() {
    // shows SESS-19
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let loading = handle.loader().unwrap().load("old", "/work").await.unwrap();
    let request = agent.expect("session/load").await;
    agent.refuse(&request, -32002, "no such session").await;
    assert!(matches!(loading.finish().await, Err(Error::Refused(_))));
    assert!(!handle.has_session(&"old".into()));

    let loading = handle.loader().unwrap().load("old", "/work").await.unwrap();
    let request = agent.expect("session/load").await;
    drop(loading);
    assert_eq!(agent.expect("$/cancel_request").await["params"]["requestId"], request["id"]);
    assert!(!handle.has_session(&"old".into()));
}

#[tokio::test(start_paused = true)]
async fn resume_fork_and_close() {
    // shows SESS-22, SESS-24, SESS-34, FORK-02
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let modes =
        json!({"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]});
    let (session, ()) = tokio::join!(handle.resumer().unwrap().resume("old", "/work"), async {
        let request = agent.expect("session/resume").await;
        assert_eq!(request["params"], json!({"sessionId": "old", "cwd": "/work", "mcpServers": []}));
        agent.answer(&request, json!({"modes": modes})).await;
    });
    let session = session.unwrap();
    assert_eq!(session.modes().unwrap().current_mode_id, "a");
    let (fork, ()) = tokio::join!(handle.forker().unwrap().fork("old", "/work"), async {
        let request = agent.expect("session/fork").await;
        agent.answer(&request, json!({"sessionId": "copy"})).await;
    });
    let fork = fork.unwrap();
    assert_eq!(fork.id(), &"copy");
    let (closed, ()) = tokio::join!(session.close(), async {
        let request = agent.expect("session/close").await;
        assert_eq!(request["params"], json!({"sessionId": "old"}));
        agent.answer(&request, json!({})).await;
    });
    closed.unwrap();
    assert!(!handle.has_session(&"old".into()) && handle.has_session(&"copy".into()));

    // shows SESS-25: without the capability nothing is sent
    let (session, mut agent) = open(Client::new()).await;
    session.close().await.unwrap();
    agent.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_resume_leaves_no_session() {
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let (session, ()) = tokio::join!(handle.resumer().unwrap().resume("old", "/work"), async {
        let request = agent.expect("session/resume").await;
        agent.refuse(&request, -32002, "no such session").await;
    });
    assert!(session.is_err());
    assert!(!handle.has_session(&"old".into()));
}

#[tokio::test(start_paused = true)]
async fn lists_have_pages_and_cursors_are_opaque() {
    // shows LIST-03, LIST-05, LIST-06, V2-45
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let info = |id: &str| json!({"sessionId": id, "cwd": "/work"});
    let mut pages = handle.lister().unwrap().list().cwd("/work");
    let (page, ()) = tokio::join!(pages.next_page(), async {
        let request = agent.expect("session/list").await;
        assert_eq!(request["params"], json!({"cwd": "/work"}));
        agent
            .answer(&request, json!({"sessions": [info("a"), 5, info("b")], "nextCursor": " \u{2028}\"x"}))
            .await;
    });
    assert_eq!(page.unwrap().unwrap().len(), 2);
    let (page, ()) = tokio::join!(pages.next_page(), async {
        let request = agent.expect("session/list").await;
        assert_eq!(request["params"]["cursor"], " \u{2028}\"x");
        agent.answer(&request, json!({"sessions": [], "nextCursor": ""})).await;
    });
    assert!(page.unwrap().unwrap().is_empty());
    let (page, ()) = tokio::join!(pages.next_page(), async {
        let request = agent.expect("session/list").await;
        assert_eq!(request["params"]["cursor"], "");
        agent.answer(&request, json!({"sessions": [info("c")], "nextCursor": null})).await;
    });
    assert_eq!(page.unwrap().unwrap().len(), 1);
    assert!(pages.next_page().await.unwrap().is_none());
    agent.expect_silence().await;
}

/// Answers the next request, which must be of this method.
async fn serve(agent: &mut Script, method: &str, params: Value, result: Value) {
    let request = agent.expect(method).await;
    assert_eq!(request["params"], params);
    agent.answer(&request, result).await;
}

#[tokio::test(start_paused = true)]
async fn everything_else_that_only_some_agents_can() {
    // shows DEL-01, SSTAT-02, SSTAT-10, SSTAT-11, AUTH-23, PROV-02, PROV-12, PROV-13
    let (handle, mut agent) = connect(Client::new(), full()).await;
    let id = json!({"sessionId": "x"});
    let deleting = handle.deleter().unwrap();
    let (done, ()) =
        tokio::join!(deleting.delete("x"), serve(&mut agent, "session/delete", id.clone(), json!(null)));
    done.unwrap();
    let archiving = handle.archiver().unwrap();
    let (done, ()) =
        tokio::join!(archiving.archive("x"), serve(&mut agent, "session/archive", id.clone(), json!({})));
    done.unwrap();
    let (done, ()) =
        tokio::join!(archiving.unarchive("x"), serve(&mut agent, "session/unarchive", id.clone(), json!({})));
    done.unwrap();
    let titling = handle.titler().unwrap();
    let params = json!({"sessionId": "x", "title": " t "});
    let (title, ()) = tokio::join!(
        titling.set_title("x", " t "),
        serve(&mut agent, "session/set_title", params, json!({"title": "t"}))
    );
    assert_eq!(title.unwrap(), "t");
    let status = handle.status_reader().unwrap();
    for (reported, expected) in
        [("open", SessionStatus::Open), ("saved", SessionStatus::Saved), ("_x", SessionStatus::Saved)]
    {
        let answer = json!({"status": reported});
        let (status, ()) =
            tokio::join!(status.get("x"), serve(&mut agent, "session/status", id.clone(), answer));
        assert_eq!(status.unwrap(), expected);
    }
    let auth = handle.auth_status().unwrap();
    let (who, ()) =
        tokio::join!(auth.get(), serve(&mut agent, "auth/status", json!({}), json!({"state": "_x"})));
    assert!(who.unwrap().state.is_unknown());
    let providers = handle.providers().unwrap();
    let answer = json!({"providers": [{"id": "p", "supported": [], "required": true, "current": null}]});
    let (list, ()) = tokio::join!(providers.list(), serve(&mut agent, "providers/list", json!({}), answer));
    let list: Vec<ProviderInfo> = list.unwrap();
    assert_eq!(list[0].provider_id, "p");
    assert!(providers.disable(&list[0]).await.is_err());
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn options_are_checked_and_followed() {
    // shows MODE-03, MODE-06, MODEL-02, CONF-13, CONF-14, CONF-17, CONF-20
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let select = |now: &str| {
        json!({"id": "o", "name": "O", "type": "select", "currentValue": now, "category": "zz", "options": [
            {"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}, {"value": "y", "name": "Y"}]},
        ]})
    };
    let flag = |now: bool| json!({"id": "f", "name": "F", "type": "boolean", "currentValue": now});
    let answer = json!({
        "sessionId": "s1",
        "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]},
        "models": {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}, {"modelId": "n", "name": "N"}]},
        "configOptions": [select("x"), flag(false)],
    });
    let (session, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        agent.answer(&request, answer).await;
    });
    let mut session = session.unwrap();
    let control = session.control();
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    assert!(control.set_mode("ghost").await.is_err());
    assert!(control.set_model("ghost").await.is_err());
    assert!(control.set_config_option("ghost", "x").await.is_err());
    assert!(control.set_config_option("o", "ghost").await.is_err());
    assert!(control.set_config_option("o", true).await.is_err());
    assert!(control.set_config_option("f", "x").await.is_err());
    agent.expect_silence().await;
    let params = json!({"sessionId": "s1", "modeId": "b"});
    let (done, ()) =
        tokio::join!(control.set_mode("b"), serve(&mut agent, "session/set_mode", params, json!(null)));
    done.unwrap();
    let params = json!({"sessionId": "s1", "modelId": "n"});
    let (done, ()) =
        tokio::join!(control.set_model("n"), serve(&mut agent, "session/set_model", params, json!({})));
    done.unwrap();
    let params = json!({"sessionId": "s1", "configId": "f", "type": "boolean", "value": true});
    let list = json!({"configOptions": [select("y"), flag(true)]});
    let (done, ()) = tokio::join!(
        control.set_config_option("f", true),
        serve(&mut agent, "session/set_config_option", params, list)
    );
    assert_eq!(done.unwrap().len(), 2);
    let params = json!({"sessionId": "s1", "configId": "o", "value": "y"});
    let list = json!({"configOptions": [select("y")]});
    let (done, ()) = tokio::join!(
        control.set_config_option("o", "y"),
        serve(&mut agent, "session/set_config_option", params, list)
    );
    done.unwrap();
    agent.end_turn(&prompt).await;
    turn.finish().await.unwrap();
    assert_eq!(session.modes().unwrap().current_mode_id, "b");
    assert_eq!(session.models().unwrap().current_model_id, "n");
    assert_eq!(session.config_options().len(), 1);

    let (session, mut agent) = open(Client::new()).await;
    assert!(matches!(session.control().set_mode("a").await, Err(Error::Unsupported(_))));
    assert!(matches!(session.control().set_model("a").await, Err(Error::Unsupported(_))));
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_sessions_each_get_their_own() {
    // shows SESS-05, SESS-06, PROMPT-12, RPC-20
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let name = |number: usize| format!("s {number} \u{1F600}");
    let mut sessions = Vec::new();
    for number in 0..1000 {
        let id = name(number);
        let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session(&id));
        sessions.push(session.unwrap());
    }
    let mut turns = Vec::new();
    for session in &mut sessions {
        turns.push(session.prompt("go").await.unwrap());
    }
    let mut prompts = Vec::new();
    for _ in 0..1000 {
        prompts.push(agent.expect("session/prompt").await);
    }
    // backwards, and the answers in yet another order
    for number in (0..1000).rev() {
        agent.say(&name(number), &number.to_string()).await;
    }
    for prompt in prompts.iter().step_by(2).chain(prompts.iter().skip(1).step_by(2)) {
        agent.end_turn(prompt).await;
    }
    for (number, turn) in turns.iter_mut().enumerate() {
        let Some(Event::Text(text)) = turn.after_states().await.unwrap() else { panic!() };
        assert_eq!(&*text, number.to_string());
        assert!(turn.after_states().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_opener_was_dropped_is_removed() {
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let opening = handle.new_session("/work");
    tokio::select! {
        _ = opening => panic!(),
        request = agent.expect("session/new") => {
            agent.answer(&request, json!({"sessionId": "s1"})).await;
        }
    }
    agent.expect("$/cancel_request").await;
    agent.expect_silence().await;
    assert!(!handle.has_session(&"s1".into()));
}

#[tokio::test(start_paused = true)]
async fn subagents_speak_through_their_session() {
    // shows SUBA-02, SUBA-03, SUBA-05
    let (mut session, mut agent) = open(Client::new().subagents()).await;
    let control = session.control();
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    let child = |more: Value| {
        let mut update = json!({"sessionUpdate": "subagent_update", "sessionId": "kid"});
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    agent.update("s1", child(json!({"title": "Kid"}))).await;
    agent.say("kid", "hello from the kid").await;
    agent.ask(9, "kid").await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Subagent(_))));
    let Some(Event::FromSubagent(id, event)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(id == "kid" && matches!(*event, Event::Text(_)));
    let Some(Event::FromSubagent(_, event)) = turn.after_states().await.unwrap() else { panic!() };
    let Event::Permission(ask) = *event else { panic!() };
    ask.choose(&"yes".into()).unwrap();
    assert_eq!(agent.result(9).await["outcome"]["optionId"], "yes");
    assert!(!control.cancel_subagent(&"kid".into()));
    agent.expect_silence().await;
    agent.update("s1", child(json!({"capabilities": {"cancel": {}}}))).await;
    turn.after_states().await.unwrap();
    assert!(control.cancel_subagent(&"kid".into()));
    assert_eq!(agent.expect("session/cancel").await["params"]["sessionId"], "kid");
    drop(turn);
    drop(session);
}
