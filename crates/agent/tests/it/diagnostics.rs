//! A command of the settings that runs after edits.

use attache::wire::v1::PermissionOptionKind;
use attache_agent::{Mode, Options};
use serde_json::Value;

use crate::rig::{Project, Seen};
use crate::sloppy::{self, Reply, call, text};

const COMMAND: &str = "if grep -q wrong a.txt; then echo 'a.txt:1: it is wrong'; exit 1; fi; echo fine";

fn writes(content: &str) -> Reply {
    call("write", &format!("{{\"path\": \"a.txt\", \"content\": \"{content}\"}}"))
}

async fn play(mode: Mode, replies: Vec<Reply>, kind: PermissionOptionKind) -> (Seen, Vec<Value>) {
    let options = Options { mode: Some(mode), diagnostics: Some(COMMAND.to_owned()), ..Options::default() };
    sloppy::play_in_project(&Project::new(), options, replies, kind).await
}

#[tokio::test]
async fn complaints_go_to_the_model_until_there_are_none() {
    let replies =
        vec![call("read", "{\"path\": \"a.txt\"}"), writes("wrong"), writes("right"), text("Done.")];
    let (seen, last) = play(Mode::Auto, replies, PermissionOptionKind::AllowOnce).await;
    assert_eq!(seen.text, "Done.", "{seen:#?}");
    assert!(!last[1].to_string().contains("After your changes"), "nothing was changed: {}", last[1]);
    let complaint = last[2].as_str().unwrap();
    assert!(complaint.starts_with("[After your changes `if grep"), "{complaint}");
    assert!(complaint.contains("a.txt:1: it is wrong") && complaint.contains("exit code 1"), "{complaint}");
    assert!(!last[3].to_string().contains("After your changes"), "{}", last[3]);
    // The client sees both runs.
    assert_eq!(
        seen.states().iter().filter(|state| state.contains("grep") && state.ends_with("failed")).count(),
        1
    );
    assert_eq!(
        seen.states().iter().filter(|state| state.contains("grep") && state.ends_with("completed")).count(),
        1
    );
}

#[tokio::test]
async fn the_command_needs_a_permission() {
    let replies = || vec![writes("wrong"), writes("still wrong"), text("Done.")];
    let (seen, last) = play(Mode::Code, replies(), PermissionOptionKind::AllowOnce).await;
    assert_eq!(seen.asked.len(), 2, "{:?}", seen.titles_asked());
    assert!(last[1].as_str().unwrap().contains("it is wrong"));
    let (seen, last) = play(Mode::Code, replies(), PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.asked.len(), 1, "it is not asked for again: {:?}", seen.titles_asked());
    assert!(last.iter().all(|last| !last.to_string().contains("it is wrong")), "{last:?}");
}
