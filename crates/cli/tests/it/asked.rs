//! `exec` and `prompt` in a terminal: the user can be asked.

use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};

use crate::world::{World, eventually};

const EDIT: &str = r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Edit a.txt","kind":"edit","rawInput":{"path":"$cwd/a.txt"},"content":[{"type":"diff","path":"$cwd/a.txt","oldText":"old line","newText":"new line"}]},"options":[{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"no","name":"No","kind":"reject_once"}]}
  say $last
  done end_turn
"#;

/// The program on a terminal.
struct Terminal {
    pty: std::sync::Arc<Pty>,
    child: Child,
    pieces: mpsc::Receiver<String>,
    seen: String,
}

impl Terminal {
    fn new(world: &World, args: &[&str]) -> Terminal {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(40, 120)).unwrap();
        let plain = world.command(args);
        let mut command = Command::new(plain.get_program())
            .args(plain.get_args())
            .current_dir(plain.get_current_dir().unwrap())
            .env("NO_COLOR", "1");
        for (name, value) in plain.get_envs() {
            if let Some(value) = value {
                command = command.env(name, value);
            }
        }
        let child = command.spawn(pts).unwrap();
        let pty = std::sync::Arc::new(pty);
        let (send, pieces) = mpsc::channel();
        let reader = pty.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                if send.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Terminal { pty, child, pieces, seen: String::new() }
    }

    #[track_caller]
    fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let piece = self.pieces.recv_timeout(Duration::from_secs(60));
            self.seen
                .push_str(&piece.unwrap_or_else(|_| panic!("`{text}` never came; there was: {}", self.seen)));
        }
    }

    fn types(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_question_shows_what_it_is_about_and_takes_an_answer() {
    let world = World::new().agent(EDIT);
    for (answer, option, code) in
        [("y\r", "once", 0), ("a\r", "once", 0), ("4\r", "always", 0), ("n\r", "no", 5), ("\r", "no", 5)]
    {
        let world = World::new().agent(EDIT);
        let mut terminal = Terminal::new(&world, &["exec", "go"]);
        terminal.sees("Edit a.txt?");
        terminal.sees("- old line");
        terminal.sees("+ new line");
        terminal.sees("Yes, once (“Once”)");
        terminal.sees("Yes, until this command ends: edit files");
        terminal.sees("Always in this project: edit files (scripted)");
        terminal.sees("scripted: “Always”");
        terminal.sees("\n? ");
        terminal.types(answer);
        terminal.sees(&format!("\"optionId\":\"{option}\""));
        assert_eq!(terminal.code(), Some(code), "{}", terminal.seen);
    }
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    // What is typed before the question can be seen is no answer to it.
    terminal.types("y\ry\r");
    terminal.sees("\n? ");
    terminal.types("what?\r");
    terminal.sees("no such answer");
    terminal.types("y\r");
    terminal.sees("\"optionId\":\"once\"");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn a_refused_command_is_not_repeated() {
    let script = r#"on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"c","title":"`rm -rf build`","kind":"execute","rawInput":{"command":"rm -rf build"},"content":[{"type":"content","content":{"type":"text","text":"```sh\nrm -rf build\n```"}}]},"options":[{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}
  update {"sessionUpdate":"tool_call_update","toolCallId":"c","title":"`rm -rf build`","kind":"execute","status":"failed","rawInput":{"command":"rm -rf build"},"content":[{"type":"content","content":{"type":"text","text":"the user said no"}},{"type":"content","content":{"type":"text","text":"```sh\nrm -rf build\n```"}}]}
  say so not
  done end_turn
"#;
    let world = World::new().agent(script);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("\n? ");
    terminal.types("n\r");
    terminal.sees("[done] end_turn");
    let seen = terminal.seen.replace('\r', "");
    let (question, answer) = seen.split_once("your answer: ").unwrap();
    // Once in full; the rows of the answers name what they are about.
    assert_eq!(
        question.lines().filter(|line| line.starts_with('│') && line.contains("rm -rf")).count(),
        1,
        "{seen}"
    );
    assert!(answer.contains("[tool] `rm -rf build` (failed)"), "{seen}");
    assert!(answer.contains("    the user said no"), "{seen}");
    assert_eq!(answer.matches("rm -rf").count(), 1, "{seen}");
}

#[test]
fn always_is_remembered_and_can_be_taken_back() {
    let world = World::new().agent(EDIT);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("\n? ");
    terminal.types("a\r");
    assert_eq!(terminal.code(), Some(0));
    // From now on no user is needed.
    let run = world.run(&["--format", "quiet", "exec", "go"]).code(0);
    assert!(run.stdout.contains("optionId"), "{}", run.stdout);
    let list = world.run(&["permissions"]).ok();
    assert!(list.contains("always: edit files\t"), "{list}");
    let number = list.split('\t').next().unwrap().to_owned();
    world.run(&["permissions", "revoke", &number]).ok();
    world.run(&["exec", "go"]).code(5);
}

#[test]
fn the_question_of_a_session_is_asked_where_the_prompt_was_typed() {
    let world = World::new().agent(EDIT);
    world.run(&["sessions", "new"]).ok();
    let mut terminal = Terminal::new(&world, &["prompt", "go"]);
    terminal.sees("Yes, until this session ends: edit files");
    terminal.sees("\n? ");
    terminal.types("y\r");
    terminal.sees("\"optionId\":\"once\"");
    terminal.sees("[done] end_turn");
    assert_eq!(terminal.code(), Some(0));
    // Cancelled from elsewhere, the question goes away.
    let mut terminal = Terminal::new(&world, &["prompt", "go"]);
    terminal.sees("[n]");
    world.run(&["cancel"]).ok();
    terminal.sees("[done] ");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn unrequested_effects_are_asked_about_too() {
    let world = World::new().agent(
        "on session/prompt\n  call fs/write_text_file {\"path\":\"$cwd/b.txt\",\"content\":\"the text\"}\n  done end_turn\n",
    );
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("Create b.txt?");
    terminal.sees("+ the text");
    terminal.sees("\n? ");
    terminal.types("n\r");
    assert_eq!(terminal.code(), Some(5));
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("\n? ");
    terminal.types("y\r");
    assert_eq!(terminal.code(), Some(0));
    assert_eq!(world.read("b.txt"), "the text");
}

/// Asks for a form, and says what came back.
const FORM: &str = r#"on session/prompt
  call elicitation/create {"mode":"form","message":"Where to deploy?","requestedSchema":{"type":"object","required":["region","count"],"properties":{"region":{"type":"string","title":"Region","oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"America"}]},"count":{"type":"integer","minimum":1,"maximum":9},"note":{"type":"string","default":"none"},"dry":{"type":"boolean"}}}}
  say $last
  done end_turn
"#;

const PAGE: &str = r#"on session/prompt
  call elicitation/create {"mode":"url","message":"Log in","elicitationId":"e","url":"https://login.example.org/start?x=1"}
  say $last
  done end_turn
"#;

#[test]
fn a_form_is_filled_in_field_by_field() {
    // shows ELIC-07, ELIC-08, ELIC-11, ELIC-13
    for session in [false, true] {
        let world = World::new().agent(FORM);
        let verb = if session {
            world.run(&["sessions", "new"]).ok();
            "prompt"
        } else {
            "exec"
        };
        let mut terminal = Terminal::new(&world, &[verb, "go"]);
        terminal.sees("? the agent \"scripted\" asks for input:");
        terminal.sees("Where to deploy?");
        terminal.sees("\"count\": ");
        terminal.types("many\r");
        terminal.sees("  \"count\" ");
        terminal.types("7\r");
        terminal.sees("\"dry\" (yes, no) (optional): ");
        terminal.types("y\r");
        terminal.sees("\"note\" [default: \"none\"]: ");
        terminal.types("\r");
        terminal.sees("1. eu  Europe");
        terminal.sees("\"Region\": ");
        terminal.types("3\r");
        terminal.sees("  \"region\" ");
        terminal.types("2\r");
        terminal.sees("Send these answers?");
        terminal.types("y\r");
        terminal.sees(r#""action":"accept""#);
        terminal.sees("[done] end_turn");
        assert_eq!(terminal.code(), Some(0), "{}", terminal.seen);
        let seen = terminal.seen.replace(char::is_whitespace, "");
        assert!(seen.contains(r#"{"count":7,"dry":true,"note":"none","region":"us"}"#), "{}", terminal.seen);
    }
}

#[test]
fn a_form_can_be_declined_and_taken_back() {
    let world = World::new().agent(FORM);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("\"count\": ");
    for line in ["1\r", "\r", "\r", "eu\r", "n\r"] {
        terminal.types(line);
    }
    terminal.sees(r#""action":"decline""#);
    assert_eq!(terminal.code(), Some(0));
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("\"count\": ");
    terminal.types("\x03");
    assert_eq!(terminal.code(), Some(130));
}

#[test]
fn a_page_is_opened_only_with_consent() {
    // shows ELIC-28, ELIC-29
    for (answer, action, opened) in [
        ("y\r", "accept", true),
        ("m\r", "accept", false),
        ("n\r", "decline", false),
        ("\r", "cancel", false),
    ] {
        let world = World::new().agent(PAGE);
        let browser = world.path("browser");
        let visited = world.path("visited");
        std::fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", visited.display())).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
        let world = world.env("BROWSER", browser.to_str().unwrap());
        let mut terminal = Terminal::new(&world, &["exec", "go"]);
        terminal.sees("https://login.example.org/start?x=1");
        terminal.sees("the host is \"login.example.org\"");
        terminal.sees("n declines) ");
        assert!(!visited.exists());
        terminal.types(answer);
        terminal.sees(&format!(r#""action":"{action}""#));
        assert_eq!(terminal.code(), Some(0));
        if opened {
            eventually("the visit", || {
                std::fs::read_to_string(&visited)
                    .is_ok_and(|url| url == "https://login.example.org/start?x=1")
            });
        } else {
            assert!(!visited.exists());
        }
    }
}

#[test]
fn forms_for_scripts() {
    let world = World::new().agent(FORM);
    // Without a user that is reported, and the agent learns that there was no decision.
    let run = world.run(&["exec", "go"]).code(0);
    assert!(run.stdout.contains(r#""action":"cancel""#), "{run:?}");
    assert!(run.stderr.contains("scripted asks: Where to deploy?"), "{run:?}");
    assert!(run.stderr.contains("--answers"), "{run:?}");
    let answers = r#"{"region":"eu","count":2,"elsewhere":true}"#;
    let run = world.run(&["--format", "quiet", "exec", "--answers", answers, "go"]).ok();
    assert!(run.contains(r#""action":"accept""#) && run.contains(r#""count":2"#), "{run}");
    assert!(run.contains(r#""note":"none""#) && !run.contains("elsewhere"), "{run}");
    world.write("answers.json", answers);
    world.run(&["sessions", "new"]).ok();
    let run = world.run(&["--format", "quiet", "prompt", "--answers", "answers.json", "go"]).ok();
    assert!(run.contains(r#""region":"eu""#), "{run}");
    // What does not fit is not sent.
    let run = world.run(&["exec", "--answers", r#"{"region":"mars","count":2}"#, "go"]).code(0);
    assert!(
        run.stdout.contains(r#""action":"cancel""#) && run.stderr.contains("does not fit: `region`"),
        "{run:?}"
    );
    for wrong in ["[1]", "missing.json", "{"] {
        world.run(&["exec", "--answers", wrong, "go"]).code(2);
    }
    let page = World::new().agent(PAGE);
    let run = page.run(&["exec", "go"]).code(0);
    assert!(run.stdout.contains(r#""action":"cancel""#), "{run:?}");
}

#[test]
fn a_question_can_be_interrupted() {
    let world = World::new().agent(EDIT);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("[n]");
    terminal.types("\x03");
    assert_eq!(terminal.code(), Some(130));
    assert!(world.methods().contains(&"session/cancel".to_owned()));
}
