//! Findings of the watchers, and messages without any.

use crate::talk::{begun, broken, kept, trace};

const PROMPT: &str = r#"c {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#;
/// The agents of these tests say that they have extensions (EXT-09).
const META: &str = r#"{"_meta":{"x":true,"craft":true}}"#;
const END: &str = r#"a {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;
const SAYS: &str = r#"a {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hey"}}}}"#;

#[test]
fn a_good_conversation_breaks_nothing() {
    let good = begun("{}", "{}", &[PROMPT, SAYS, END]);
    assert_eq!(broken(&good), [""; 0]);
    for rule in [
        "RPC-01",
        "RPC-02",
        "RPC-05",
        "RPC-24",
        "STDIO-04",
        "STDIO-08",
        "INIT-02",
        "SESS-03",
        "PROMPT-08",
        "PROMPT-11",
    ] {
        assert!(kept(&good, rule), "{rule}");
    }
    assert!(!kept(&good, "RPC-03"), "no error was answered, so nothing is known about errors");
}

#[test]
fn envelopes() {
    let breaks = |line: &str| broken(&begun("{}", META, &[PROMPT, line]));
    assert_eq!(breaks(r#"a {"id":2,"result":{"stopReason":"end_turn"}}"#), ["RPC-01"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":2}"#), ["RPC-02"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":2,"error":"no"}"#), ["RPC-03"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","error":{"code":-32601,"message":"what"}}"#), ["RPC-04"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":"2","result":{"stopReason":"end_turn"}}"#), ["RPC-05"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":1.5,"method":"_x","params":{}}"#), ["RPC-07"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":[1],"method":"_x","params":{}}"#), ["RPC-06"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":null,"method":"_x","params":{}}"#), ["RPC-07"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#), ["RPC-24"]);
    let twice = r#"a {"jsonrpc":"2.0","id":7,"method":"_x","params":{}}"#;
    assert_eq!(broken(&begun("{}", META, &[twice, twice])), ["RPC-08"]);
}

#[test]
fn an_error_without_an_id_may_answer_what_was_no_message() {
    let refused = r#"a {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#;
    // RPC-09: the client's line was garbage, which is held against the client alone.
    assert_eq!(broken(&begun("{}", "{}", &["c {oops", refused])), ["STDIO-09"]);
    // A request that the agent could not read is open, so the error may be about that.
    let request = r#"c {"jsonrpc":"2.0","id":-1,"method":"_x","params":{}}"#;
    assert_eq!(broken(&begun("{}", META, &[request, refused])), Vec::<&str>::new());
    assert_eq!(broken(&begun("{}", "{}", &[refused])), ["RPC-04"]);
}

#[test]
fn lines() {
    let breaks = |lines: &[&str]| broken(&begun("{}", META, lines));
    assert_eq!(breaks(&["a Listening on stdio"]), ["STDIO-08"]);
    assert_eq!(breaks(&["c hello?"]), ["STDIO-09"]);
    assert_eq!(
        breaks(&["a {\"jsonrpc\":\"2.0\",\"method\":\"_x\"}{\"jsonrpc\":\"2.0\",\"method\":\"_x\"}"]),
        ["STDIO-04"]
    );
    assert_eq!(breaks(&["a {", "a   \"jsonrpc\":\"2.0\",", "a   \"method\":\"_x\"", "a }"]), ["STDIO-05"]);
    assert_eq!(
        breaks(&["a {\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"t\":\"one", "a two\"}}"]),
        ["STDIO-05"]
    );
    assert_eq!(breaks(&["a {\"jsonrpc\":", SAYS]), ["STDIO-08"]);
}

#[test]
fn shapes_break_the_rule_about_their_type() {
    let breaks = |line: &str| broken(&begun("{}", META, &[PROMPT, line]));
    let update = |update: &str| {
        format!(
            r#"a {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    };
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","id":2,"result":{"stopReason":"done"}}"#), ["PROMPT-08"]);
    assert_eq!(breaks(&update(r#"{"sessionUpdate":"tool_call","toolCallId":"t"}"#)), ["TOOL-03"]);
    assert_eq!(
        breaks(&update(r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"paused"}"#)),
        ["TOOL-11"]
    );
    assert_eq!(breaks(&update(r#"{"sessionUpdate":"dance"}"#)), ["INIT-10"]);
    assert_eq!(
        breaks(&update(
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"mood":1}"#
        )),
        ["EXT-02"]
    );
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","method":"craft/notify","params":{}}"#), ["EXT-05"]);
    assert_eq!(breaks(r#"a {"jsonrpc":"2.0","method":"_craft/notify","params":{}}"#), [""; 0]);
    // INIT-10: a name of the next version is reserved, not made up.
    assert_eq!(breaks(r#"c {"jsonrpc":"2.0","id":9,"method":"auth/logout","params":{}}"#), ["INIT-10"]);
    assert_eq!(broken(&begun("{}", r#"{"dancing":true}"#, &[])), ["INIT-27"]);
    assert_eq!(broken(&begun("{}", r#"{"_meta":{"dancing":true}}"#, &[])), [""; 0]);
}

#[test]
fn nothing_comes_before_initialize() {
    let new = r#"c {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#;
    assert_eq!(broken(&trace(&[new])), ["INIT-01", "INIT-02", "SESS-01"]);
    let ask = r#"c {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    assert_eq!(broken(&trace(&[ask, new])), ["INIT-02", "SESS-01"]);
    let stranger = PROMPT.replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\"");
    assert_eq!(broken(&begun("{}", "{}", &[&stranger])), ["PROMPT-01", "SESS-02"]);
}

#[test]
fn updates_have_their_place() {
    let cancel = r#"c {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    let cancelled = r#"a {"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}"#;
    assert_eq!(broken(&begun("{}", "{}", &[PROMPT, END, SAYS])), ["PROMPT-11"]);
    assert_eq!(broken(&begun("{}", "{}", &[PROMPT, cancel, cancelled, SAYS])), ["CANCEL-08"]);
    let good = begun("{}", "{}", &[PROMPT, cancel, SAYS, cancelled]);
    assert_eq!(broken(&good), [""; 0]);
    assert!(kept(&good, "CANCEL-08"));
    let load = r#"c {"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"t","cwd":"/w","mcpServers":[]}}"#;
    let loaded = r#"a {"jsonrpc":"2.0","id":3,"result":{}}"#;
    let old =
        SAYS.replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\"").replace("hey", "hey, how are you today?");
    let can = r#"{"loadSession":true}"#;
    assert_eq!(broken(&begun("{}", can, &[load, &old, loaded])), [""; 0]);
    // SESS-12: news are no replay; what was said before, or by the user, is.
    assert_eq!(broken(&begun("{}", can, &[load, loaded, &old])), [""; 0]);
    assert_eq!(broken(&begun("{}", can, &[load, &old, loaded, &old])), ["SESS-12"]);
    let user = old.replace("agent_message_chunk", "user_message_chunk");
    assert_eq!(broken(&begun("{}", can, &[load, loaded, &user])), ["SESS-12"]);
    assert_eq!(broken(&begun("{}", "{}", &[&old])), ["PROMPT-12"]);
}

#[test]
fn capabilities_are_looked_at_first() {
    let read =
        r#"a {"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/w/a"}}"#;
    assert_eq!(broken(&begun("{}", "{}", &[PROMPT, read])), ["FS-02"]);
    let fine = begun(r#"{"fs":{"readTextFile":true}}"#, "{}", &[PROMPT, read]);
    assert_eq!(broken(&fine), [""; 0]);
    assert!(!kept(&fine, "FS-02"), "a use that is allowed does not show what happens without");
    let list = r#"c {"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}"#;
    assert_eq!(
        broken(&begun("{}", r#"{"sessionCapabilities":{"list":null}}"#, &[list])),
        ["LIST-01", "LIST-02"]
    );
    assert_eq!(broken(&begun("{}", r#"{"sessionCapabilities":{"list":{}}}"#, &[list])), [""; 0]);
    let image = PROMPT.replace(
        r#"{"type":"text","text":"hi"}"#,
        r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#,
    );
    assert_eq!(broken(&begun("{}", "{}", &[&image])), ["CONT-02", "PROMPT-02"]);
}

/// A conversation of version 2 in which rules of version 1 would be broken: updates before the
/// answer that opens the session and after that of the prompt, states, a prompt during a turn.
#[test]
fn rules_of_version_1_are_not_applied_to_version_2() {
    let ask = r#"c {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}}"#;
    let answer = r#"a {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}"#;
    let resume = r#"c {"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w","replayFrom":{"type":"start"}}}"#;
    let update = |update: &str| {
        format!(
            r#"a {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    };
    let old = update(
        r#"{"sessionUpdate":"agent_message","messageId":"m0","content":[{"type":"text","text":"hi"}]}"#,
    );
    let idle = update(r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#);
    let running = update(r#"{"sessionUpdate":"state_update","state":"running"}"#);
    let user = update(
        r#"{"sessionUpdate":"user_message","messageId":"m1","content":[{"type":"text","text":"hi"}]}"#,
    );
    let says = update(
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"hey"}}"#,
    );
    let resumed = r#"a {"jsonrpc":"2.0","id":1,"result":{}}"#;
    let taken = r#"a {"jsonrpc":"2.0","id":2,"result":{"messageId":"m1"}}"#;
    let list = r#"c {"jsonrpc":"2.0","id":4,"method":"session/list","params":{}}"#;
    let listed = r#"a {"jsonrpc":"2.0","id":4,"result":{"sessions":[]}}"#;
    let good = trace(&[
        ask, answer, resume, &old, &idle, resumed, PROMPT, &user, taken, &running, &says, &idle, list, listed,
    ]);
    assert_eq!(broken(&good), [""; 0]);
    assert!(kept(&good, "RPC-24") && !kept(&good, "PROMPT-11"));
    // The same lines after version 1 was agreed break its rules.
    let (ask, answer) = (ask.replace(":2,", ":1,"), answer.replace(":2,", ":1,"));
    let wrong = broken(&trace(&[&ask, &answer, resume, &old, resumed, PROMPT, taken, &running, &says]));
    for rule in ["INIT-10", "INIT-31", "PROMPT-08", "SESS-21"] {
        assert!(wrong.contains(&rule), "{rule} is not among {wrong:?}");
    }
}

#[test]
fn each_version_has_its_shapes() {
    let ask = r#"c {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}}"#;
    let answer = r#"a {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{},"authMethods":[{"type":"agent","methodId":"m","name":"M"}]}}"#;
    assert_eq!(broken(&trace(&[ask, answer])), [""; 0]);
    let nameless = answer.replace(r#""info":{"name":"a","version":"1"},"#, "");
    assert_eq!(broken(&trace(&[ask, &nameless])), ["V2-04"]);
    let now = answer.replace("\"protocolVersion\":2", "\"protocolVersion\":1");
    assert!(broken(&trace(&[ask, &now])).contains(&"INIT-31"));
}

#[test]
fn an_answer_to_a_cancelled_terminal_needs_no_capability_of_the_client() {
    // INIT-15: terminals of version 2 belong to the agent.
    let info = r#""info":{"name":"x","version":"1"}"#;
    let cancelled = trace(&[
        &format!(
            r#"c {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":2,{info},"capabilities":{{}}}}}}"#
        ),
        &format!(
            r#"a {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":2,{info},"capabilities":{{"session":{{}}}}}}}}"#
        ),
        r#"c {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w"}}"#,
        r#"a {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
        r#"a {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","command":"make","capabilities":{"cancel":{}}}}}"#,
        r#"c {"jsonrpc":"2.0","id":2,"method":"terminal/cancel","params":{"sessionId":"s","terminalId":"t"}}"#,
        r#"a {"jsonrpc":"2.0","id":2,"result":{}}"#,
    ]);
    assert_eq!(broken(&cancelled), [""; 0]);
    assert!(kept(&cancelled, "V2-30"));
}
