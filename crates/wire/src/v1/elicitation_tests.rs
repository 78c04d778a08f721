#![allow(clippy::unwrap_used)]

use super::*;

fn read(text: &str) -> serde_json::Result<CreateElicitationRequest> {
    serde_json::from_str(text)
}

#[test]
fn a_question_has_a_mode_a_scope_and_a_message() {
    // shows ELIC-04, ELIC-05, ELIC-09
    for bad in [
        r#"{"sessionId":"s","message":"m","requestedSchema":{}}"#,
        r#"{"mode":"form","message":"m","requestedSchema":{}}"#,
        r#"{"mode":"form","sessionId":5,"message":"m","requestedSchema":{}}"#,
        r#"{"mode":"form","sessionId":"s","requestedSchema":{}}"#,
        r#"{"mode":"form","sessionId":"s","message":"m"}"#,
        r#"{"mode":"url","sessionId":"s","message":"m","elicitationId":"e"}"#,
        r#"{"mode":"url","sessionId":"s","message":"m","url":"https://e.com"}"#,
        r#"{"mode":"_qr","message":"m"}"#,
        r#"{"mode":"url","requestId":{},"message":"m","elicitationId":"e","url":"https://e.com"}"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_session_counts_before_a_request() {
    // shows ELIC-05
    let scope = |members: &str| {
        let text = format!(r#"{{{members},"message":"m","requestedSchema":{{}},"mode":"form"}}"#);
        read(&text).unwrap().mode.scope().clone()
    };
    assert_eq!(scope(r#""requestId":1,"sessionId":"s""#), SessionId::from("s").into());
    assert_eq!(scope(r#""sessionId":null,"requestId":"1""#), RequestId::from("1").into());
    assert_eq!(scope(r#""sessionId":5,"requestId":1"#), RequestId::from(1).into());
    assert_eq!(scope(r#""requestId":null"#), RequestId::Null.into());
    let call = ElicitationSessionScope::new("s").tool_call_id(ToolCallId::from("c"));
    assert_eq!(scope(r#""toolCallId":"c","sessionId":"s""#), call.into());
    assert_eq!(scope(r#""toolCallId":5,"sessionId":"s""#), SessionId::from("s").into());
}

#[test]
fn unknown_modes_and_actions_are_kept_and_are_no_known_ones() {
    // shows ELIC-33
    let text = r#"{"mode":"_qr","sessionId":"s","message":"Scan","payload":[1],"url":"x"}"#;
    let request = read(text).unwrap();
    assert!(matches!(&request.mode, ElicitationMode::Other(other) if other.mode == "_qr"));
    assert_eq!(serde_json::to_string(&request).unwrap(), text);
    let text = r#"{"action":"_later","when":"tomorrow","_meta":{"a":1}}"#;
    let response: CreateElicitationResponse = serde_json::from_str(text).unwrap();
    assert!(matches!(&response.action, ElicitationAction::Other { action, .. } if action == "_later"));
    assert_eq!(serde_json::to_string(&response).unwrap(), text);
}

#[test]
fn questions_are_written_flat() {
    // shows ELIC-05
    let form = CreateElicitationRequest::form(SessionId::from("s"), "m", ElicitationSchema::new());
    let text = r#"{"mode":"form","sessionId":"s","message":"m","requestedSchema":{"type":"object"}}"#;
    assert_eq!(serde_json::to_string(&form).unwrap(), text);
    assert_eq!(read(text).unwrap(), form);
    let url = CreateElicitationRequest::url(RequestId::from(12), "m", "e", "https://e.com");
    let text = r#"{"mode":"url","requestId":12,"message":"m","elicitationId":"e","url":"https://e.com"}"#;
    assert_eq!(serde_json::to_string(&url).unwrap(), text);
    assert_eq!(read(text).unwrap(), url);
}

#[test]
fn an_answer_is_an_action_with_flat_values() {
    // shows ELIC-18
    let read = |text: &str| serde_json::from_str::<CreateElicitationResponse>(text);
    let text = concat!(
        r#"{"action":"accept","content":{"env":"prod","ratio":0.25,"whole":1.0,"count":3,"dry":false,"#,
        r#""tags":["x","y"]}}"#
    );
    let response = read(text).unwrap();
    let ElicitationAction::Accept(accept) = &response.action else { panic!() };
    let content = accept.content.as_ref().unwrap();
    assert_eq!(content.get("count"), Some(&ElicitationContentValue::Integer(3)));
    assert_eq!(content.get("whole"), Some(&ElicitationContentValue::Number(1.0)));
    assert_eq!(serde_json::to_string(&response).unwrap(), text);
    let empty = CreateElicitationResponse::new(ElicitationAcceptAction::new());
    assert_eq!(read(r#"{"content":null,"action":"accept"}"#).unwrap(), empty);
    assert_eq!(read(r#"{"action":"decline","content":5}"#).unwrap().action, ElicitationAction::Decline);
    for bad in [
        "{}",
        r#"{"action":"accept","content":["x"]}"#,
        r#"{"action":"accept","content":{"a":null}}"#,
        r#"{"action":"accept","content":{"a":{}}}"#,
        r#"{"action":"accept","content":{"a":["x",1]}}"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
