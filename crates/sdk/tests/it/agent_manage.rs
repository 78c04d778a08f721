//! Modes, models, options, and the sessions that are stored.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, OpenRequest, OpenedSession, OptionValue, SessionHandle, Turn};
use attache::wire::v1::*;
use attache::{Error, Prompt, Result, StopReason};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent_rig::{Rig, new};

type Log = Arc<Mutex<Vec<String>>>;

/// A session with everything that can be switched. It refuses what is called `no`.
struct Switches {
    log: Log,
    handle: SessionHandle,
    go: Arc<Notify>,
}

impl Switches {
    fn note(&self, what: String) -> Result<()> {
        if what.ends_with(" no") {
            return Err(Error::refuse(-31000, "not that one"));
        }
        self.log.lock().unwrap().push(what);
        Ok(())
    }
}

impl AgentSession for Switches {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "wait" => self.go.notified().await,
            "mode" => self.handle.set_mode("code").await?,
            "ghost mode" => assert!(self.handle.set_mode("ghost").await.is_err()),
            "option" => self.handle.set_option("level", OptionValue::Choice("high".to_owned())).await?,
            "mode option" => self.handle.set_option("mode", OptionValue::Choice("ask".to_owned())).await?,
            "options" => {
                let list = vec![SessionConfigOption::boolean("only", "Only", true), level("low")];
                self.handle.set_options(list).await?;
                let bad = vec![level("ghost")];
                assert!(self.handle.set_options(bad).await.is_err());
            }
            "how" => self.handle.set_options(vec![how("ask"), level("high")]).await?,
            "commands" => self.handle.set_commands(vec![AvailableCommand::new("new", "New")]).await?,
            "title" => {
                self.handle.set_title(Some("A title".to_owned())).await?;
                self.handle.set_title(None).await?;
            }
            _ => {}
        }
        turn.say("done").await?;
        Ok(StopReason::EndTurn)
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.note(format!("mode {mode}"))
    }

    async fn model_changed(&self, model: &ModelId) -> Result<()> {
        self.note(format!("model {model}"))
    }

    async fn option_changed(&self, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
        match value {
            OptionValue::Choice(choice) => self.note(format!("{id} {choice}")),
            OptionValue::Flag(flag) => self.note(format!("{id} {flag}")),
            _ => Ok(()),
        }
    }
}

fn choices(ids: &[&str]) -> Vec<SessionConfigSelectOption> {
    ids.iter().map(|id| SessionConfigSelectOption::new(*id, *id)).collect()
}

fn level(current: &str) -> SessionConfigOption {
    SessionConfigOption::select("level", "Level", current.to_owned(), choices(&["low", "high", "no"]))
}

/// Modes, models and options that overlap, and a boolean.
fn switchboard(log: &Log, go: &Arc<Notify>) -> Agent {
    let (log, go) = (log.clone(), go.clone());
    Agent::new(move |request: OpenRequest| {
        let session = Switches { log: log.clone(), handle: request.session, go: go.clone() };
        let modes = ["ask", "code", "no"].map(|id| SessionMode::new(id, id)).to_vec();
        let models = ["small", "big", "no"].map(|id| ModelInfo::new(id, id)).to_vec();
        let options = vec![
            SessionConfigOption::select("mode", "Mode", "ask".to_owned(), choices(&["ask", "code", "no"]))
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(
                "model",
                "Model",
                "small".to_owned(),
                choices(&["small", "big", "no"]),
            )
            .category(SessionConfigOptionCategory::Model),
            level("low"),
            SessionConfigOption::boolean("fast", "Fast", false),
        ];
        let open = OpenedSession::new(session)
            .id("s1")
            .modes(SessionModeState::new("ask", modes))
            .models(SessionModelState::new("small", models))
            .options(options);
        async { Ok(open) }
    })
}

fn how(current: &str) -> SessionConfigOption {
    SessionConfigOption::select("how", "How", current.to_owned(), choices(&["ask", "code", "no"]))
        .category(SessionConfigOptionCategory::Mode)
}

/// An agent whose modes are an option, for both versions.
fn with_mode_option(log: &Log) -> Agent {
    let log = log.clone();
    Agent::new(move |request: OpenRequest| {
        let session = Switches { log: log.clone(), handle: request.session, go: Arc::new(Notify::new()) };
        let open = OpenedSession::new(session).id("s1").options(vec![level("low"), how("ask")]);
        async { Ok(open) }
    })
}

#[tokio::test(start_paused = true)]
async fn an_option_of_category_mode_is_shown_as_modes() {
    // shows MODE-01, MODE-04, MODE-10
    let log = Log::default();
    let mut rig = Rig::initialized(with_mode_option(&log), json!({})).await;
    let opened = rig.call("n", "session/new", new()).await;
    assert_eq!(opened["modes"]["currentModeId"], "ask");
    assert_eq!(opened["modes"]["availableModes"][1], json!({"id": "code", "name": "code"}));
    assert_eq!(values(&opened["configOptions"]), ["low", "ask"]);
    // `session/set_mode` changes the option.
    rig.client.request("m", "session/set_mode", json!({"sessionId": "s1", "modeId": "code"})).await;
    let update = rig.client.expect("session/update").await["params"]["update"].take();
    assert_eq!(values(&update["configOptions"]), ["low", "code"]);
    assert_eq!(rig.client.result("m").await, json!({}));
    assert_eq!(*log.lock().unwrap(), ["how code"]);
    rig.expect_error("session/set_mode", json!({"sessionId": "s1", "modeId": "ghost"}), -32602).await;
    // The option changes the mode.
    let set = json!({"sessionId": "s1", "configId": "how", "value": "ask"});
    rig.client.request("o", "session/set_config_option", set).await;
    let update = rig.client.expect("session/update").await["params"]["update"].take();
    assert_eq!(update, json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"}));
    assert_eq!(values(&rig.client.result("o").await["configOptions"]), ["low", "ask"]);
    // So does the agent.
    for (prompt, mode, options) in [("mode", "code", ["low", "code"]), ("how", "ask", ["ask", "high"])] {
        rig.prompt("p", "s1", prompt).await;
        let update = rig.client.expect("session/update").await["params"]["update"].take();
        assert_eq!(update, json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
        let update = rig.client.expect("session/update").await["params"]["update"].take();
        assert_eq!(values(&update["configOptions"]), options);
        rig.client.expect("session/update").await;
        rig.client.result("p").await;
    }
    // Methods of version 2 do not exist in version 1.
    for method in ["tool_call/cancel", "terminal/cancel", "auth/login"] {
        rig.expect_error(method, json!({"sessionId": "s1", "toolCallId": "t", "terminalId": "t"}), -32601)
            .await;
    }
    rig.disconnect().await;

    let mut rig = crate::agent_v2::greeted(with_mode_option(&log), json!({})).await;
    let opened = rig.call("n", "session/new", json!({"cwd": "/work"})).await;
    assert_eq!(
        (opened.get("modes"), values(&opened["configOptions"])),
        (None, vec![json!("low"), json!("ask")])
    );
    rig.disconnect().await;
}

/// The current values in a list of options.
fn values(options: &Value) -> Vec<Value> {
    options.as_array().unwrap().iter().map(|option| option["currentValue"].clone()).collect()
}

fn booleans() -> Value {
    json!({"session": {"configOptions": {"boolean": {}}}})
}

async fn switched(capabilities: Value) -> (Rig, Log, Value, Arc<Notify>) {
    let (log, go) = (Log::default(), Arc::new(Notify::new()));
    let mut rig = Rig::initialized(switchboard(&log, &go), capabilities).await;
    let opened = rig.call("n", "session/new", new()).await;
    (rig, log, opened, go)
}

#[tokio::test(start_paused = true)]
async fn a_new_session_reports_its_settings() {
    // shows MODE-01, MODE-02, MODEL-01, CONF-01, CONF-07, CONF-08, CONF-21
    let (_, _, opened, _) = switched(json!({})).await;
    assert_eq!(opened["modes"]["currentModeId"], "ask");
    assert_eq!(opened["modes"]["availableModes"][1], json!({"id": "code", "name": "code"}));
    assert_eq!(opened["models"]["currentModelId"], "small");
    assert_eq!(opened["models"]["availableModels"][0], json!({"modelId": "small", "name": "small"}));
    assert_eq!(values(&opened["configOptions"]), ["ask", "small", "low"]);
    assert_eq!(opened["configOptions"][0]["category"], "mode");
    let (_, _, opened, _) = switched(booleans()).await;
    assert_eq!(
        opened["configOptions"][3],
        json!({"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false})
    );
}

#[tokio::test(start_paused = true)]
async fn modes_and_models_are_switched() {
    // shows MODE-04, MODE-05, MODE-10, MODE-11, MODEL-02, MODEL-03, CONF-16
    let (mut rig, log, _, _) = switched(json!({})).await;
    rig.client.request("m", "session/set_mode", json!({"sessionId": "s1", "modeId": "code"})).await;
    let line = rig.client.expect("session/update").await;
    assert_eq!(line["params"]["update"]["sessionUpdate"], "config_option_update");
    assert_eq!(values(&line["params"]["update"]["configOptions"]), ["code", "small", "low"]);
    assert_eq!(rig.client.result("m").await, json!({}));
    rig.client.request("m", "session/set_mode", json!({"sessionId": "s1", "mode": "ask"})).await; // tolerated
    rig.client.expect("session/update").await;
    rig.client.result("m").await;
    rig.client.request("m", "session/set_model", json!({"sessionId": "s1", "modelId": "big"})).await;
    let line = rig.client.expect("session/update").await;
    assert_eq!(values(&line["params"]["update"]["configOptions"]), ["ask", "big", "low"]);
    rig.client.result("m").await;
    assert_eq!(*log.lock().unwrap(), ["mode code", "mode ask", "model big"]);

    rig.expect_error("session/set_mode", json!({"sessionId": "s1", "modeId": "ghost"}), -32602).await;
    rig.expect_error("session/set_mode", json!({"sessionId": "s1"}), -32602).await;
    rig.expect_error("session/set_mode", json!({"sessionId": "ghost", "modeId": "ask"}), -32002).await;
    rig.expect_error("session/set_model", json!({"sessionId": "s1", "modelId": "ghost"}), -32602).await;
    // what the author refuses changes nothing
    rig.expect_error("session/set_mode", json!({"sessionId": "s1", "modeId": "no"}), -31000).await;
    rig.expect_error("session/set_model", json!({"sessionId": "s1", "modelId": "no"}), -31000).await;
    let set = json!({"sessionId": "s1", "configId": "level", "value": "high"});
    let list = rig.call("o", "session/set_config_option", set).await;
    assert_eq!(values(&list["configOptions"]), ["ask", "big", "high"]);
}

#[tokio::test(start_paused = true)]
async fn options_are_set() {
    // shows CONF-13, CONF-14, CONF-15, CONF-18, CONF-19, MODE-10, MODEL-03
    let (mut rig, log, _, _) = switched(booleans()).await;
    let set = |id: &str, value: Value| json!({"sessionId": "s1", "configId": id, "value": value});
    let list = rig.call("o", "session/set_config_option", set("level", json!("high"))).await;
    assert_eq!(values(&list["configOptions"]), [json!("ask"), json!("small"), json!("high"), json!(false)]);
    let typed = json!({"sessionId": "s1", "configId": "fast", "type": "boolean", "value": true});
    let list = rig.call("o", "session/set_config_option", typed).await;
    assert_eq!(values(&list["configOptions"])[3], true);
    let list = rig.call("o", "session/set_config_option", set("fast", json!(false))).await; // tolerated
    assert_eq!(values(&list["configOptions"])[3], false);

    // the other windows follow
    rig.client.request("o", "session/set_config_option", set("mode", json!("code"))).await;
    rig.expect_update("s1", json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})).await;
    rig.client.result("o").await;
    let list = rig.call("o", "session/set_config_option", set("model", json!("big"))).await;
    assert_eq!(values(&list["configOptions"])[..2], ["code", "big"]);
    assert_eq!(*log.lock().unwrap(), ["level high", "fast true", "fast false", "mode code", "model big"]);

    for (id, value, code) in [
        ("ghost", json!("x"), -32602),
        ("level", json!("ghost"), -32602),
        ("level", json!(true), -32602),
        ("fast", json!("true"), -32602),
        ("level", json!(5), -32602),
        ("level", json!(null), -32602),
        ("level", json!("no"), -31000),
    ] {
        rig.expect_error("session/set_config_option", set(id, value), code).await;
    }
    let odd = json!({"sessionId": "s1", "configId": "level", "type": "boolean", "value": "high"});
    rig.client.request("o", "session/set_config_option", odd).await;
    let answer = rig.client.line().await;
    assert!(answer["error"]["code"] == -32602 || values(&answer["result"]["configOptions"])[2] == "high");
    rig.expect_error(
        "session/set_config_option",
        json!({"sessionId": "ghost", "configId": "level", "value": "x"}),
        -32002,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn everything_can_be_switched_during_a_turn() {
    // shows MODE-06, CONF-17, RPC-20
    let (mut rig, _, _, go) = switched(booleans()).await;
    rig.prompt("p", "s1", "wait").await;
    rig.client.request("m", "session/set_mode", json!({"sessionId": "s1", "modeId": "code"})).await;
    rig.client.expect("session/update").await;
    rig.client.result("m").await;
    let set = json!({"sessionId": "s1", "configId": "level", "value": "high"});
    rig.call("o", "session/set_config_option", set).await;
    go.notify_one();
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_switches_by_itself() {
    // shows MODE-07, MODE-10, CONF-07, CONF-16, CMD-02, CMD-03, LIST-12, LIST-13
    let (mut rig, log, _, _) = switched(json!({})).await;
    let list = |rig_line: Value| values(&rig_line["params"]["update"]["configOptions"]);
    rig.prompt("p", "s1", "mode").await;
    rig.expect_update("s1", json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})).await;
    assert_eq!(list(rig.client.expect("session/update").await), ["code", "small", "low"]);
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    rig.prompt("p", "s1", "ghost mode").await;
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    rig.prompt("p", "s1", "option").await;
    assert_eq!(list(rig.client.expect("session/update").await), ["code", "small", "high"]);
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    rig.prompt("p", "s1", "mode option").await;
    rig.expect_update("s1", json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"})).await;
    assert_eq!(list(rig.client.expect("session/update").await), ["ask", "small", "high"]);
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    // the whole list; the boolean is not for this client
    rig.prompt("p", "s1", "options").await;
    assert_eq!(list(rig.client.expect("session/update").await), ["low"]);
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    rig.prompt("p", "s1", "commands").await;
    let commands = json!([{"name": "new", "description": "New"}]);
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
    )
    .await;
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;

    rig.prompt("p", "s1", "title").await;
    rig.expect_update("s1", json!({"sessionUpdate": "session_info_update", "title": "A title"})).await;
    rig.expect_update("s1", json!({"sessionUpdate": "session_info_update", "title": null})).await;
    rig.expect_text("s1", "done").await;
    rig.expect_end("p", "end_turn").await;
    assert!(log.lock().unwrap().is_empty(), "the author gets no event for his own change");
}

/// Stored sessions, as a list of ids, and which of them are archived.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Vec<(String, bool)>>>);

impl Store {
    fn has(&self, id: &SessionId) -> bool {
        self.0.lock().unwrap().iter().any(|(stored, _)| id.as_str() == stored)
    }

    fn archive(&self, id: &SessionId, archived: bool) -> Result<()> {
        let mut stored = self.0.lock().unwrap();
        let found = stored.iter_mut().find(|(stored, _)| id.as_str() == stored);
        found.ok_or_else(|| Error::not_found("no such session"))?.1 = archived;
        Ok(())
    }

    fn page(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        if request.cwd.as_deref().is_some_and(|cwd| cwd != "/work") {
            return Ok(ListSessionsResponse::new(Vec::new()));
        }
        let begin: usize = match request.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| Error::invalid_params("unknown cursor"))?,
        };
        let stored = self.0.lock().unwrap();
        let page: Vec<_> = stored
            .iter()
            .skip(begin)
            .take(2)
            .map(|(id, archived)| {
                let info = SessionInfo::new(id.as_str(), "/work");
                if *archived { info.archived(true) } else { info }
            })
            .collect();
        let next = (begin + 2 < stored.len()).then(|| (begin + 2).to_string());
        Ok(ListSessionsResponse::new(page).next_cursor(next))
    }
}

struct Stored(Log);

impl AgentSession for Stored {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        turn.until_cancelled(std::future::pending::<()>()).await?;
        Ok(StopReason::EndTurn)
    }

    async fn closed(&self) {
        self.0.lock().unwrap().push("closed".to_owned());
    }
}

fn archivist(store: &Store, log: &Log) -> Agent {
    let log = log.clone();
    let [a, b, c, d, e, f] = std::array::from_fn(|_| store.clone());
    Agent::new(move |_| {
        let session = OpenedSession::new(Stored(log.clone())).id("a");
        async { Ok(session) }
    })
    .list(move |request| std::future::ready(a.page(request)))
    .delete(move |id| {
        let known = b.has(&id);
        b.0.lock().unwrap().retain(|(stored, _)| id.as_str() != stored);
        std::future::ready(if known { Ok(()) } else { Err(Error::not_found("no such session")) })
    })
    .archive(
        move |id| std::future::ready(c.archive(&id, true)),
        move |id| std::future::ready(d.archive(&id, false)),
    )
    .titles(move |id, title| {
        let known = e.has(&id);
        std::future::ready(if known { Ok(title.to_uppercase()) } else { Err(Error::not_found("?")) })
    })
    .status(move |id| {
        let known = f.has(&id);
        std::future::ready(if known { Ok(SessionStatus::Saved) } else { Err(Error::not_found("?")) })
    })
}

async fn stored(ids: &[&str]) -> (Rig, Store, Log) {
    let (store, log) = (Store::default(), Log::default());
    *store.0.lock().unwrap() = ids.iter().map(|id| ((*id).to_owned(), false)).collect();
    let rig = Rig::initialized(archivist(&store, &log), json!({})).await;
    (rig, store, log)
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages() {
    // shows LIST-03, LIST-04, LIST-05, LIST-07, LIST-09, LIST-10, LIST-11, LIST-14, SSTAT-05,
    // SSTAT-06
    let (mut rig, _, _) = stored(&["a", "b", "c"]).await;
    for _ in 0..2 {
        let page = rig.call("l", "session/list", json!({})).await;
        let first = json!({"sessionId": "a", "cwd": "/work", "archived": false});
        assert_eq!(page["sessions"][0], first);
        assert_eq!(page["sessions"].as_array().unwrap().len(), 2);
        let page = rig.call("l", "session/list", json!({"cursor": page["nextCursor"]})).await;
        assert_eq!(page, json!({"sessions": [{"sessionId": "c", "cwd": "/work", "archived": false}]}));
    }
    assert_eq!(rig.call("l", "session/list", json!({"cwd": "/else"})).await, json!({"sessions": []}));
    let draft = json!({"cwd": "/work", "additionalDirectories": ["/a"], "cursor": null});
    assert_eq!(rig.call("l", "session/list", draft).await["sessions"].as_array().unwrap().len(), 2);
    rig.expect_error("session/list", json!({"cursor": "ghost"}), -32602).await;
    rig.expect_error("session/list", json!({"cursor": 5}), -32602).await;
    for filter in ["exclude", "include", "only"] {
        rig.call("l", "session/list", json!({"archived": filter})).await;
    }
    rig.expect_error("session/list", json!({"archived": "_x"}), -32602).await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_is_not_supported_is_refused() {
    // shows SSTAT-06
    let agent = Agent::new(|_| async { Err::<Stored, _>(Error::Cancelled) })
        .list(|_| async { Ok(ListSessionsResponse::new(vec![SessionInfo::new("a", "/")])) });
    let mut rig = Rig::initialized(agent, json!({})).await;
    for filter in ["exclude", "include", "only", "_x"] {
        rig.expect_error("session/list", json!({"archived": filter}), -32602).await;
    }
    let list = json!({"sessions": [{"sessionId": "a", "cwd": "/"}]});
    assert_eq!(rig.call("l", "session/list", json!({})).await, list);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_is_gone() {
    // shows DEL-03, DEL-04
    let (mut rig, _, log) = stored(&["a", "b"]).await;
    rig.call("n", "session/new", new()).await;
    rig.prompt("p", "a", "").await;
    rig.client.request("d", "session/delete", json!({"sessionId": "a"})).await;
    rig.expect_end("p", "cancelled").await;
    assert_eq!(rig.client.result("d").await, json!({}));
    assert_eq!(*log.lock().unwrap(), ["closed"]);
    rig.expect_error("session/prompt", crate::agent_rig::prompt("a", ""), -32002).await;
    assert_eq!(rig.call("l", "session/list", json!({})).await["sessions"][0]["sessionId"], "b");
    for id in ["a", "ghost", "b", "b"] {
        assert_eq!(rig.call("d", "session/delete", json!({"sessionId": id})).await, json!({}));
    }
    assert_eq!(rig.call("l", "session/list", json!({})).await, json!({"sessions": []}));
}

#[tokio::test(start_paused = true)]
async fn archiving_closes_first() {
    // shows SSTAT-04, SSTAT-05, SSTAT-07
    let (mut rig, _, log) = stored(&["a"]).await;
    rig.call("n", "session/new", new()).await;
    rig.prompt("p", "a", "").await;
    rig.client.request("x", "session/archive", json!({"sessionId": "a"})).await;
    rig.expect_end("p", "cancelled").await;
    assert_eq!(rig.client.result("x").await, json!({}));
    assert_eq!(*log.lock().unwrap(), ["closed"]);
    assert_eq!(rig.call("l", "session/list", json!({})).await["sessions"][0]["archived"], true);
    rig.call("x", "session/archive", json!({"sessionId": "a"})).await;
    for _ in 0..2 {
        rig.call("x", "session/unarchive", json!({"sessionId": "a"})).await;
    }
    assert_eq!(rig.call("l", "session/list", json!({})).await["sessions"][0]["archived"], false);
    rig.expect_error("session/archive", json!({"sessionId": "ghost"}), -32002).await;
    rig.expect_error("session/unarchive", json!({"sessionId": "ghost"}), -32002).await;
}

#[tokio::test(start_paused = true)]
async fn status_looks_and_titles_are_stored() {
    // shows SSTAT-01, SSTAT-08
    let (mut rig, _, log) = stored(&["a"]).await;
    assert_eq!(rig.call("s", "session/status", json!({"sessionId": "a"})).await, json!({"status": "saved"}));
    rig.call("n", "session/new", new()).await;
    assert_eq!(rig.call("s", "session/status", json!({"sessionId": "a"})).await, json!({"status": "open"}));
    rig.expect_error("session/status", json!({"sessionId": "ghost"}), -32002).await;
    let title = |title: &str| json!({"sessionId": "a", "title": title});
    assert_eq!(rig.call("t", "session/set_title", title("  x ")).await, json!({"title": "X"}));
    for empty in ["", "  ", "\n"] {
        rig.expect_error("session/set_title", title(empty), -32602).await;
    }
    rig.expect_error("session/set_title", json!({"sessionId": "a"}), -32602).await;
    assert!(log.lock().unwrap().is_empty());
}

/// Takes longer for some changes than for others, and says in which order they were done.
struct Unhurried(Arc<Mutex<String>>);

impl AgentSession for Unhurried {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        let done = self.0.lock().unwrap().clone();
        turn.say(done).await?;
        Ok(StopReason::EndTurn)
    }

    async fn option_changed(&self, _: &SessionConfigId, value: &OptionValue) -> Result<()> {
        let OptionValue::Choice(choice) = value else { return Ok(()) };
        match choice.as_str() {
            "low" => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            "no" => std::future::pending().await,
            _ => {}
        }
        self.0.lock().unwrap().push_str(choice);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn changes_happen_in_the_order_of_the_wire() {
    // and a prompt behind them sees them all
    let agent = Agent::new(|_| async {
        Ok(OpenedSession::new(Unhurried(Arc::default())).id("s1").options(vec![level("low")]))
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.call("n", "session/new", new()).await;
    let set = |value: &str| json!({"sessionId": "s1", "configId": "level", "value": value});
    for (id, value) in [("1", "low"), ("2", "high"), ("3", "low")] {
        rig.client.request(id, "session/set_config_option", set(value)).await;
    }
    rig.prompt("p", "s1", "").await;
    for (id, value) in [("1", "low"), ("2", "high"), ("3", "low")] {
        assert_eq!(values(&rig.client.result(id).await["configOptions"]), [value]);
    }
    rig.expect_text("s1", "lowhighlow").await;
    rig.expect_end("p", "end_turn").await;

    // one that never ends holds up what is behind it until it is cancelled
    rig.client.request("stuck", "session/set_config_option", set("no")).await;
    rig.client.request("next", "session/set_config_option", set("high")).await;
    rig.prompt("p", "s1", "").await;
    rig.client.expect_silence().await;
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
    rig.client.notify("$/cancel_request", json!({"requestId": "stuck"})).await;
    rig.client.error("stuck", -32800).await;
    assert_eq!(values(&rig.client.result("next").await["configOptions"]), ["high"]);
}
