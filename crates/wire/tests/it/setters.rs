//! The calls that authors write first: texts, options and arrays without conversions.

use std::borrow::Cow;

use attache_wire::v1::{
    Annotations, ContentChunk, ElicitationSchema, IntegerPropertySchema, PromptRequest, Role,
    RunningStateUpdate, SessionInfoUpdate, StringMultiSelectItems, StringPropertySchema, SubagentUpdate,
    TextContent, ToolCallUpdate,
};
use attache_wire::{Patch, v2};
use serde_json::json;

fn written(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("messages can be written")
}

#[test]
fn optional_texts_take_text_of_any_kind_or_an_option() {
    let title = |schema: StringPropertySchema| schema.title;
    let text = "x".to_owned();
    let x = Some(text.clone());
    let schema = StringPropertySchema::new;
    assert_eq!(title(schema().title("x")), x);
    assert_eq!(title(schema().title(text.clone())), x);
    assert_eq!(title(schema().title(&text)), x);
    assert_eq!(title(schema().title(Cow::Borrowed("x"))), x);
    assert_eq!(title(schema().title(Some("x".to_owned()))), x);
    assert_eq!(schema().description("x").description(None).description, None);
}

#[test]
fn optional_lists_take_arrays_vectors_and_options() {
    let required = |schema: ElicitationSchema| schema.required;
    let x = Some(vec!["x".to_owned()]);
    assert_eq!(required(ElicitationSchema::new().required(["x"])), x);
    assert_eq!(required(ElicitationSchema::new().required(vec!["x".to_owned()])), x);
    assert_eq!(required(ElicitationSchema::new().required(x.clone())), x);
    assert_eq!(required(ElicitationSchema::new().required(Vec::new())), Some(Vec::new()));
    assert_eq!(required(ElicitationSchema::new().required(["x"]).required(None)), None);
}

#[test]
fn required_lists_convert_their_elements() {
    assert_eq!(written(&StringMultiSelectItems::new(["a", "b"])), json!({"enum": ["a", "b"]}));
    let prompt = PromptRequest::new("s", ["hello"]);
    assert_eq!(written(&prompt), json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hello"}]}));
}

#[test]
fn boxes_ids_json_and_patches_need_no_conversion() {
    let text = TextContent::new("t").annotations(Annotations::new().audience([Role::User]));
    assert_eq!(written(&text), json!({"text": "t", "annotations": {"audience": ["user"]}}));
    let call = ToolCallUpdate::new("c").raw_input(json!({"a": 1})).title("edit");
    assert_eq!(written(&call), json!({"toolCallId": "c", "title": "edit", "rawInput": {"a": 1}}));
    assert_eq!(SessionInfoUpdate::new().title("x").title, Patch::Set("x".to_owned()));
    assert_eq!(SessionInfoUpdate::new().title(None).title, Patch::Clear);
    assert_eq!(ContentChunk::new("t").message_id("m").message_id, Some("m".into()));
    let agent = SubagentUpdate::new("a").additional_directories(["/a"]).state(RunningStateUpdate::new());
    assert_eq!(agent.additional_directories, Patch::Set(vec!["/a".to_owned()]));
    assert_eq!(written(&agent)["state"], json!({"state": "running"}));
}

#[test]
fn a_form_is_built_field_by_field() {
    let form = ElicitationSchema::new()
        .field("name", StringPropertySchema::new().title("Name"), true)
        .field("age", IntegerPropertySchema::new().minimum(0), true)
        .field("name", StringPropertySchema::new(), false);
    let expected = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
    });
    assert_eq!(written(&form), expected);
    let names: Vec<&str> = form.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["name", "age"]);
    assert_eq!(form.field("age", IntegerPropertySchema::new(), false).required, None);
}

#[test]
fn messages_of_version_2_are_built_in_the_same_way() {
    let call = v2::ToolCallUpdate::new("c")
        .title("Edit")
        .kind(v2::ToolKind::Edit)
        .status("_queued")
        .content(["text"])
        .raw_input(json!({"a": 1}))
        .locations(None);
    assert_eq!(
        written(&v2::SessionUpdate::from(call)),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "kind": "edit",
            "status": "_queued", "content": [{"type": "content", "content": {"type": "text", "text": "text"}}],
            "rawInput": {"a": 1}, "locations": null})
    );
    let work = v2::BackgroundTerminal::new("t");
    let idle = v2::IdleStateUpdate::new(v2::StopReason::EndTurn).background([work]);
    assert_eq!(
        written(&v2::SessionUpdate::from(v2::StateUpdate::from(idle))),
        json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn",
            "background": [{"type": "terminal", "terminalId": "t"}]})
    );
    let server = v2::McpServerStdio::new("x", "/bin/x").args(["-v"]);
    let request = v2::NewSessionRequest::new("/work").mcp_servers([server]);
    assert_eq!(
        written(&request),
        json!({"cwd": "/work", "mcpServers": [{"type": "stdio", "name": "x", "command": "/bin/x", "args": ["-v"]}]})
    );
}
