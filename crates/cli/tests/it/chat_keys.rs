//! Keys: the editor, completion, commands, the queue.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, OpenRequest, OpenedSession, OptionValue, Turn};
use attache::wire::v1::{
    AvailableCommand, ContentBlock, EmbeddedResourceResource, SessionConfigId, SessionConfigOption,
    SessionConfigSelectOption, SessionInfo, SessionMode, SessionModeId, SessionModeState,
};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_D, Cue, DOWN, ENTER, ESC, Start, TAB, UP};

/// Repeats the text of each prompt and keeps its blocks.
#[derive(Clone, Default)]
struct Echo {
    prompts: Arc<Mutex<Vec<Vec<ContentBlock>>>>,
    changes: Arc<Mutex<Vec<String>>>,
    cue: Cue,
}

impl AgentSession for Echo {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text().into_owned();
        self.prompts.lock().unwrap().push(prompt.into_blocks());
        if text.starts_with("wait") {
            turn.until_cancelled(self.cue.given()).await?;
        }
        match text.len() {
            0..1_000 => turn.say(format!("echo: {text}")).await?,
            length => turn.say(format!("echo of {length} bytes")).await?,
        }
        Ok(StopReason::EndTurn)
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.changes.lock().unwrap().push(format!("mode {mode}"));
        Ok(())
    }

    async fn option_changed(&self, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
        self.changes.lock().unwrap().push(format!("{id} {value:?}"));
        Ok(())
    }
}

impl Echo {
    fn agent(&self) -> Agent {
        let this = self.clone();
        Agent::new(move |_: OpenRequest| {
            let this = this.clone();
            async move { Ok(this) }
        })
        .info("echo", "1.0")
    }

    fn texts(&self) -> Vec<String> {
        let text = |blocks: &Vec<ContentBlock>| blocks.iter().filter_map(ContentBlock::as_text).collect();
        self.prompts.lock().unwrap().iter().map(text).collect()
    }
}

#[tokio::test]
async fn lines_are_edited_with_the_usual_keys() {
    let echo = Echo::default();
    let mut chat = Start::new().with(echo.agent()).await;
    chat.keys("one two three");
    chat.prompts("one two three").await;
    // To the front and a word, back over a word, cut it, paste it at the end.
    chat.keys("\x01zero \x1bb\x1bd\x05\x19");
    chat.until("the moved word", |screen| screen.contents().contains(">  one two threezero")).await;
    chat.keys("\x15");
    chat.prompts("").await;
    chat.keys("first\x1b\rsecond\\\rthird");
    chat.sees("  third").await;
    chat.keys(ENTER);
    chat.sees("echo: first\nsecond\nthird").await;
    chat.keys("\x1b[200~pasted\r\ntwo lines\x1b[201~");
    chat.sees("  two lines").await;
    chat.keys(ENTER);
    chat.sees("echo: pasted\ntwo lines").await;
    assert_eq!(echo.texts(), ["first\nsecond\nthird", "pasted\ntwo lines"]);
}

#[tokio::test]
async fn history_is_kept_over_runs() {
    let start = Start::new();
    let history = start.place().home().join("attache/state/history");
    let mut chat = start.with(Echo::default().agent()).await;
    for text in ["alpha", "beta gamma"] {
        chat.say(text);
        chat.sees(&format!("echo: {text}")).await;
    }
    chat.keys(UP);
    chat.prompts("beta gamma").await;
    chat.keys(UP);
    chat.prompts("alpha").await;
    chat.keys(DOWN);
    chat.prompts("beta gamma").await;
    chat.keys(&format!("{DOWN}\x12alph"));
    chat.sees("search: alph  alpha").await;
    chat.keys(ENTER);
    chat.prompts("alpha").await;
    assert_eq!(std::fs::read_to_string(history).unwrap(), "alpha\nbeta gamma\n");
}

#[tokio::test]
async fn files_are_completed_and_go_along() {
    let echo = Echo::default();
    let start = Start::new();
    let work = start.place().work();
    std::fs::create_dir(work.join("src")).unwrap();
    std::fs::write(work.join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(work.join("src/module.rs"), "").unwrap();
    std::fs::write(work.join("picture one.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let mut chat = start.with(echo.agent().images().embedded_context()).await;
    chat.keys("see @main");
    chat.sees("  src/main.rs").await;
    chat.keys(TAB);
    chat.prompts("see @src/main.rs").await;
    chat.keys("and @pic");
    chat.sees("  picture one.png").await;
    chat.keys(TAB);
    chat.prompts("see @src/main.rs and @\"picture one.png\"").await;
    chat.keys(ENTER);
    chat.sees("attached: src/main.rs (1 line), picture one.png (image)").await;
    chat.sees("echo: see").await;
    let prompts = echo.prompts.lock().unwrap();
    let [ContentBlock::Text(_), ContentBlock::Resource(resource), ContentBlock::Image(image)] =
        &prompts[0][..]
    else {
        panic!("{prompts:?}");
    };
    let EmbeddedResourceResource::Text(text) = &resource.resource else { panic!("{resource:?}") };
    assert_eq!(text.text, "fn main() {}\n");
    assert!(text.uri.starts_with("file:///") && text.uri.ends_with("/work/src/main.rs"));
    assert_eq!(image.mime_type, "image/png");
}

#[tokio::test]
async fn unsupported_images_are_linked_with_a_notice() {
    // shows PROMPT-02
    let echo = Echo::default();
    let start = Start::new();
    std::fs::write(start.place().work().join("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    std::fs::write(start.place().home().join("notes here.txt"), "text\n").unwrap();
    std::fs::write(start.place().work().join("q\"uote.txt"), "text\n").unwrap();
    let mut chat = start.with(echo.agent()).await;
    chat.say("see @a.png");
    chat.sees("attached: a.png (link only: the agent takes no pictures)").await;
    chat.sees("echo: see").await;
    assert!(matches!(
        &echo.prompts.lock().unwrap()[0][..],
        [ContentBlock::Text(_), ContentBlock::ResourceLink(_)]
    ));
    chat.keys(&format!("@~/no{TAB}"));
    chat.prompts("@\"~/notes here.txt\"").await;
    chat.keys("and @q");
    chat.sees("  q\"uote.txt").await;
    chat.keys(TAB);
    chat.prompts("@\"~/notes here.txt\" and @q\"uote.txt").await;
    chat.keys(ENTER);
    chat.sees("attached: ~/notes here.txt (link), q\"uote.txt (link)").await;
}

#[tokio::test]
async fn a_paste_as_long_as_a_book_is_one_prompt() {
    let echo = Echo::default();
    let mut chat = Start::new().with(echo.agent()).await;
    let book: String = (0..20_000).map(|number| format!("line {number} of a long book\n")).collect();
    chat.keys(&format!("\x1b[200~{book}\x1b[201~"));
    chat.prompts("[paste 1: 20000 lines]").await;
    // The keys are as quick as ever.
    chat.keys("the end");
    chat.prompts("[paste 1: 20000 lines]the end").await;
    chat.keys(ENTER);
    chat.sees("lines (Ctrl-O, /show 1)").await;
    chat.sees(&format!("echo of {} bytes", book.len() + 7)).await;
    chat.sees("> line 0 of a long book").await;
    assert_eq!(echo.texts(), [format!("{book}the end")]);
}

#[tokio::test]
async fn queued_prompts_can_be_edited_and_dropped() {
    let echo = Echo::default();
    let mut chat = Start::new().with(echo.agent()).await;
    chat.say("wait one");
    chat.sees("working").await;
    chat.say("two");
    chat.sees("queued: two (Up takes it back, Enter sends it now)").await;
    chat.keys(UP);
    chat.prompts("two").await;
    chat.sees_no_more("queued").await;
    chat.keys("\x15");
    chat.prompts("").await;
    chat.say("three");
    chat.sees("queued: three").await;
    chat.say("/cancel");
    chat.sees("! cancelled").await;
    chat.sees_no_more("queued").await;
    assert_eq!(echo.texts(), ["wait one"]);
}

#[tokio::test]
async fn prompts_wait_in_line_and_come_back_after_a_cancel() {
    let echo = Echo::default();
    let mut chat = Start::new().with(echo.agent()).await;
    chat.say("wait one");
    chat.sees("working").await;
    chat.say("two");
    chat.sees("queued: two").await;
    chat.say("three");
    chat.sees("queued: three").await;
    // The last one can be taken back and changed.
    chat.keys(UP);
    chat.prompts("three").await;
    chat.keys(&format!(" and more{ENTER}"));
    chat.sees("queued: three and more").await;
    echo.cue.give();
    chat.sees("echo: three and more").await;
    assert_eq!(echo.texts(), ["wait one", "two", "three and more"]);
    chat.say("wait four");
    chat.sees("working").await;
    chat.say("five");
    chat.sees("queued: five").await;
    chat.keys("\x03");
    chat.sees("! cancelled").await;
    chat.prompts("five").await;
    assert_eq!(echo.texts().len(), 4);
}

#[tokio::test]
async fn commands_of_both_sides() {
    let echo = Echo::default();
    let this = echo.clone();
    let modes =
        || SessionModeState::new("ask", [SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")]);
    let agent = Agent::new(move |_: OpenRequest| {
        let this = this.clone();
        async move {
            let commands = vec![AvailableCommand::new("review", "Reviews a change")];
            Ok(OpenedSession::new(this).modes(modes()).commands(commands))
        }
    });
    let mut chat = Start::new().with(agent.info("echo", "1.0")).await;
    chat.sees("echo · Ask").await;
    chat.keys("/rev");
    chat.sees("Reviews a change").await;
    chat.keys(&format!("{TAB}now{ENTER}"));
    chat.sees("echo: /review now").await;
    chat.say("/mode");
    chat.sees("❯ * Ask").await;
    chat.keys(ESC);
    chat.sees_no_more("❯").await;
    chat.keys(&format!("/mode c{TAB}"));
    chat.prompts("/mode code").await;
    chat.keys(ENTER);
    chat.sees("echo · Code").await;
    assert_eq!(*echo.changes.lock().unwrap(), ["mode code"]);
    chat.say("/mode wrong");
    chat.sees("no mode \"wrong\"; available: ask, code").await;
    chat.say("/nothing");
    chat.sees("there is no command /nothing").await;
    chat.say("//nothing");
    chat.sees("echo: /nothing").await;
    chat.say("/model");
    chat.sees("the agent offers no models to choose from").await;
    chat.say("/help");
    chat.sees("Agent commands").await;
    chat.say("/quit");
    assert!(chat.exit().await.success());
}

#[tokio::test]
async fn options_are_set() {
    let echo = Echo::default();
    let this = echo.clone();
    let agent = Agent::new(move |_: OpenRequest| {
        let this = this.clone();
        let value = |id: &str, name: &str| SessionConfigSelectOption::new(id, name);
        let values = vec![value("low", "Low"), value("high", "High")];
        async move {
            let effort = SessionConfigOption::select("effort", "Effort", "low", values);
            Ok(OpenedSession::new(this)
                .options(vec![effort, SessionConfigOption::boolean("fast", "Fast", false)]))
        }
    });
    let mut chat = Start::new().with(agent).await;
    chat.say("/set");
    chat.sees("effort = low").await;
    chat.sees("fast = off").await;
    chat.say("/set effort high");
    chat.sees("· effort: high").await;
    chat.say("/set fast on");
    chat.sees("· fast: on").await;
    chat.say("/set");
    chat.sees("effort = high").await;
    chat.say("/set nope 1");
    chat.sees("no option `nope`").await;
    assert_eq!(echo.changes.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn sessions_are_listed_loaded_forked_and_begun() {
    let echo = Echo::default();
    let again = |echo: &Echo| {
        let this = echo.clone();
        move |session: OpenRequest| {
            let this = this.clone();
            async move {
                let said = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"what was said before"}}"#;
                session.session.send(serde_json::from_str(said).unwrap()).await?;
                Ok(this)
            }
        }
    };
    let opened = Arc::new(Mutex::new(0));
    let (count, this) = (opened.clone(), echo.clone());
    let open = move |_: OpenRequest| {
        let this = this.clone();
        *count.lock().unwrap() += 1;
        async move { Ok(this) }
    };
    let forked = echo.clone();
    let agent = Agent::new(open)
        .load(again(&echo))
        .fork(move |_, _| {
            let this = forked.clone();
            async move { Ok(OpenedSession::new(this).id("the-copy")) }
        })
        .list(|request| async move {
            let info = |id: &str, title: &str| {
                SessionInfo::new(id, request.cwd.clone().unwrap()).title(title.to_owned())
            };
            Ok(attache::wire::v1::ListSessionsResponse::new(vec![
                info("s-old", "An old one"),
                info("s-older", "Older"),
            ]))
        });
    let mut chat = Start::new().with(agent).await;
    chat.say("/sessions");
    chat.sees("❯   An old one").await;
    chat.sees("Older").await;
    // A search, and Enter takes the first that matches.
    chat.keys("er");
    chat.sees("❯   Older").await;
    chat.keys(ENTER);
    chat.sees("what was said before").await;
    chat.sees("session s-older").await;
    // The agent reports no title; the list had one.
    chat.sees(" · Older").await;
    chat.say("/fork");
    chat.sees("session the-copy").await;
    chat.say("/new");
    chat.until("a third session", |screen| screen.contents().matches("session sess-").count() == 2).await;
    assert_eq!(*opened.lock().unwrap(), 2);
    chat.say("hello");
    chat.sees("echo: hello").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
}
