#![allow(clippy::unwrap_used)]

use super::*;
use crate::v1::*;
use crate::{Notification, Request};

fn ask<R: Request>(params: &str) -> serde_json::Result<R> {
    let raw = RawValue::from_string(params.to_owned())?;
    decode_tolerant(R::METHOD, Some(&raw))
}

#[test]
fn a_version_of_digits_is_a_number() {
    // shows INIT-05
    assert_eq!(
        ask::<InitializeRequest>(r#"{"protocolVersion":"1"}"#).unwrap().protocol_version,
        ProtocolVersion(1)
    );
    assert!(ask::<InitializeProxyRequest>(r#"{"protocolVersion":"1"}"#).is_ok());
    for bad in [r#""1.0""#, r#""""#, r#""-1""#, r#""+1""#, r#""65536""#, r#"" 1""#, "1.5", "true", "null"] {
        assert!(ask::<InitializeRequest>(&format!(r#"{{"protocolVersion":{bad}}}"#)).is_err(), "{bad}");
    }
}

#[test]
fn servers_may_be_left_out_but_the_directory_may_not() {
    assert_eq!(ask::<NewSessionRequest>(r#"{"cwd":"/a"}"#).unwrap().mcp_servers, []);
    assert_eq!(ask::<LoadSessionRequest>(r#"{"cwd":"/a","sessionId":"s"}"#).unwrap().mcp_servers, []);
    assert!(ask::<NewSessionRequest>("{}").is_err());
    assert!(ask::<NewSessionRequest>(r#"{"cwd":"/a","mcpServers":"none"}"#).is_err());
    assert!(crate::decode::<NewSessionRequest>(None).is_err());
}

#[test]
fn a_program_may_have_no_arguments_and_no_environment() {
    let new = |server: &str| {
        ask::<NewSessionRequest>(&format!(r#"{{"cwd":"/a","mcpServers":[{server}]}}"#))
            .map(|request| serde_json::to_string(&request.mcp_servers).unwrap())
    };
    let whole = r#"{"name":"n","command":"/c","args":[],"env":[]}"#;
    assert_eq!(new(r#"{"name":"n","command":"/c"}"#).unwrap(), format!("[{whole}]"));
    assert_eq!(
        new(&format!(r#"{{"name":"n","command":"/c","args":[]}},{whole}"#)).unwrap(),
        format!("[{whole},{whole}]")
    );
    // shows MCP-08: a server of another type never becomes a program
    assert!(new(r#"{"type":"http","name":"n","command":"/c"}"#).is_err());
    assert!(new(r#"{"type":"_pipe","name":"n","command":"/c"}"#).is_err());
    assert!(new(r#"{"name":"n","command":"/c","args":["a",5]}"#).is_err());
    assert!(new(r#"{"name":"n"}"#).is_err());
    let fork = r#"{"sessionId":"s","cwd":"/a","mcpServers":[{"name":"n","command":"/c"}]}"#;
    assert!(ask::<ForkSessionRequest>(fork).is_ok());
    assert!(ask::<ResumeSessionRequest>(fork).is_ok());
}

#[test]
fn a_text_is_a_prompt_of_one_block() {
    // shows PROMPT-05
    let request: PromptRequest = ask(r#"{"sessionId":"s","prompt":"a\n\"b\"","_meta":{"x":1}}"#).unwrap();
    assert_eq!(request.prompt, [ContentBlock::from("a\n\"b\"")]);
    assert_eq!(request.meta.unwrap().get("x"), Some(1));
    assert!(ask::<PromptRequest>(r#"{"sessionId":"s","prompt":["a"]}"#).is_err());
    assert!(ask::<PromptRequest>(r#"{"prompt":"a"}"#).is_err());
}

#[test]
fn a_mode_may_be_called_mode() {
    // shows MODE-05
    let mode = |params: &str| ask::<SetSessionModeRequest>(params).map(|request| request.mode_id);
    assert_eq!(mode(r#"{"sessionId":"s","mode":"plan"}"#).unwrap(), "plan");
    assert_eq!(mode(r#"{"sessionId":"s","mode":"plan","modeId":"code"}"#).unwrap(), "code");
    assert!(mode(r#"{"sessionId":"s","mode":"plan","modeId":5}"#).is_err());
}

#[test]
fn a_boolean_value_needs_no_type() {
    // shows CONF-18, CONF-19
    let value = |rest: &str| {
        let params = format!(r#"{{"sessionId":"s","configId":"c",{rest}}}"#);
        ask::<SetSessionConfigOptionRequest>(&params).map(|request| request.value)
    };
    assert_eq!(value(r#""value":true"#).unwrap(), true.into());
    assert_eq!(value(r#""value":"true""#).unwrap(), "true".into());
    assert!(value(r#""value":"x","type":"boolean""#).is_err());
    assert!(value(r#""value":true,"type":"number""#).is_err());
    assert!(value(r#""value":1"#).is_err());
}

#[test]
fn a_mode_update_may_say_mode_id() {
    // shows MODE-07
    let update = |update: &str| {
        let raw = RawValue::from_string(format!(r#"{{"sessionId":"s","update":{update}}}"#)).unwrap();
        decode_tolerant::<SessionNotification>(SessionNotification::METHOD, Some(&raw))
            .map(|notification| notification.update)
    };
    let code = CurrentModeUpdate::new("code").into();
    assert_eq!(update(r#"{"sessionUpdate":"current_mode_update","modeId":"code"}"#).unwrap(), code);
    assert_eq!(update(r#"{"currentModeId":"code","sessionUpdate":"current_mode_update"}"#).unwrap(), code);
    assert!(update(r#"{"sessionUpdate":"current_mode_update","mode":"code"}"#).is_err());
    assert!(update(r#"{"sessionUpdate":"agent_message_chunk","modeId":"code"}"#).is_err());
}

#[test]
fn a_provider_may_be_named_by_id() {
    assert_eq!(ask::<DisableProviderRequest>(r#"{"id":"p"}"#).unwrap().provider_id, "p");
    let set = r#"{"id":"p","apiType":"openai","baseUrl":"https://e.com"}"#;
    assert_eq!(ask::<SetProviderRequest>(set).unwrap().provider_id, "p");
    let list = r#"{"providers":[{"id":"p","supported":[],"required":false,"current":null}]}"#;
    let raw = RawValue::from_string(list.to_owned()).unwrap();
    let read: ListProvidersResponse = decode_tolerant_result("providers/list", Some(&raw)).unwrap();
    assert_eq!(read.providers[0].provider_id, "p");
}

#[test]
fn what_cannot_be_repaired_keeps_its_first_error() {
    let error = ask::<PromptRequest>(r#"{"prompt":"a"}"#).unwrap_err().to_string();
    assert_eq!(
        error,
        crate::decode::<PromptRequest>(Some(&RawValue::from_string(r#"{"prompt":"a"}"#.into()).unwrap()))
            .unwrap_err()
            .to_string()
    );
    assert!(ask::<AuthenticateRequest>(r#"{"method":"x","credentials":{}}"#).is_err());
}
