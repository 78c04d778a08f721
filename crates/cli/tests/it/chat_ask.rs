//! Questions: permissions, forms, pages.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, Choice, OpenRequest, Turn, usual_options};
use attache::wire::v1::{
    BooleanPropertySchema, ElicitationAction, ElicitationPropertySchema, ElicitationSchema, EnumOption,
    Fields, IntegerPropertySchema, MultiSelectPropertySchema, PermissionOption, PermissionOptionKind,
    StringMultiSelectItems, StringPropertySchema, ToolKind,
};
use attache::{Json, Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_C, Chat, Cue, ENTER, Start, TAB};

/// Asks whatever the prompt names, and says what was answered.
#[derive(Clone, Default)]
struct Asker {
    cue: Cue,
    heard: Arc<Mutex<Vec<String>>>,
}

impl AgentSession for Asker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let answer = match &*prompt.text() {
            "edit" => edit(turn, usual_options()).await?,
            "yes or yes" => {
                let option = |id: &str| {
                    PermissionOption::new(id, format!("Option {id}"), PermissionOptionKind::AllowOnce)
                };
                edit(turn, vec![option("one"), option("two")]).await?
            }
            "run" => run(turn).await?,
            "two" => {
                let first = turn.tool("first").start().await?;
                let second = turn.tool("second").start().await?;
                let (one, two) =
                    tokio::join!(turn.ask(&first, usual_options()), turn.ask(&second, usual_options()));
                format!("{}, {}", answered(one?, first).await?, answered(two?, second).await?)
            }
            "slow" => {
                turn.say("thinking").await?;
                self.cue.given().await;
                edit(turn, usual_options()).await?
            }
            "form" => form(turn).await?,
            "page" => page(turn, "https://login.example.org/auth?next=1").await?,
            "odd page" => page(turn, "http://good.org@xn--vil-8cd.org/login").await?,
            "write" => {
                let files = turn.write_files().expect("the client provides files");
                match files.write(prompt_path(turn), "new text\n").await {
                    Ok(()) => "written".to_owned(),
                    Err(_) => "refused".to_owned(),
                }
            }
            other => panic!("{other}"),
        };
        self.heard.lock().unwrap().push(answer.clone());
        turn.say(format!("\n\nanswer: {answer}")).await?;
        Ok(StopReason::EndTurn)
    }
}

fn prompt_path(_: Turn<'_>) -> std::path::PathBuf {
    PLACE.with(|place| place.borrow().join("notes.txt"))
}

thread_local! {
    /// Where the session of this test works; tests and agents share a thread.
    static PLACE: std::cell::RefCell<std::path::PathBuf> = std::cell::RefCell::default();
}

async fn edit(turn: Turn<'_>, options: Vec<PermissionOption>) -> Result<String> {
    let old: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let new = old.replace("line", "LINE");
    let tool = turn
        .tool("Edit big.txt")
        .kind(ToolKind::Edit)
        .edit(attache::Edit::modify("/w/big.txt", old, new))
        .start()
        .await?;
    let choice = turn.ask(&tool, options).await?;
    answered(choice, tool).await
}

async fn run(turn: Turn<'_>) -> Result<String> {
    let input =
        Json::new(&serde_json::json!({"command": "rm -rf build\x1b[2K && echo \u{202e}done"})).unwrap();
    let tool = turn.tool("Clean up").kind(ToolKind::Execute).input(input).start().await?;
    let choice = turn.ask(&tool, usual_options()).await?;
    answered(choice, tool).await
}

async fn answered(choice: Choice, tool: attache::agent::Tool) -> Result<String> {
    let answer = match &choice {
        Choice::Selected(option) => option.option_id.to_string(),
        _ => "nothing".to_owned(),
    };
    match choice.is_allowed() {
        true => tool.complete([]).await?,
        false => tool.fail("not allowed").await?,
    }
    Ok(answer)
}

async fn form(turn: Turn<'_>) -> Result<String> {
    let mut schema = ElicitationSchema::new();
    let mut name = StringPropertySchema::new();
    name.title = Some("Your name".to_owned());
    name.min_length = Some(2);
    let mut age = IntegerPropertySchema::new();
    age.minimum = Some(18);
    age.default_value = Some(30);
    let mut colour = StringPropertySchema::new();
    colour.one_of = Some(vec![EnumOption::new("r", "Red"), EnumOption::new("g", "Green")]);
    let mut sure = BooleanPropertySchema::new();
    sure.default_value = Some(true);
    let items = StringMultiSelectItems::new(["a", "b", "c"].map(str::to_owned));
    let many = MultiSelectPropertySchema::new(items);
    let fields: [(&str, ElicitationPropertySchema); 5] = [
        ("name", name.into()),
        ("age", age.into()),
        ("colour", colour.into()),
        ("sure", sure.into()),
        ("parts", many.into()),
    ];
    schema.properties = Fields::from(fields);
    schema.required = Some(vec!["name".to_owned(), "age".to_owned()]);
    let answer = turn.forms().expect("forms are offered").ask("Tell me about yourself", schema).await?;
    Ok(match answer.action {
        ElicitationAction::Accept(accept) => serde_json::to_string(&accept.content.unwrap()).unwrap(),
        other => other.as_str().to_owned(),
    })
}

async fn page(turn: Turn<'_>, url: &str) -> Result<String> {
    let links = turn.links().expect("pages are offered");
    let answer = links.ask("Please log in", "e-1", url).await?;
    Ok(answer.action.as_str().to_owned())
}

async fn start(start: Start) -> (Chat, Asker) {
    let asker = Asker::default();
    let this = asker.clone();
    PLACE.with(|place| *place.borrow_mut() = start.place().work());
    let agent = Agent::new(move |_: OpenRequest| {
        let this = this.clone();
        async move { Ok(this) }
    });
    (start.with(agent.info("asker", "1.0")).await, asker)
}

#[tokio::test]
async fn a_change_is_in_full_view_before_it_is_allowed() {
    // shows PERM-04, PERM-05
    let (mut chat, _) = start(Start::new()).await;
    chat.say("edit");
    chat.asks("Edit /w/big.txt?").await;
    chat.sees("1 y Yes, once").await;
    let history = chat.history();
    for number in [1, 30, 60] {
        assert!(history.contains(&format!("- line {number}\n")), "{number} in:\n{history}");
        assert!(history.contains(&format!("+ LINE {number}\n")), "{number} in:\n{history}");
    }
    // Neither Enter nor any other key decides.
    chat.keys(&format!("{ENTER}xq 9"));
    chat.keys("y");
    chat.sees("answer: allow").await;
    chat.sees("✓ Edit big.txt").await;
    // What was shown in full is not shown again.
    assert_eq!(chat.history().matches("+ LINE 60").count(), 1);
}

#[tokio::test]
async fn letters_and_numbers_choose_what_was_offered() {
    // shows PERM-11
    let (mut chat, asker) = start(Start::new()).await;
    for (prompt, key, answer) in [
        ("edit", "n", "reject"),
        ("edit", "4", "reject"),
        ("edit", "2", "allow-always"),
        ("yes or yes", "2", "two"),
        ("yes or yes", "y", "one"),
        ("yes or yes", "n", "nothing"),
    ] {
        let heard = asker.heard.lock().unwrap().len();
        chat.say(prompt);
        chat.asks("Edit /w/big.txt?").await;
        chat.keys(key);
        chat.until(answer, |_| asker.heard.lock().unwrap().len() > heard).await;
        assert_eq!(asker.heard.lock().unwrap().last().unwrap(), answer, "{prompt} {key}");
        chat.sees_no_more("1 y").await;
        chat.sees_no_more("working").await;
    }
}

#[tokio::test]
async fn a_command_hides_nothing() {
    let (mut chat, _) = start(Start::new()).await;
    chat.say("run");
    chat.sees("rm -rf build^[[2K && echo <U+202E>done").await;
    chat.asks("Run this in this directory?").await;
    chat.keys("n");
    chat.sees("answer: reject").await;
    chat.sees("✗ run Clean up (not allowed)").await;
}

#[tokio::test]
async fn a_letter_of_a_sentence_is_no_answer() {
    let (mut chat, asker) = start(Start::new()).await;
    chat.say("slow");
    chat.sees("thinking").await;
    chat.keys("maybe next");
    chat.prompts("maybe next").await;
    asker.cue.give();
    chat.sees("Tab: answer the question").await;
    chat.keys(" year: yay, nay");
    chat.prompts("maybe next year: yay, nay").await;
    assert!(asker.heard.lock().unwrap().is_empty());
    chat.keys(TAB);
    chat.sees_no_more("Tab: answer").await;
    chat.asks("Edit /w/big.txt?").await;
    chat.keys("y");
    chat.sees("answer: allow").await;
    // The sentence is still there.
    chat.prompts("maybe next year: yay, nay").await;
}

#[tokio::test]
async fn a_cancelled_turn_takes_its_question_along() {
    // shows PERM-08
    let (mut chat, _) = start(Start::new()).await;
    chat.say("edit");
    chat.asks("Edit /w/big.txt?").await;
    chat.keys(CTRL_C);
    chat.sees("! cancelled").await;
    chat.sees_no_more("1 y").await;
    chat.prompts("").await;
}

#[tokio::test]
async fn a_question_does_not_stand_for_ever_if_there_is_a_limit() {
    let policy = r#"{"mode": "ask", "ask": {"timeout": 0.05, "then": "deny"}}"#;
    let (mut chat, _) = start(Start::new().args(&["--permission-policy", policy])).await;
    chat.say("edit");
    chat.sees("no answer in time").await;
    chat.sees("answer: reject").await;
    chat.prompts("").await;
}

#[tokio::test]
async fn rules_answer_without_a_question_and_denials_are_reported() {
    // shows PERM-07
    let policy = r#"{"autoApprove": ["edit"], "autoDeny": ["execute"]}"#;
    let (mut chat, _) = start(Start::new().args(&["--permission-policy", policy])).await;
    chat.say("edit");
    chat.sees("answer: allow").await;
    assert!(chat.history().contains("allowed by rule autoApprove 1"), "{}", chat.history());
    chat.say("run");
    chat.sees("! denied: Clean up").await;
    chat.sees("answer: reject").await;
}

#[tokio::test]
async fn several_questions_wait_in_line() {
    // shows PERM-12
    let (mut chat, _) = start(Start::new()).await;
    chat.say("two");
    chat.sees("1 more question").await;
    chat.sees("│ first").await;
    chat.asks("do this?").await;
    // Keys that come too soon answer nothing, neither this question nor the next.
    chat.keys("ynnnnn");
    chat.sees("│ second").await;
    chat.sees("  ·   ").await;
    chat.asks("do this?").await;
    chat.keys("n");
    chat.sees("answer: allow, reject").await;
}

#[tokio::test]
async fn unrequested_effects_are_asked_about() {
    let (mut chat, _) = start(Start::new()).await;
    let notes = chat.place.work().join("notes.txt");
    std::fs::write(&notes, "old text\n").unwrap();
    chat.say("write");
    chat.sees("1 - old text").await;
    chat.sees("1 + new text").await;
    chat.asks("Edit notes.txt?").await;
    chat.keys("n");
    chat.sees("answer: refused").await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "old text\n");
    chat.say("write");
    chat.asks("Edit notes.txt?").await;
    chat.keys("y");
    chat.sees("answer: written").await;
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "new text\n");
}

#[tokio::test]
async fn a_form_is_filled_in_checked_reviewed_and_sent() {
    // shows ELIC-07, ELIC-08, ELIC-09, ELIC-11, ELIC-13
    let (mut chat, _) = start(Start::new()).await;
    chat.say("form");
    chat.sees("asker asks for input").await;
    chat.sees("Tell me about yourself").await;
    chat.asks_for("1/5 Your name (required)").await;
    chat.keys(ENTER);
    chat.sees("is required").await;
    chat.keys(&format!("A{ENTER}"));
    chat.sees("must have at least 2 characters").await;
    chat.keys(&format!("da{ENTER}"));
    chat.sees("2/5 age").await;
    chat.sees("  30").await;
    chat.keys(&format!("\x7f\x7f17{ENTER}"));
    chat.sees("must be at least 18").await;
    chat.keys(&format!("\x7f\x7fx{ENTER}"));
    chat.sees("must be a whole number").await;
    chat.keys(&format!("\x7f41{ENTER}"));
    chat.sees("3/5 colour (optional)").await;
    chat.keys(&format!("2{ENTER}"));
    chat.sees("4/5 sure").await;
    chat.keys(&format!("n{ENTER}"));
    chat.sees("5/5 parts").await;
    chat.keys(&format!("13 {ENTER}"));
    chat.sees("Send this?").await;
    for line in ["1 Your name: Ada", "2 age: 41", "3 colour: Green", "4 sure: No", "5 parts: a"] {
        chat.sees(line).await;
    }
    chat.keys("4");
    chat.sees("4/5 sure").await;
    chat.keys(&format!("y{ENTER}"));
    chat.sees("4 sure: Yes").await;
    chat.keys(ENTER);
    chat.sees(r#"answer: {"name":"Ada","age":41,"colour":"g","sure":true,"parts":["a"]}"#).await;
}

#[tokio::test]
async fn a_form_can_be_declined_and_cancelled() {
    // shows ELIC-07, ELIC-18
    let (mut chat, _) = start(Start::new()).await;
    for (key, answer) in [("\x18", "decline"), ("\x1b", "cancel")] {
        chat.say("form");
        chat.asks_for("1/5 Your name").await;
        chat.keys(key);
        chat.sees(&format!("answer: {answer}")).await;
        chat.sees_no_more("1/5 Your name").await;
    }
}

#[tokio::test]
async fn a_page_is_opened_after_consent_and_never_before() {
    // shows ELIC-17, ELIC-28, ELIC-29
    let begin = Start::new();
    let browser = begin.place().path().join("browser");
    let visited = begin.place().path().join("visited");
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$1\" >> {}\n", visited.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, mode).unwrap();
    let begin = begin.env("BROWSER", browser.to_str().unwrap());
    let (mut chat, _) = start(begin).await;

    chat.say("page");
    chat.sees("asker asks you to visit a page").await;
    chat.sees("https://login.example.org/auth?next=1").await;
    chat.asks_for("Open login.example.org in a browser?").await;
    assert!(chat.cell_of("login.example.org/auth").bold());
    chat.keys("n");
    chat.sees("answer: decline").await;
    assert!(!visited.exists());

    chat.say("page");
    chat.asks_for("Open login.example.org").await;
    chat.keys("m");
    chat.sees("answer: accept").await;
    assert!(!visited.exists());

    chat.say("page");
    chat.asks_for("Open login.example.org").await;
    chat.keys("y");
    chat.until("a visit", |_| std::fs::read_to_string(&visited).is_ok_and(|text| text.ends_with('\n'))).await;
    assert_eq!(std::fs::read_to_string(&visited).unwrap(), "https://login.example.org/auth?next=1\n");
}

#[tokio::test]
async fn odd_addresses_are_warned_about() {
    // shows ELIC-30
    let (mut chat, _) = start(Start::new()).await;
    chat.say("odd page");
    chat.sees("Open xn--vil-8cd.org in a browser?").await;
    chat.sees("punycode").await;
    chat.sees("the page is on xn--vil-8cd.org").await;
    chat.asks_for("not encrypted").await;
    chat.keys("\x1b");
    chat.sees("answer: cancel").await;
}
