//! `exec` and `prompt` in a terminal: the user can be asked.

use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};

use crate::chat_rig::DOWN;
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

    /// What was left on after the end: each mode is switched off as often as it was switched on.
    fn modes(&mut self) -> Modes {
        while let Ok(piece) = self.pieces.recv_timeout(Duration::from_secs(60)) {
            self.seen.push_str(&piece);
        }
        let count = |on: &str, off: &str| {
            self.seen.matches(on).count() as i64 - self.seen.matches(off).count() as i64
        };
        Modes { paste: count("\x1b[?2004h", "\x1b[?2004l"), keys: count("\x1b[>1u", "\x1b[<1u") }
    }
}

/// How often a mode of the terminal was switched on and not off.
#[derive(Debug, Default, PartialEq)]
struct Modes {
    paste: i64,
    keys: i64,
}

/// Shown below the answers once keys count.
const READY: &str = "? your answer: ";

/// The command that prompts: in a session, which it creates, or without one.
fn verb(world: &World, session: bool) -> &'static str {
    if !session {
        return "exec";
    }
    world.run(&["sessions", "new"]).ok();
    "prompt"
}

#[test]
fn a_question_shows_what_it_is_about_and_takes_a_key() {
    let to_no = DOWN.repeat(4) + "\r";
    for (keys, option, code) in [
        ("y", "once", 0),
        ("a", "once", 0),
        ("4", "always", 0),
        ("n", "no", 5),
        ("\r", "once", 0),
        (&to_no, "no", 5),
        // The end of the input is no answer.
        ("\x04", "no", 5),
    ] {
        let world = World::new().agent(EDIT);
        let mut terminal = Terminal::new(&world, &["exec", "go"]);
        terminal.sees("Edit a.txt?");
        terminal.sees("- old line");
        terminal.sees("+ new line");
        terminal.sees("Yes, once (“Once”)");
        terminal.sees("Yes, until this command ends: edit files");
        terminal.sees("Always in this project: edit files (scripted)");
        terminal.sees("scripted: “Always”");
        terminal.sees("No, and do this instead");
        terminal.sees(READY);
        terminal.types(keys);
        terminal.sees(&format!("\"optionId\":\"{option}\""));
        assert_eq!(terminal.code(), Some(code), "{}", terminal.seen);
        assert_eq!(terminal.modes(), Modes::default(), "{keys:?}: {}", terminal.seen);
    }
}

#[test]
fn keys_that_were_typed_before_the_question_are_no_answer() {
    let world = World::new().agent(EDIT);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.types("y\ry\r");
    terminal.sees(READY);
    // Nor are keys without a meaning.
    terminal.types("x9n");
    terminal.sees("\"optionId\":\"no\"");
    assert_eq!(terminal.code(), Some(5));
}

#[test]
fn a_refusal_can_say_what_to_do_instead() {
    for session in [false, true] {
        let second = "on session/prompt 2\n  say as you like: $prompt\n  done end_turn\n";
        let world = World::new().agent(&format!("{EDIT}{second}"));
        let verb = verb(&world, session);
        let mut terminal = Terminal::new(&world, &[verb, "go"]);
        terminal.sees(READY);
        terminal.types("i");
        terminal.sees("      > ");
        terminal.types("the other file\r");
        terminal.sees("[permission] No, and do this instead: the other file");
        terminal.sees("as you like: the other file");
        assert_eq!(terminal.code(), Some(0), "{}", terminal.seen);
        let methods = world.methods();
        assert_eq!(methods.iter().filter(|method| *method == "session/prompt").count(), 2, "{methods:?}");
        assert!(methods.contains(&"session/cancel".to_owned()), "{methods:?}");
    }
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
    terminal.sees(READY);
    terminal.types("n");
    terminal.sees("[done] end_turn");
    let seen = terminal.seen.replace('\r', "");
    let (question, answer) = seen.split_once("[permission] No").unwrap();
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
    terminal.sees(READY);
    terminal.types("a");
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
    terminal.sees(READY);
    terminal.types("y");
    terminal.sees("\"optionId\":\"once\"");
    terminal.sees("[done] end_turn");
    assert_eq!(terminal.code(), Some(0));
    // Cancelled from elsewhere, the question goes away.
    let mut terminal = Terminal::new(&world, &["prompt", "go"]);
    terminal.sees(READY);
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
    terminal.sees(READY);
    terminal.types("n");
    assert_eq!(terminal.code(), Some(5));
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees(READY);
    terminal.types("y");
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
        let verb = verb(&world, session);
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
    for (key, session) in [("\x03", false), ("\x1b", false), ("\x03", true), ("\x1b", true)] {
        let world = World::new().agent(EDIT);
        let verb = verb(&world, session);
        let mut terminal = Terminal::new(&world, &[verb, "go"]);
        terminal.sees(READY);
        terminal.types(key);
        assert_eq!(terminal.code(), Some(130), "{key:?}: {}", terminal.seen);
        assert!(world.methods().contains(&"session/cancel".to_owned()));
        assert_eq!(terminal.modes(), Modes::default(), "{key:?}: {}", terminal.seen);
    }
}

#[test]
fn an_agent_that_dies_while_it_asks_leaves_the_terminal_as_it_was() {
    let world = World::new().agent(&EDIT.replacen("  call ", "  say pid $pid.\n  call ", 1));
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees(READY);
    let pid = terminal.seen.split_once("pid ").unwrap().1.split_once('.').unwrap().0.to_owned();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    assert_ne!(terminal.code(), Some(0), "{}", terminal.seen);
    assert_eq!(terminal.modes(), Modes::default(), "{}", terminal.seen);
}

#[test]
fn a_long_question_is_read_page_by_page_with_keys() {
    let old: String = (0..200).map(|line| format!("line {line}\\n")).collect();
    let script = EDIT.replace("old line", &old);
    let world = World::new().agent(&script);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("Enter shows more (a: all, q: stop reading) ");
    terminal.types("a");
    terminal.sees("- line 199");
    terminal.sees(READY);
    terminal.types("y");
    assert_eq!(terminal.code(), Some(0), "{}", terminal.seen);
    let mut terminal = Terminal::new(&world, &["exec", "go"]);
    terminal.sees("Enter shows more");
    terminal.types("q");
    terminal.sees("lines were not read");
    terminal.sees(READY);
    terminal.types("n");
    assert_eq!(terminal.code(), Some(5), "{}", terminal.seen);
}

#[test]
fn a_spinner_turns_until_the_agent_says_something() {
    // The agent is silent until the cancel, and answers then.
    let silent = "on session/prompt\n  wait session/cancel\n  say late words\n  done cancelled\n";
    for (session, waiting) in [(false, "waiting for scripted"), (true, "waiting for the agent")] {
        let world = World::new().agent(silent);
        let verb = verb(&world, session);
        let mut terminal = Terminal::new(&world, &[verb, "go"]);
        terminal.sees(waiting);
        terminal.types("\x03");
        assert_eq!(terminal.code(), Some(130), "{}", terminal.seen);
        assert_eq!(terminal.modes(), Modes::default());
        // Nothing of it stays on the screen.
        let mut screen = vt100::Parser::new(40, 120, 0);
        screen.process(terminal.seen.as_bytes());
        let screen = screen.screen().contents();
        assert!(!screen.contains("waiting"), "{screen}");
    }
}
