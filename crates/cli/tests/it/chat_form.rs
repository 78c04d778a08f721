//! Forms: each kind of field, what it takes, and the way back.

use crate::chat_rig::{Chat, DOWN, ENTER, Start};

const BACK: &str = "\x1b[Z";

async fn form(properties: &str, required: &str) -> Chat {
    let script = format!(
        "on session/prompt\n  call elicitation/create {{\"sessionId\":\"$session\",\"mode\":\"form\",\"message\":\"Please\",\
         \"requestedSchema\":{{\"type\":\"object\",\"properties\":{{{}}},\"required\":[{required}]}}}}\n  say answer: $last\n  done end_turn\n",
        properties.replace('\n', "")
    );
    let mut chat = Start::new().size(40, 100).with_script(&script).await;
    chat.say("ask");
    chat.asks_for("Please").await;
    chat
}

/// Clears the field and types another answer.
fn type_in(chat: &mut Chat, text: &str) {
    chat.keys(&format!("\x15{text}{ENTER}"));
}

#[tokio::test]
async fn texts_have_formats_lengths_and_patterns() {
    // shows ELIC-11
    let mut chat = form(
        r#""a":{"title":"mail","type":"string","format":"email"},"b":{"title":"site","type":"string","format":"uri"},
           "c":{"title":"day","type":"string","format":"date"},"d":{"title":"time","type":"string","format":"date-time"},
           "e":{"title":"code","type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z]+$"}"#,
        r#""a","e""#,
    )
    .await;
    chat.sees("1/5 mail (required)").await;
    chat.sees("an e-mail address").await;
    type_in(&mut chat, "nobody");
    chat.sees("must be an e-mail address").await;
    type_in(&mut chat, "a@b.org");
    chat.sees("2/5 site (optional)").await;
    type_in(&mut chat, "not a uri");
    chat.sees("must be a URI").await;
    type_in(&mut chat, "https://b.org/x");
    chat.sees("3/5 day").await;
    chat.sees("a date such as 2026-01-31").await;
    type_in(&mut chat, "2026-02-30");
    chat.sees("must be a date such as").await;
    type_in(&mut chat, "2028-02-29");
    chat.sees("4/5 time").await;
    type_in(&mut chat, "noon");
    chat.sees("must be a date and time").await;
    // One that is optional may stay empty.
    type_in(&mut chat, "");
    chat.sees("5/5 code (required)").await;
    chat.sees("2 to 4 characters, like ^[a-z]+$").await;
    for (text, problem) in [
        ("a", "must have at least 2 characters"),
        ("abcde", "must have at most 4 characters"),
        ("AB", "must match ^[a-z]+$"),
    ] {
        type_in(&mut chat, text);
        chat.sees(problem).await;
    }
    type_in(&mut chat, "abc");
    chat.sees("Send this?").await;
    chat.sees("4 time: (empty)").await;
    chat.keys(ENTER);
    chat.sees(r#""e":"abc""#).await;
    chat.sees(r#""a":"a@b.org""#).await;
    assert!(!chat.text().contains(r#""d""#), "{}", chat.text());
}

#[tokio::test]
async fn numbers_have_ranges_and_defaults() {
    // shows ELIC-13
    let mut chat = form(
        r#""a":{"title":"share","type":"number","minimum":0.5,"maximum":2.5,"default":1.5},
           "b":{"title":"count","type":"integer","minimum":-3,"maximum":3}"#,
        r#""a","b""#,
    )
    .await;
    chat.sees("a number, 0.5 to 2.5").await;
    chat.sees("  1.5").await;
    type_in(&mut chat, "2.6");
    chat.sees("must be at most 2.5").await;
    type_in(&mut chat, "much");
    chat.sees("must be a number").await;
    type_in(&mut chat, "2.25");
    chat.sees("a whole number, -3 to 3").await;
    type_in(&mut chat, "1.5");
    chat.sees("must be a whole number").await;
    type_in(&mut chat, "-4");
    chat.sees("must be at least -3").await;
    // Back to the field before, which still has its answer; then forward again.
    chat.keys(BACK);
    chat.sees("1/2 share").await;
    chat.sees("  2.25").await;
    chat.keys(ENTER);
    chat.sees("2/2 count").await;
    type_in(&mut chat, "-2");
    chat.sees("1 share: 2.25").await;
    chat.keys(ENTER);
    chat.sees(r#""b":-2"#).await;
    chat.sees(r#""a":2.25"#).await;
}

#[tokio::test]
async fn choices_have_titles_and_defaults_and_lists_have_sizes() {
    let mut chat = form(
        r#""a":{"title":"size","type":"string","enum":["s","m","l"],"default":"m"},
           "b":{"title":"colour","type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},
           "c":{"title":"sure","type":"boolean","default":false},
           "d":{"title":"tags","type":"array","items":{"anyOf":[{"const":"x","title":"Ex"},{"const":"y","title":"Why"},{"const":"z","title":"Zed"}]},
             "minItems":1,"maxItems":2,"default":["y"]}"#,
        r#""b","d""#,
    )
    .await;
    chat.sees("2 ● m").await;
    chat.keys(ENTER);
    chat.sees("2/4 colour (required)").await;
    chat.keys(ENTER);
    chat.sees("is required").await;
    chat.keys(&format!("{DOWN}{ENTER}"));
    chat.sees("3/4 sure").await;
    chat.sees("2 ● No").await;
    chat.keys(&format!("y{ENTER}"));
    chat.sees("4/4 tags").await;
    chat.sees("1 to 2 of them").await;
    chat.sees("2 ☑ Why").await;
    chat.keys("2");
    chat.sees("2 ☐ Why").await;
    chat.keys(ENTER);
    chat.sees("must have at least 1 entries").await;
    chat.keys(&format!("123{ENTER}"));
    chat.sees("must have at most 2 entries").await;
    chat.keys(&format!("2{ENTER}"));
    for line in ["1 size: m", "2 colour: Green", "3 sure: Yes", "4 tags: Ex, Zed"] {
        chat.sees(line).await;
    }
    chat.keys(ENTER);
    chat.sees(r#""b":"g""#).await;
    chat.sees(r#""d":["x","z"]"#).await;
}

#[tokio::test]
async fn a_kind_of_field_that_is_not_known_stays_empty() {
    // shows ELIC-33
    let mut chat =
        form(r#""a":{"type":"_map"},"b":{"title":"name","type":"string","default":"Ada"}"#, "").await;
    chat.sees("unknown kind of field").await;
    chat.keys(ENTER);
    chat.sees("2/2 name").await;
    chat.keys(&format!("{ENTER}{ENTER}"));
    chat.sees(r#""b":"Ada""#).await;
}

#[tokio::test]
async fn a_page_that_is_done_needs_no_answer() {
    // shows ELIC-25
    let script = "on session/prompt\n\
          call elicitation/create {\"sessionId\":\"$session\",\"mode\":\"url\",\"message\":\"Log in\",\"elicitationId\":\"e1\",\"url\":\"https://example.org/in\"}\n\
          notify elicitation/complete {\"elicitationId\":\"ghost\"}\n\
          notify elicitation/complete {\"elicitationId\":\"e1\"}\n\
          notify elicitation/complete {\"elicitationId\":\"e1\"}\n\
          say answer: $last\n  done end_turn\n";
    let mut chat = Start::new().with_script(script).await;
    chat.say("ask");
    chat.asks_for("Open example.org in a browser?").await;
    chat.keys("m");
    chat.sees("answer:").await;
    chat.sees("the agent's request is complete").await;
    assert_eq!(chat.text().matches("request is complete").count(), 1, "{}", chat.text());
}
