//! Questions: permissions and elicitations, each answered exactly once.

use attache::client::{Client, ConnectionEvent, Event, RequestedInput};
use attache::wire::v1::{ElicitationContentValue, Fields, PermissionOptionKind};
use serde_json::{Value, json};

use crate::script::{Script, connect, open};
use crate::turn_events::SkipStates;

fn options(kinds: &[(&str, &str)]) -> Value {
    kinds.iter().map(|(id, kind)| json!({"optionId": id, "name": id, "kind": kind})).collect()
}

async fn ask(agent: &mut Script, id: i64, options: Value) {
    let params = json!({"sessionId": "s1", "toolCall": {"toolCallId": "t1"}, "options": options});
    agent.request(id, "session/request_permission", params).await;
}

#[tokio::test(start_paused = true)]
async fn an_option_is_chosen_by_its_id() {
    // shows PERM-04, PERM-11
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    let twice = options(&[("a", "allow_once"), ("b", "allow_once"), ("c", "reject_once")]);
    ask(&mut agent, 1, twice.clone()).await;
    let Some(Event::Permission(question)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(question.tool_call().tool_call_id, "t1");
    let second = question.options()[1].option_id.clone();
    question.choose(&second).unwrap();
    assert_eq!(agent.result(1).await, json!({"outcome": {"outcome": "selected", "optionId": "b"}}));

    ask(&mut agent, 2, twice.clone()).await;
    let Some(Event::Permission(question)) = turn.after_states().await.unwrap() else { panic!() };
    question.choose_kind(PermissionOptionKind::AllowOnce);
    assert_eq!(agent.result(2).await["outcome"]["optionId"], "a");

    // what was not offered cannot be chosen
    ask(&mut agent, 3, twice.clone()).await;
    let Some(Event::Permission(question)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(question.choose(&"ghost".into()).is_err());
    assert_eq!(agent.result(3).await["outcome"], json!({"outcome": "cancelled"}));

    ask(&mut agent, 4, twice).await;
    let Some(Event::Permission(question)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(question.first_of(PermissionOptionKind::AllowAlways).is_none());
    question.choose_kind(PermissionOptionKind::AllowAlways);
    assert_eq!(agent.result(4).await["outcome"], json!({"outcome": "cancelled"}));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_question_is_answered() {
    let (mut session, mut agent) = open(Client::new().elicitation_forms()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    agent.ask("a", "s1").await;
    drop(turn.after_states().await.unwrap());
    assert_eq!(agent.result("a").await["outcome"]["outcome"], "cancelled");
    let form = json!({"sessionId": "s1", "mode": "form", "message": "m", "requestedSchema": {}});
    agent.request("b", "elicitation/create", form).await;
    drop(turn.after_states().await.unwrap());
    assert_eq!(agent.result("b").await, json!({"action": "cancel"}));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_agent_takes_back_is_answered() {
    // shows CANCEL-16, V2-43
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    agent.ask(5, "s1").await;
    let Some(Event::Permission(question)) = turn.after_states().await.unwrap() else { panic!() };
    agent.notify("$/cancel_request", json!({"requestId": 5})).await;
    assert_eq!(agent.result(5).await["outcome"]["outcome"], "cancelled");
    question.withdrawn().await;
    question.choose_kind(PermissionOptionKind::AllowOnce);
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_stops_nothing_else() {
    let client = Client::new().read_files(|_, _| async { Ok("text".to_owned()) });
    let (mut session, mut agent) = open(client).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.ask(1, "s1").await;
    agent.request(2, "fs/read_text_file", json!({"sessionId": "s1", "path": "/work/a"})).await;
    assert_eq!(agent.result(2).await, json!({"content": "text"}));
    agent.ask(3, "s1").await;
    let Some(Event::Permission(first)) = turn.after_states().await.unwrap() else { panic!() };
    let Some(Event::Permission(second)) = turn.after_states().await.unwrap() else { panic!() };
    second.choose_kind(PermissionOptionKind::RejectOnce);
    assert_eq!(agent.result(3).await["outcome"]["optionId"], "no");
    first.choose_kind(PermissionOptionKind::AllowOnce);
    assert_eq!(agent.result(1).await["outcome"]["optionId"], "yes");
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

fn form() -> Value {
    json!({"type": "object", "required": ["name", "age"], "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "mail": {"type": "string", "format": "email"},
        "day": {"type": "string", "format": "date"},
        "when": {"type": "string", "format": "date-time"},
        "site": {"type": "string", "format": "uri"},
        "size": {"type": "string", "enum": ["S", "M"]},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "weight": {"type": "number", "minimum": 0.5},
        "sure": {"type": "boolean"},
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["x", "y"]}},
        "future": {"type": "_hologram"},
    }})
}

#[tokio::test(start_paused = true)]
async fn a_form_is_checked_before_it_is_sent() {
    // shows ELIC-11, ELIC-18, ELIC-19, ELIC-33
    let (mut session, mut agent) = open(Client::new().elicitation_forms()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    let params = json!({"sessionId": "s1", "toolCallId": "t", "mode": "form", "message": "who?", "requestedSchema": form()});
    agent.request(1, "elicitation/create", params.clone()).await;
    let Some(Event::Elicitation(question)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(question.message(), "who?");
    assert_eq!(question.tool_call_id().unwrap(), &"t");
    assert!(
        matches!(question.requested(), Some(RequestedInput::Form(schema)) if schema.properties.len() == 12)
    );
    let values = |pairs: &[(&str, ElicitationContentValue)]| -> Fields<ElicitationContentValue> {
        pairs.iter().map(|(name, value)| (*name, value.clone())).collect()
    };
    let list = |texts: &[&str]| {
        ElicitationContentValue::from(texts.iter().map(|t| t.to_string()).collect::<Vec<_>>())
    };
    let bad = [
        ("name", "x".into()),
        ("name", "too long".into()),
        ("name", 5.into_value()),
        ("mail", "nobody".into()),
        ("day", "2026-02-30".into()),
        ("when", "2026-02-28".into()),
        ("when", "2026-02-28T25:00:00Z".into()),
        ("site", "no uri".into()),
        ("size", "XL".into()),
        ("color", "g".into()),
        ("age", 200.into_value()),
        ("age", 1.5.into()),
        ("weight", 0.into_value()),
        ("sure", "yes".into()),
        ("tags", list(&[])),
        ("tags", list(&["x", "y", "x"])),
        ("tags", list(&["z"])),
        ("unknown", "x".into()),
    ];
    for (name, value) in bad {
        let mut content = values(&[("name", "Ann".into()), ("age", 5.into_value())]);
        content.insert(name, value.clone());
        let problems = question.problems(&content);
        assert_eq!(problems.len(), 1, "{name} {value:?}: {problems:?}");
        assert_eq!(problems[0].property, name);
    }
    let unfit = question.accept(values(&[("name", "Ann".into())])).unwrap_err();
    assert_eq!(unfit.to_string(), "the form does not fit its schema: `age` is required");
    let good = values(&[
        ("name", "Änn".into()),
        ("mail", "a@b.c".into()),
        ("day", "2024-02-29".into()),
        ("when", "2026-02-28T23:59:59.5+01:00".into()),
        ("site", "https://a.b/c".into()),
        ("size", "M".into()),
        ("color", "r".into()),
        ("age", 5.into_value()),
        ("weight", 2.into_value()),
        ("sure", true.into()),
        ("tags", list(&["x", "y"])),
        ("future", "anything".into()),
    ]);
    unfit.ask.accept(good).unwrap();
    let answer = agent.result(1).await;
    assert_eq!(answer["action"], "accept");
    assert_eq!(answer["content"]["age"], 5);
    assert_eq!(answer["content"]["tags"], json!(["x", "y"]));

    agent.request(2, "elicitation/create", params.clone()).await;
    let Some(Event::Elicitation(question)) = turn.after_states().await.unwrap() else { panic!() };
    question.decline();
    assert_eq!(agent.result(2).await, json!({"action": "decline"}));
    agent.request(3, "elicitation/create", params).await;
    let Some(Event::Elicitation(question)) = turn.after_states().await.unwrap() else { panic!() };
    question.agree().unwrap_err().ask.cancel();
    assert_eq!(agent.result(3).await, json!({"action": "cancel"}));
}

/// Whole numbers without a type are not `i64`.
trait IntoValue {
    fn into_value(self) -> ElicitationContentValue;
}

impl IntoValue for i64 {
    fn into_value(self) -> ElicitationContentValue {
        self.into()
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_to_visit_and_its_end() {
    // shows ELIC-17, ELIC-22, ELIC-25
    let (mut session, mut agent) = open(Client::new().elicitation_urls()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    let params = json!({"sessionId": "s1", "mode": "url", "message": "visit", "url": "https://a.b", "elicitationId": " odd \u{1F600}"});
    agent.request(1, "elicitation/create", params).await;
    let Some(Event::Elicitation(question)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(matches!(question.requested(), Some(RequestedInput::Url { url: "https://a.b", .. })));
    question.agree().unwrap();
    assert_eq!(agent.result(1).await, json!({"action": "accept"}));
    agent.notify("elicitation/complete", json!({"elicitationId": "ghost"})).await;
    agent.notify("elicitation/complete", json!({"elicitationId": " odd \u{1F600}"})).await;
    agent.notify("elicitation/complete", json!({"elicitationId": " odd \u{1F600}"})).await;
    agent.say("s1", "done").await;
    let Some(Event::ElicitationComplete(id)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(id, " odd \u{1F600}");
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_was_not_offered_is_refused() {
    // shows ELIC-02, ELIC-04, ELIC-33
    let form = json!({"sessionId": "s1", "mode": "form", "message": "m", "requestedSchema": {}});
    let url =
        json!({"sessionId": "s1", "mode": "url", "message": "m", "url": "https://a", "elicitationId": "e"});
    let other = json!({"sessionId": "s1", "mode": "_x", "message": "m"});
    let none = json!({"sessionId": "s1", "message": "m"});
    let (_session, mut agent) = open(Client::new()).await;
    agent.request(1, "elicitation/create", form.clone()).await;
    agent.error(1, -32601).await;
    let (_session, mut agent) = open(Client::new().elicitation_forms()).await;
    for (id, params) in [url.clone(), other.clone(), none.clone()].into_iter().enumerate() {
        agent.request(id, "elicitation/create", params).await;
        agent.error(id, -32602).await;
    }
    let (_session, mut agent) = open(Client::new().elicitation_urls()).await;
    for (id, params) in [form, other, none].into_iter().enumerate() {
        agent.request(id, "elicitation/create", params).await;
        agent.error(id, -32602).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_of_the_web_is_refused() {
    // shows ELIC-28
    let (_session, mut agent) = open(Client::new().elicitation_urls()).await;
    let addresses = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://",
        "data:text/html,x",
        "https://a b",
        "https://a\u{7}",
    ];
    for (id, url) in addresses.into_iter().enumerate() {
        let params =
            json!({"sessionId": "s1", "mode": "url", "message": "m", "url": url, "elicitationId": "e"});
        agent.request(id, "elicitation/create", params).await;
        agent.error(id, -32602).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_no_session_goes_to_the_connection() {
    let (handle, mut agent) = connect(Client::new().elicitation_forms(), json!({})).await;
    let form = json!({"requestId": 1, "mode": "form", "message": "m", "requestedSchema": {}});
    // without a reader it is answered at once
    agent.request(1, "elicitation/create", form.clone()).await;
    assert_eq!(agent.result(1).await, json!({"action": "cancel"}));
    let mut events = handle.events().unwrap();
    assert!(handle.events().is_none());
    agent.request(2, "elicitation/create", form).await;
    let Some(ConnectionEvent::Elicitation(question)) = events.next().await else { panic!() };
    question.agree().unwrap();
    assert_eq!(agent.result(2).await, json!({"action": "accept", "content": {}}));
}
