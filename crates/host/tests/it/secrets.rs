//! What is hidden, and what is not.

use attache_host::secrets::{Mask, StreamMask, is_secret_name};
use proptest::prelude::*;

#[test]
fn names_of_secrets() {
    for name in [
        "ANTHROPIC_API_KEY",
        "apiKey",
        "x-api-key",
        "GITHUB_TOKEN",
        "access_token",
        "Authorization",
        "Proxy-Authorization",
        "PASSWORD",
        "DB_PASSWORD",
        "client_secret",
        "Set-Cookie",
        "cookie",
        "AWS_SECRET_ACCESS_KEY",
        "GH_PAT",
        "SSH_PRIVATE_KEY",
        "NPM_AUTH",
        "authToken",
        "bearerToken",
        "credentials",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_ACCESS_KEY_ID",
        "ATTACHE_AUTH_COMPANY_LOGIN",
        "MYSQL_PWD",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "totalTokens",
        "max_tokens",
        "inputTokens",
        "key",
        "keyboard",
        "monkey",
        "tokenizer",
        "author",
        "name",
        "KEYMAP",
        "PWD",
        "SSH_AUTH_SOCK",
        "GIT_ASKPASS",
        "TOKENIZERS_PARALLELISM",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn in_texts() {
    let mask = Mask::new().with(["correct horse", "short"]);
    let cases = [
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwdw==", "authorization: Basic ***=="),
        ("x-api-key: 0123456789", "x-api-key: ***"),
        ("GITHUB_TOKEN=abc123 make", "GITHUB_TOKEN=*** make"),
        ("export API_KEY='abc 123'", "export API_KEY='*** 123'"),
        ("tool --token abcdef --verbose", "tool --token *** --verbose"),
        ("tool --password=hunter2", "tool --password=***"),
        (r#"{"apiKey":"abc","total":5}"#, r#"{"apiKey":"***","total":5}"#),
        ("totalTokens: 1234", "totalTokens: 1234"),
        ("token: 1234", "token: 1234"),
        ("the key is sk-ant-REDACTED0123456789abcdef ok", "the key is *** ok"),
        ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("https://user:pw@host.org/path", "https://***@host.org/path"),
        ("https://ghp_0123456789abcdefghijklmnopqrstuvwxyz@github.com/a", "https://***@github.com/a"),
        ("git@github.com:a/b", "git@github.com:a/b"),
        ("https://host.org/path?x=1", "https://host.org/path?x=1"),
        ("my correct horse battery", "my *** battery"),
        ("short is too short to be hidden", "short is too short to be hidden"),
        ("nothing to hide, token by token", "nothing to hide, token by token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest", "***\nrest"),
        ("-----BEGIN CERTIFICATE-----\nabc", "-----BEGIN CERTIFICATE-----\nabc"),
        ("-----BEGIN PRIVATE KEY-----\nnever ends", "***"),
    ];
    for (text, expected) in cases {
        assert_eq!(mask.text(text), expected);
    }
}

#[test]
fn in_messages() {
    let mask = Mask::new().with(["from-the-environment", "918273645"]);
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/p","mcpServers":[{"name":"s","command":"c","args":["-v"],"env":[{"name":"X","value":"abc"}]}]}}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/p","mcpServers":[{"name":"s","command":"c","args":["-v"],"env":[{"name":"X","value":"***"}]}]}}"#,
        ),
        (
            r#"{"type":"http","url":"https://a:b@x/","headers":[ {"value" : "abc", "name":"H"} ]}"#,
            r#"{"type":"http","url":"https://***@x/","headers":[ {"value" : "***", "name":"H"} ]}"#,
        ),
        // A command of an agent is run again with the variables that are no secrets.
        (
            r#"{"method":"terminal/create","params":{"env":[{"name":"GIT_PAGER","value":"cat"},{"value":"abc","name":"MY_TOKEN"},{"name":"U","value":"https://a:b@x/"}]}}"#,
            r#"{"method":"terminal/create","params":{"env":[{"name":"GIT_PAGER","value":"cat"},{"value":"***","name":"MY_TOKEN"},{"name":"U","value":"https://***@x/"}]}}"#,
        ),
        (r#"{"params":{"env":{"A":"b","API_KEY":"c"}}}"#, r#"{"params":{"env":{"A":"b","API_KEY":"***"}}}"#),
        (r#"{"env":{"A":"b","C":["d"],"n":null}}"#, r#"{"env":{"A":"***","C":["***"],"n":null}}"#),
        (r#"{"access_token":"abc","b":1}"#, r#"{"access_token":"***","b":1}"#),
        (r#"{"apiKey":{"inner":["x",{"y":"z"}]}}"#, r#"{"apiKey":{"inner":["***",{"y":"***"}]}}"#),
        (r#"{"text":"say \"from-the-environment\" \u00e9"}"#, r#"{"text":"say \"***\" é"}"#),
        (
            r#"{"text":"caf\u00e9 \n stays","usage":{"totalTokens":5}}"#,
            r#"{"text":"caf\u00e9 \n stays","usage":{"totalTokens":5}}"#,
        ),
        (r#"{"n":918273645,"env":{"A":"b"}}"#, r#"{"n":"***","env":{"A":"***"}}"#),
        ("not json: token=abc", "not json: token=***"),
        (r#"{"broken": "TOKEN=abc""#, r#"{"broken": "TOKEN=***""#),
        ("[]", "[]"),
        ("", ""),
    ];
    for (line, expected) in cases {
        assert_eq!(mask.frame(line), expected);
    }
}

#[test]
fn the_debug_form_contains_no_secret() {
    let text = format!("{:?}", Mask::new().with(["hunter2hunter2"]));
    assert!(!text.contains("hunter"), "{text}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_no_secret_stays(before in ".{0,40}", after in ".{0,40}", noise in r#"[a-z"':=/@\\{}\[\], -]{0,60}"#) {
        let mask = Mask::new().with(["c0rrect-h0rse"]);
        let text = format!("{before}c0rrect-h0rse{after}");
        prop_assert!(!mask.text(&text).contains("c0rrect-h0rse"));
        prop_assert!(!mask.frame(&text).contains("c0rrect-h0rse"));
        let json = serde_json::json!({ "t": text, "headers": [{ "name": "n", "value": before }] }).to_string();
        let masked = mask.frame(&json);
        let value: serde_json::Value = serde_json::from_str(&masked).unwrap();
        prop_assert!(!value["t"].as_str().unwrap().contains("c0rrect-h0rse"));
        prop_assert_eq!(&value["headers"][0]["value"], "***");
        mask.text(&noise);
        mask.frame(&noise);
    }
}

#[test]
fn tokens_are_hidden_where_names_must_stay() {
    let mask = Mask::new().with(["correct horse"]);
    let code = "let token = next_token(); let password = read(\"password\"); // api_key: see below";
    assert_eq!(mask.tokens(code), code);
    let cases = [
        ("export KEY=sk-ant-REDACTED0123456789abcdef", "export KEY=***"),
        ("a correct horse", "a ***"),
        ("https://user:pw@host.org/", "https://***@host.org/"),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl", "Bearer ***"),
        // A cursor is no secret.
        (
            "eyJvZmZzZXQiOjEwLCJsaW1pdCI6MTAsInNvcnQiOiJuYW1lIn0",
            "eyJvZmZzZXQiOjEwLCJsaW1pdCI6MTAsInNvcnQiOiJuYW1lIn0",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(mask.tokens(text), expected);
    }
    let json = r#"{"password":"stays","text":"say \"correct horse\"","env":{"A":"b"}}"#;
    assert_eq!(mask.frame_tokens(json), r#"{"password":"stays","text":"say \"***\"","env":{"A":"b"}}"#);
}

#[test]
fn command_lines() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let masked = |line: &str| Mask::new().command_line(&words(line)).join(" ");
    assert_eq!(masked("agent --api-key abcdefgh --acp"), "agent --api-key *** --acp");
    assert_eq!(masked("agent --token --acp"), "agent --token --acp");
    assert_eq!(masked("env TOKEN=abc agent --password=x -v"), "env TOKEN=*** agent --password=*** -v");
    assert_eq!(masked("agent --acp key"), "agent --acp key");
}

/// Feeds a text in pieces of these lengths.
fn in_pieces(mask: &Mask, text: &str, lengths: impl IntoIterator<Item = usize>) -> String {
    let mut pieces = StreamMask::new(mask.clone());
    let mut out = String::new();
    let mut rest = text;
    for length in lengths {
        let cut = (length.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, left) = rest.split_at(cut.unwrap_or(rest.len()));
        out.push_str(&pieces.push(piece));
        rest = left;
    }
    out.push_str(&pieces.push(rest));
    out.push_str(&pieces.finish());
    out
}

#[test]
fn a_secret_in_two_pieces_is_found() {
    let mask = Mask::new().with(["correct horse battery"]);
    for text in [
        "the key is sk-ant-REDACTED0123456789abcdef, keep it",
        "my correct horse battery",
        "OPENAI_API_KEY=abcdef123456\nPATH=/bin",
        "Authorization: Bearer abc.def-ghi\r\n",
        "git clone https://user:pw@host.org/path",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest",
        "tool --token abcdef --verbose",
        "password/sk-0a0aaa0aaa000a00a0",
        "see https://host.org/sk-0a0aaa0aaa000a00a0/v1?x and a/b/c/",
        "nothing to hide: token by token, é and ü",
    ] {
        let whole = mask.text(text).into_owned();
        for first in 0..text.len() {
            for second in [1, 2, 3, 7] {
                let lengths = std::iter::once(first).chain(std::iter::repeat_n(second, text.len()));
                assert_eq!(in_pieces(&mask, text, lengths), whole, "{first}, then {second}");
            }
        }
    }
}

#[test]
fn ordinary_text_is_not_held_back() {
    let mut pieces = StreamMask::new(Mask::new().with(["correct horse"]));
    for piece in ["begun", " thinking...", " It works, ", "see line 42", ":\n", "don't"] {
        assert_eq!(pieces.push(piece), piece);
        assert!(pieces.is_empty());
    }
    for (piece, certain) in [(" a corr", " a "), ("ect answer s", "correct answer "), ("k", ""), ("y", "sky")]
    {
        assert_eq!(pieces.push(piece), certain);
    }
}

#[test]
fn a_word_without_an_end_is_not_waited_for_for_ever() {
    let mut pieces = StreamMask::new(Mask::new());
    let out: String = (0..1000).map(|_| pieces.push("abcdefghij")).collect();
    assert!(out.len() > 5_000, "{}", out.len());
    let mut pieces = StreamMask::new(Mask::new());
    let mut out = pieces.push("sk-");
    out.extend((0..1000).map(|_| pieces.push("abcdefghij")));
    out.push_str(&pieces.push(" after"));
    out.push_str(&pieces.finish());
    assert!(!out.contains("abc") && out.ends_with(" after"), "{out}");
}

proptest! {
    #[test]
    fn pieces_hide_what_the_whole_text_hides(
        text in r#"([a-zé]{1,5}|[ \n:=/@"'.-]{1,3}|sk-[a-z0-9]{18,24}|TOKEN|password|Bearer|https://|c0rrect h0rse){0,12}"#,
        lengths in proptest::collection::vec(0_usize..9, 0..40),
    ) {
        let mask = Mask::new().with(["c0rrect h0rse"]);
        prop_assert_eq!(in_pieces(&mask, &text, lengths), mask.text(&text));
    }
}
