//! What is hidden, and what is not.

use attache_host::secrets::{Mask, is_secret_name};
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
fn its_own_debug_form_tells_nothing() {
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
