//! Rights and tenants.

use attache_hub::{Identity, Role};
use serde_json::json;

use crate::rig::{Rig, prompt};

#[tokio::test]
async fn a_watcher_sees_everything_and_does_nothing() {
    let rig = Rig::new();
    let mut driver = rig.client_as(Identity::new("driver").role(Role::Drive), false).await;
    let mut watcher = rig.client_as(Identity::new("watcher").role(Role::Watch), false).await;
    let session = driver.new_session().await;
    watcher.load(&session).await;
    for (method, params) in [
        ("session/new", json!({"cwd": "/", "mcpServers": []})),
        ("session/prompt", prompt(&session, "hello")),
        ("session/set_mode", json!({"sessionId": session, "modeId": "code"})),
        ("session/delete", json!({"sessionId": session})),
        ("authenticate", json!({"methodId": "x"})),
    ] {
        let refused = watcher.call(method, params).await;
        assert_eq!(refused["error"]["code"], -32600, "{method}: {refused}");
    }
    let turn = driver.start_prompt(&session, "ask may I").await;
    let question = driver.question().await;
    watcher.notify("session/cancel", json!({"sessionId": session})).await;
    driver.choose(&question, "yes").await;
    driver.response(turn).await;
    watcher.until(|message| message["method"] == "_attache/turn_ended").await;
    assert_eq!(watcher.texts(), ["> ask may I", "answer yes"]);
    assert!(!watcher.seen.iter().any(|message| message["method"] == "session/request_permission"));
    // Closing only detaches the watcher.
    watcher.call("session/close", json!({"sessionId": session})).await;
    driver.prompt(&session, "still there").await;
    assert_eq!(rig.record.of("start").len(), 1);
}

#[tokio::test]
async fn another_tenants_session_does_not_exist() {
    let rig = Rig::new();
    let mut mine = rig.client_as(Identity::new("a").tenant("a"), false).await;
    let mut theirs = rig.client_as(Identity::new("b").tenant("b"), false).await;
    let session = mine.new_session().await;
    mine.prompt(&session, "secret").await;
    for method in [
        "session/load",
        "session/resume",
        "session/prompt",
        "session/set_mode",
        "session/close",
        "session/delete",
    ] {
        let foreign = theirs.call(method, prompt(&session, "x")).await;
        let unknown = theirs.call(method, prompt("none", "x")).await;
        let text = foreign["error"].to_string().replace(&format!("\"{session}\""), "\"none\"");
        assert_eq!(text, unknown["error"].to_string(), "{method}");
        assert_eq!(foreign["error"]["code"], -32002, "{method}");
    }
    assert_eq!(theirs.call("session/list", json!({})).await["result"]["sessions"], json!([]));
    // The same id can be theirs as well.
    assert_eq!(theirs.new_session().await, session);
    assert!(theirs.texts().is_empty());
}
