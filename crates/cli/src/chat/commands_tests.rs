#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use attache::wire::v1::{AvailableCommand, SessionConfigOption, SessionMode, SessionModeState};

use super::super::state::Target;
use super::*;
use attache_term::editor::complete::{Menu, complete};

fn state() -> SessionState {
    let modes = [SessionMode::new("ask", "Ask first"), SessionMode::new("code", "Just code")];
    SessionState {
        commands: Arc::new([
            AvailableCommand::new("review", "Reviews"),
            AvailableCommand::new("diff", "Theirs"),
            AvailableCommand::new("context", "Theirs"),
        ]),
        modes: Some(SessionModeState::new("ask", modes)),
        ..SessionState::empty()
    }
}

#[test]
fn lines_are_prompts_commands_or_mistakes() {
    let state = state();
    let prompt = |text: &str| Input::Prompt(text.to_owned());
    let command = Input::Command;
    for (text, expected) in [
        ("hello /mode", prompt("hello /mode")),
        ("/review all of it", prompt("/review all of it")),
        ("//diff", prompt("/diff")),
        ("/diff", command(Command::Diff)),
        ("/context", prompt("/context")),
        ("/cost", command(Command::Cost)),
        ("/usr/bin/env is what?", prompt("/usr/bin/env is what?")),
        ("/mode", command(Command::Mode(None))),
        ("/mode code", command(Command::Mode(Some("code".to_owned())))),
        ("/set a=b c", command(Command::Set(Some(("a".to_owned(), Some("b c".to_owned())))))),
        ("/set a", command(Command::Set(Some(("a".to_owned(), None))))),
        ("/load 3", command(Command::Load(Some("3".to_owned())))),
        ("/exit", command(Command::Quit)),
    ] {
        assert_eq!(parse(text, &state), expected, "{text}");
    }
    assert!(matches!(parse("/nope", &state), Input::Mistake(_)));
    assert_eq!(parse("/resume", &state), command(Command::Resume));
    assert_eq!(parse("/load", &state), command(Command::Load(None)));
}

fn texts(menu: Option<Menu>) -> Vec<String> {
    menu.map_or(Vec::new(), |menu| menu.items.into_iter().map(|item| item.text).collect())
}

#[test]
fn commands_and_their_arguments_are_completed() {
    let state = state();
    let at = |text: &str| texts(complete(text, text.len(), &state, Path::new("/")));
    assert_eq!(at("/mo"), ["/mode ", "/model "]);
    assert_eq!(at("/rev"), ["/review "]);
    // BuiltinCommand come first where both have one.
    assert_eq!(at("/dif"), ["/diff "]);
    assert_eq!(at("/mode "), ["ask", "code"]);
    assert_eq!(at("/mode c"), ["code"]);
    assert!(at("/mode code x").is_empty());
    assert!(at("say /mo").is_empty());
}

#[test]
fn files_are_completed_where_a_word_begins() {
    let dir = std::env::temp_dir().join(format!("attache-complete-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("src")).unwrap();
    for name in ["a.txt", "a b.txt", ".hidden", "src/lib.rs"] {
        std::fs::write(dir.join(name), "").unwrap();
    }
    let at = |text: &str| texts(complete(text, text.len(), &state(), &dir));
    assert_eq!(at("see @"), ["@\"a b.txt\" ", "@a.txt ", "@src/"]);
    assert_eq!(at("@."), ["@.hidden "]);
    assert_eq!(at("(@src/l"), ["@src/lib.rs "]);
    assert_eq!(at("@\"a "), ["@\"a b.txt\" "]);
    assert!(at("me@a").is_empty());
    assert!(at("@a.txt and").is_empty());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_menu_knows_what_its_items_share() {
    let menu = |texts: &[&str]| Menu {
        from: 0,
        items: texts.iter().map(|text| Item::new(*text, "")).collect(),
        chosen: None,
    };
    assert_eq!(menu(&["@src/main.rs ", "@src/module.rs "]).common(), "@src/m");
    assert_eq!(menu(&["äb", "ä"]).common(), "ä");
    assert_eq!(menu(&["x"]).common(), "x");
    let mut two = menu(&["a", "b"]);
    two.step(true);
    assert_eq!(two.chosen().unwrap().text, "b");
    two.step(false);
    assert_eq!(two.chosen().unwrap().text, "a");
}

#[test]
fn options_count_before_modes() {
    // shows CONF-02, MODE-09
    let mut state = state();
    assert_eq!(state.mode().unwrap().target, Target::Mode);
    assert_eq!(state.mode().unwrap().current_name(), "Ask first");
    assert_eq!(state.mode().unwrap().find("just CODE").unwrap().id, "code");
    state.options = Arc::new([SessionConfigOption::boolean("fast", "Fast", true)]);
    assert!(state.mode().is_none());
    let fast = state.option("fast").unwrap();
    assert_eq!((fast.target, fast.current.as_str()), (Target::Switch("fast".to_owned()), "on"));
}
