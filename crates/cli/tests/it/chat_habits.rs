//! Keys and commands that people bring along from other programs.

use std::fs;
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, OpenRequest, OpenedSession, Turn, usual_options};
use attache::wire::v1::{SessionMode, SessionModeId, SessionModeState, ToolKind};
use attache::{Json, Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_D, Chat, DOWN, ENTER, ESC, SHIFT_TAB, Start, UP};

/// Repeats prompts, waits at `wait`, asks at `ask`.
#[derive(Clone, Default)]
struct Habit {
    prompts: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<Vec<bool>>>,
    modes: Arc<Mutex<Vec<String>>>,
}

impl AgentSession for Habit {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text().into_owned();
        self.prompts.lock().unwrap().push(text.clone());
        if text.starts_with("wait") {
            turn.until_cancelled(std::future::pending::<()>()).await?;
        }
        if text.starts_with("ask") {
            let input = Json::new(&serde_json::json!({"command": "make all"})).unwrap();
            let tool = turn.tool("make all").kind(ToolKind::Execute).input(input).start().await?;
            let allowed = turn.ask(&tool, usual_options()).await?.is_allowed();
            self.answers.lock().unwrap().push(allowed);
            tool.complete([]).await?;
            turn.say(format!("allowed: {allowed}. ")).await?;
        }
        turn.say(format!("echo: {text}")).await?;
        Ok(StopReason::EndTurn)
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.modes.lock().unwrap().push(mode.to_string());
        Ok(())
    }
}

impl Habit {
    fn agent(&self) -> Agent {
        let this = self.clone();
        let again = self.clone();
        let modes = || {
            let mode = |id: &str, name: &str| SessionMode::new(id, name);
            SessionModeState::new("ask", [mode("ask", "Ask"), mode("plan", "Plan"), mode("code", "Code")])
        };
        Agent::new(move |_: OpenRequest| {
            let this = this.clone();
            async move { Ok(OpenedSession::new(this).modes(modes())) }
        })
        .load(move |session: OpenRequest| {
            let this = again.clone();
            async move {
                let said = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said before"}}"#;
                session.session.send(serde_json::from_str(said).unwrap()).await?;
                Ok(this)
            }
        })
        .info("habit", "1.0")
    }

    fn prompts(&self) -> Vec<String> {
        self.prompts.lock().unwrap().clone()
    }
}

async fn start() -> (Chat, Habit) {
    let habit = Habit::default();
    (Start::new().with(habit.agent()).await, habit)
}

#[tokio::test]
async fn esc_interrupts_and_keeps_what_was_typed() {
    let (mut chat, habit) = start().await;
    chat.say("wait one");
    chat.sees("working, Esc interrupts").await;
    chat.keys("half a thought");
    chat.prompts("half a thought").await;
    chat.keys(ESC);
    chat.sees("! cancelled").await;
    chat.prompts("half a thought").await;
    // Twice on an idle line clears it; undo brings it back.
    chat.keys(ESC);
    chat.sees("press Esc again to clear the line").await;
    chat.keys(ESC);
    chat.prompts("").await;
    chat.keys("\x1f");
    chat.prompts("half a thought").await;
    assert_eq!(habit.prompts(), ["wait one"]);
}

#[tokio::test]
async fn esc_closes_menus_and_enter_takes_the_only_command() {
    let (mut chat, habit) = start().await;
    chat.keys("/co");
    chat.sees("Show usage and cost").await;
    chat.keys(ESC);
    chat.sees_no_more("Show usage and cost").await;
    chat.prompts("/co").await;
    chat.keys("s");
    chat.sees("Show usage and cost").await;
    chat.keys(ENTER);
    chat.sees("no usage reported yet").await;
    // Arrows choose in the menu.
    chat.keys("/");
    chat.sees("/cancel").await;
    chat.keys(DOWN);
    chat.prompts("/cancel").await;
    chat.keys(UP);
    chat.keys(&format!("{DOWN}{ENTER}"));
    chat.sees("nothing to cancel").await;
    assert!(habit.prompts().is_empty());
}

#[tokio::test]
async fn arrows_and_enter_answer_a_question() {
    let (mut chat, habit) = start().await;
    chat.say("ask first");
    chat.asks("make all").await;
    chat.sees("❯ 1 y").await;
    chat.keys("q");
    chat.sees("arrows and Enter, a letter or a number answer; Esc interrupts").await;
    chat.keys(ENTER);
    chat.sees("allowed: true. echo: ask first").await;
    chat.say("ask second");
    chat.until("a question", |screen| screen.contents().contains("❯ 1 y")).await;
    let refusal = chat.text().lines().position(|line| line.contains(" n No")).unwrap();
    let first = chat.text().lines().position(|line| line.contains("❯ 1 y")).unwrap();
    chat.keys(&DOWN.repeat(refusal - first));
    chat.until("the refusal selected", |screen| {
        screen.contents().lines().any(|line| line.starts_with('❯') && line.contains(" n No"))
    })
    .await;
    chat.keys(ENTER);
    chat.sees("allowed: false. echo: ask second").await;
    assert_eq!(*habit.answers.lock().unwrap(), [true, false]);
}

#[tokio::test]
async fn esc_leaves_a_question_and_the_turn() {
    let (mut chat, habit) = start().await;
    chat.say("ask");
    chat.asks("make all").await;
    chat.keys(ESC);
    chat.sees("! cancelled").await;
    chat.prompts("").await;
    assert!(habit.answers.lock().unwrap().is_empty() || *habit.answers.lock().unwrap() == [false]);
}

#[tokio::test]
async fn a_refusal_can_say_what_to_do_instead() {
    let (mut chat, habit) = start().await;
    chat.say("ask");
    chat.asks("make all").await;
    chat.sees("i No, and do this instead").await;
    chat.keys("i");
    chat.sees("      >").await;
    chat.keys("use ninja");
    chat.sees("      > use ninja").await;
    chat.keys(ENTER);
    chat.sees("echo: use ninja").await;
    assert_eq!(habit.prompts(), ["ask", "use ninja"]);
    assert_ne!(*habit.answers.lock().unwrap(), [true]);
}

#[tokio::test]
async fn a_queued_prompt_is_sent_now_by_a_second_enter() {
    let (mut chat, habit) = start().await;
    chat.say("wait for it");
    chat.sees("working").await;
    chat.say("do this first");
    chat.sees("queued: do this first (Up takes it back, Enter sends it now)").await;
    chat.keys(ENTER);
    chat.sees("echo: do this first").await;
    assert_eq!(habit.prompts(), ["wait for it", "do this first"]);
}

#[tokio::test]
async fn shift_tab_cycles_modes_and_the_picker_searches_them() {
    let (mut chat, habit) = start().await;
    chat.sees("habit · Ask").await;
    for mode in ["Plan", "Code", "Ask"] {
        chat.keys(SHIFT_TAB);
        chat.sees(&format!("habit · {mode}")).await;
    }
    chat.say("/mode");
    chat.sees("❯ * Ask").await;
    chat.keys("cd");
    chat.sees("❯   Code").await;
    chat.keys(ENTER);
    chat.sees("habit · Code").await;
    assert_eq!(*habit.modes.lock().unwrap(), ["plan", "code", "ask", "code"]);
}

#[tokio::test]
async fn shift_enter_is_a_new_line_where_terminals_tell() {
    let (mut chat, habit) = start().await;
    chat.writes("\x1b[>1u").await;
    chat.keys("one\x1b[13;2utwo");
    chat.sees("  two").await;
    chat.keys("\x1b[13u");
    chat.sees("echo: one\ntwo").await;
    assert_eq!(habit.prompts(), ["one\ntwo"]);
    chat.keys(CTRL_D);
    chat.exit().await;
    assert!(chat.written().contains("\x1b[<1u"));
}

#[tokio::test]
async fn the_prompt_is_written_in_an_editor() {
    let start = Start::new();
    let editor = start.place().path().join("editor");
    fs::write(&editor, "#!/bin/sh\ntest -t 0 && printf ' and more\\nlines\\n' >> \"$1\"\n").unwrap();
    fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let habit = Habit::default();
    let mut chat = start.env("EDITOR", editor.to_str().unwrap()).with(habit.agent()).await;
    for (keys, first) in [("\x07", "one"), ("\x18\x05", "two")] {
        chat.keys(first);
        chat.prompts(first).await;
        chat.keys(keys);
        chat.sees("  lines").await;
        chat.keys(ENTER);
        chat.sees(&format!("echo: {first} and more\nlines")).await;
    }
    assert_eq!(habit.prompts(), ["one and more\nlines", "two and more\nlines"]);
}

#[tokio::test]
async fn a_bang_runs_a_command_with_the_terminal() {
    let (mut chat, habit) = start().await;
    // What the commands print does not stand in their lines, so it is seen when they run.
    chat.say("!printf 'na''me? '; read name; echo \"<$name>\"; tput colors");
    chat.sees("name?").await;
    chat.keys("Ada\n");
    chat.sees("<Ada>").await;
    chat.sees("256").await;
    // The terminal is the chat's again.
    chat.prompts("").await;
    let text = chat.text();
    assert!(text.find("> !printf").unwrap() < text.find("<Ada>").unwrap(), "{text}");
    chat.say("!exit 3");
    chat.sees("the command failed (exit code 3)").await;
    chat.prompts("").await;
    // Ctrl-C ends the command and not the chat.
    chat.say("!echo sta''rted; exec sleep 1000");
    chat.sees("started").await;
    chat.keys("\x03");
    chat.sees("the command failed (signal 2)").await;
    chat.prompts("").await;
    chat.say("hello");
    chat.sees("echo: hello").await;
    assert_eq!(habit.prompts(), ["hello"]);
}

#[tokio::test]
async fn questions_and_ends_call_the_user() {
    let habit = Habit::default();
    let start = Start::new().env("ATTACHE_NOTIFY", "osc9").env("ATTACHE_NOTIFY_AFTER", "0");
    let mut chat = start.env("ATTACHE_TITLE", "true").with(habit.agent()).await;
    chat.say("ask");
    chat.asks("make all").await;
    chat.writes("\x1b]9;habit asks you\x07").await;
    chat.keys("y");
    chat.sees("echo: ask").await;
    chat.writes("\x1b]9;habit is done\x07").await;
    for title in ["? work - attache", "work - attache"] {
        chat.writes(&format!("\x1b]2;{title}\x07")).await;
    }
    chat.keys(CTRL_D);
    chat.exit().await;
    // The terminal restores the title that it had.
    let written = chat.written();
    assert!(written.contains("\x1b[22;2t") && written.contains("\x1b[23;2t"));
    let start = Start::new().env("ATTACHE_NOTIFY", "bell").env("ATTACHE_NOTIFY_AFTER", "0");
    let mut chat = start.with(Habit::default().agent()).await;
    chat.say("hello");
    chat.writes("\x07").await;
    assert!(!chat.written().contains("\x1b]"));
    let mut chat = Start::new().env("ATTACHE_TITLE", "true").with(Habit::default().agent()).await;
    chat.say("wait one");
    chat.writes("\x1b]2;… work - attache\x07").await;
}

#[tokio::test]
async fn words_on_the_command_line_are_the_first_prompt_of_the_chat() {
    let habit = Habit::default();
    let mut chat = Start::new().args(&["--ask", "fix", "the test"]).with(habit.agent()).await;
    chat.sees("echo: fix the test").await;
    chat.say("more");
    chat.sees("echo: more").await;
    assert_eq!(habit.prompts(), ["fix the test", "more"]);
    let mut chat = Start::new().args(&["chat", "hello"]).with(Habit::default().agent()).await;
    chat.sees("echo: hello").await;
}

#[tokio::test]
async fn a_mistyped_command_is_not_sent_to_a_model() {
    for (word, meant) in [("login", "attache auth login"), ("claud", "attache claude"), ("models", "/model")]
    {
        let mut chat = Start::new().args(&[word]).run_with("false");
        chat.sees("there is no command or agent").await;
        chat.sees(meant).await;
        assert_eq!(chat.exit().await.code(), Some(2));
    }
}

#[tokio::test]
async fn a_conversation_is_resumed() {
    let habit = Habit::default();
    let each = habit.clone();
    let mut chat = Start::new().with_each(move || each.agent()).await;
    chat.say("remember the blue house");
    chat.sees("echo: remember").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    chat.sees("resume this conversation: attache -c, or attache -r").await;
    let id = chat.text().lines().find_map(|line| line.split("attache -r ").nth(1)).unwrap().trim().to_owned();
    // The agent is the one of the record; none is named.
    let mut again = Start::new().after(&chat).args(&["-c"]).run_alone();
    again.sees("said before").await;
    again.keys(CTRL_D);
    again.exit().await;
    let mut again = Start::new().after(&chat).args(&["-r"]).run_alone();
    again.sees("remember the blue house").await;
    again.keys("green");
    again.sees("nothing matches").await;
    again.keys("\x15blue");
    again.sees("❯   remember the blue house").await;
    again.keys(ENTER);
    again.sees("said before").await;
    again.prompts("").await;
    again.say("go on");
    again.sees("echo: go on").await;
    again.keys(CTRL_D);
    again.exit().await;
    let mut again = Start::new().after(&chat).args(&["-r", &id]).run_alone();
    again.sees("said before").await;
    assert_eq!(habit.prompts(), ["remember the blue house", "go on"]);
}

#[tokio::test]
async fn files_are_found_by_a_part_of_their_path() {
    let start = Start::new();
    let work = start.place().work();
    fs::create_dir_all(work.join("crates/deep/src")).unwrap();
    fs::create_dir_all(work.join("target")).unwrap();
    fs::write(work.join(".gitignore"), "target/\n*.log\n").unwrap();
    for file in ["crates/deep/src/handler.rs", "crates/deep/src/header.rs", "target/handler.o", "handler.log"]
    {
        fs::write(work.join(file), "text\n").unwrap();
    }
    for number in 0..3_000 {
        fs::write(work.join(format!("crates/deep/file{number}.txt")), "").unwrap();
    }
    let habit = Habit::default();
    let mut chat = start.with(habit.agent()).await;
    chat.keys("see @hndl");
    chat.sees("  crates/deep/src/handler.rs").await;
    assert!(!chat.text().contains("handler.o") && !chat.text().contains("handler.log"));
    chat.keys(ENTER);
    chat.prompts("see @crates/deep/src/handler.rs").await;
    chat.keys("and @crdsrhe");
    chat.sees("  crates/deep/src/header.rs").await;
    chat.keys(ESC);
    chat.sees_no_more("  crates/deep/src/header.rs").await;
    chat.keys(ENTER);
    chat.sees("@crdsrhe: there is no such file").await;
    chat.sees("attached: crates/deep/src/handler.rs").await;
}

#[tokio::test]
async fn answers_are_copied_and_conversations_exported() {
    let (mut chat, _) = start().await;
    chat.say("/copy");
    chat.sees("no answer to copy yet").await;
    chat.say("one");
    chat.sees("echo: one").await;
    chat.say("/copy");
    // "echo: one" in Base64.
    chat.writes("\x1b]52;c;ZWNobzogb25l\x07").await;
    for file in ["talk.md", "talk.html"] {
        chat.say(&format!("/export {file}"));
        chat.sees(&format!("work/{file}")).await;
    }
    let read = |file: &str| fs::read_to_string(chat.place.work().join(file)).unwrap();
    assert!(read("talk.md").contains("## You\n\none\n\n## habit\n\necho: one\n"), "{}", read("talk.md"));
    assert!(read("talk.html").contains("<h2>habit</h2>\n<pre>echo: one</pre>"), "{}", read("talk.html"));
    chat.say("/export talk.md");
    chat.sees("exists").await;
}

#[tokio::test]
async fn lists_in_the_chat_have_pickers() {
    let (mut chat, _) = start().await;
    chat.say("/permissions");
    chat.sees("nothing is always allowed or denied in this project").await;
    chat.say("/mcp");
    chat.sees("no MCP servers").await;
    chat.say("/login");
    chat.sees("the agent offers no login").await;
    chat.say("ask");
    chat.asks("make all").await;
    let always = chat.text().lines().find_map(|line| line.split_once(" a ").map(|_| ())).is_some();
    assert!(always, "{}", chat.text());
    chat.keys("a");
    chat.sees("echo: ask").await;
    chat.say("/permissions");
    chat.sees("❯   always: ").await;
    chat.keys(ENTER);
    chat.sees("revoked ").await;
    chat.say("/permissions");
    chat.sees("nothing is always allowed or denied").await;
}

#[tokio::test]
async fn another_size_leaves_no_copy_of_the_screen_behind() {
    let (mut chat, _) = start().await;
    chat.say("hello");
    chat.sees("echo: hello").await;
    for columns in [70, 60, 72] {
        chat.resize(30, columns);
        chat.until("the new width", |screen| screen.size().1 == columns).await;
    }
    chat.say("again");
    chat.sees("echo: again").await;
    assert_eq!(chat.history().matches("habit · Ask").count(), 1, "{}", chat.history());
    assert!(!chat.written().contains("\x1b[2J"));
}

/// Calls tools as Claude's adapter does: results in fences, two calls at once.
#[derive(Clone)]
struct Tools;

impl AgentSession for Tools {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        let command = |text: &str| Json::new(&serde_json::json!({"command": text})).unwrap();
        let first = turn.tool("Run ls").kind(ToolKind::Execute).input(command("ls")).start().await?;
        let second = turn.tool("make all").kind(ToolKind::Execute).input(command("make all")).start().await?;
        let (one, two) = tokio::join!(turn.ask(&first, usual_options()), turn.ask(&second, usual_options()));
        assert!(one?.is_allowed() && two?.is_allowed());
        first.complete(["```console\nsrc\nREADME.md\n```".into()]).await?;
        second.complete(["made".into()]).await?;
        turn.say("both done").await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn tool_results_are_markdown_and_no_call_is_shown_twice() {
    let agent = Agent::new(|_: OpenRequest| async move { Ok(Tools) });
    let mut chat = Start::new().with(agent).await;
    chat.say("go");
    for _ in 0..2 {
        chat.asks("Run this in").await;
        chat.keys("y");
        chat.until("an answer", |screen| !screen.contents().contains(" 1 y ")).await;
    }
    chat.sees("both done").await;
    let history = chat.history();
    assert!(history.contains("│   README.md") && history.contains("│ made"), "{history}");
    assert!(!history.contains("```"), "{history}");
    // The kind is not repeated, and no spinner stays behind.
    assert!(history.contains("✓ Run ls") && !history.contains("run Run"), "{history}");
    assert!(!history.contains("(waiting"), "{history}");
    assert_eq!(history.matches("✓ run make all").count(), 1, "{history}");
}

#[tokio::test]
async fn addresses_and_files_are_links_where_the_terminal_has_them() {
    let script = "on session/prompt\n\
        \x20 update {\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"Read it\",\"kind\":\"read\",\"status\":\"completed\",\"locations\":[{\"path\":\"/w/a b.rs\"}]}\n\
        \x20 say See [the page](https://a.example/x?y=1) and [a trap](javascript:alert(1)).\n\
        \x20 done end_turn\n";
    let mut chat = Start::new().env("FORCE_HYPERLINK", "1").with_script(script).await;
    chat.say("go");
    chat.sees("See the page (https://a.example/x?y=1) and a trap (javascript:alert(1)).").await;
    let written = chat.written();
    assert!(written.contains(";https://a.example/x?y=1\x1b\\"), "{written}");
    assert!(written.contains(";file:///w/a%20b.rs\x1b\\"), "{written}");
    assert!(!written.contains(";javascript"), "{written}");
    let opened = written.matches("\x1b]8;id=").count();
    assert_eq!(written.matches("\x1b]8;;\x1b\\").count(), opened);

    // Without a word of the terminal there are none.
    let mut chat = Start::new().with_script(script).await;
    chat.say("go");
    chat.sees("See the page (https://a.example/x?y=1)").await;
    assert!(!chat.written().contains("\x1b]8"), "{}", chat.written());
}

#[tokio::test]
async fn servers_context_and_logins_are_shown() {
    let start = Start::new().args(&["--ask", "--mcp-config", "mcp.json"]);
    let servers = r#"{"mcpServers":{"files":{"command":"/bin/files","args":["--key","sesame"]}}}"#;
    fs::write(start.place().work().join("mcp.json"), servers).unwrap();
    let script = "on initialize\n\
        \x20 reply {\"protocolVersion\":1,\"authMethods\":[{\"id\":\"web\",\"name\":\"With a browser\"}]}\n\
        on authenticate\n  reply {}\n\
        on session/prompt\n\
        \x20 update {\"sessionUpdate\":\"usage_update\",\"used\":50000,\"size\":200000}\n\
        \x20 say counted\n  done end_turn\n";
    let mut chat = start.with_script(script).await;
    chat.say("/mcp");
    chat.sees("MCP servers").await;
    chat.sees("files  /bin/files (2 arguments)").await;
    chat.say("/context");
    chat.sees("no usage reported yet").await;
    chat.say("go");
    chat.sees("counted").await;
    chat.say("/context");
    chat.sees("context  50.0k of 200k tokens (25%), 150k left").await;
    chat.say("/login");
    chat.sees("With a browser").await;
    chat.sees("Enter chooses").await;
    chat.keys(ENTER);
    // The agent is started again, so that it sees the login.
    chat.sees("logged in to ").await;
    chat.sees("restarting the agent").await;
    assert!(!chat.history().contains("sesame"), "{}", chat.history());
}
