//! Slash commands: the agent's own and those of the project.

use attache::StopReason;
use attache::client::{Client, Event};
use attache_agent::{Mode, Options};

use crate::rig::{Project, allow, connect, session};

#[tokio::test]
async fn commands_are_announced_the_projects_own_among_them() {
    // shows CMD-01, CMD-03
    let project = Project::new();
    project.write(
        ".attache/commands/fix.md",
        "---\ndescription: Fix an issue\nargument-hint: number\n---\nFix issue $ARGUMENTS.\n",
    );
    project.write(".attache/commands/undo.md", "not yours");
    project.write(".attache/commands/no command.md", "x");
    let mut session = session(&project, "==\nsay ${text}\n", Mode::Ask).await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Commands(_)));
    let commands = session.commands();
    let names: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(names, ["init", "compact", "review", "plan", "context", "undo", "fix"]);
    assert_eq!(commands[6].description, "Fix an issue");
    // shows CMD-04, CMD-05, CMD-06
    assert_eq!(allow(&mut session, "/fix 7 now").await.text, "Fix issue 7 now.");
    assert_eq!(allow(&mut session, "/nothing 7").await.text, "/nothing 7");
    // shows CMD-02
    project.write(".attache/commands/late.md", "Late $ARGUMENTS");
    assert_eq!(allow(&mut session, "/late bird").await.text, "Late bird");
    assert!(session.commands().iter().any(|command| command.name == "late"));
    assert!(allow(&mut session, "/init").await.text.contains("AGENTS.md"));
    assert!(allow(&mut session, "/review src").await.text.ends_with("Review this: src"));
}

#[tokio::test]
async fn plan_switches_the_mode() {
    let project = Project::new();
    let mut session =
        session(&project, "== when system \"You are in plan mode\"\nsay planning ${text}\n", Mode::Code)
            .await;
    assert_eq!(allow(&mut session, "/plan a tower").await.text, "planning a tower");
    assert_eq!(session.modes().unwrap().current_mode_id.as_str(), "plan");
    assert!(allow(&mut session, "/plan").await.text.contains("What shall I plan?"));
}

#[tokio::test]
async fn undo_takes_every_change_of_the_last_turn_back() {
    let project = Project::new();
    project.write("a.txt", "a\n");
    project.write("gone.txt", "gone\n");
    project.write("moved.txt", "moved\n");
    let script = r#"== when "go"
--
call read {"path": "a.txt"}
call edit {"path": "a.txt", "old": "a", "new": "b"}
call write {"path": "new/dir/n.txt", "content": "n"}
call delete {"path": "gone.txt"}
call move {"from": "moved.txt", "to": "there.txt"}
call run {"command": "echo more >> a.txt; echo made > made.txt"}
--
say done
== when "took back"
say I see.
"#;
    let store = project.outside("agent.db");
    let options = Options { mode: Some(Mode::Auto), store: Some(store), ..project.script(script) };
    let agent = connect(Client::new(), options).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(allow(&mut session, "go").await.text, "done");
    assert_eq!(project.read("a.txt"), "b\nmore\n");
    assert!(project.has("made.txt") && project.has("there.txt") && !project.has("gone.txt"));
    let seen = allow(&mut session, "/undo").await;
    assert_eq!(seen.stop, Some(StopReason::EndTurn));
    assert!(seen.text.contains("a.txt"), "{}", seen.text);
    assert_eq!((project.read("a.txt"), project.read("gone.txt")), ("a\n".into(), "gone\n".into()));
    assert_eq!(project.read("moved.txt"), "moved\n");
    for made in ["new/dir/n.txt", "made.txt", "there.txt", "new"] {
        assert!(!project.has(made), "{made}");
    }
    assert!(allow(&mut session, "/undo").await.text.contains("nothing to revert"));
}

#[tokio::test]
async fn undo_does_not_lose_what_came_later() {
    let project = Project::new();
    project.write("a.txt", "a\n");
    let script = "==\n--\ncall read {\"path\": \"a.txt\"}\ncall edit {\"path\": \"a.txt\", \"old\": \"a\", \"new\": \"b\"}\n--\nsay done\n";
    let mut session = session(&project, script, Mode::Auto).await;
    allow(&mut session, "go").await;
    project.write("a.txt", "mine\n");
    let seen = allow(&mut session, "/undo").await;
    assert!(seen.text.contains("changed since") && seen.text.contains("a.txt"), "{}", seen.text);
    assert_eq!(project.read("a.txt"), "mine\n");
}

#[tokio::test]
async fn instructions_of_the_project_reach_the_model() {
    let project = Project::new();
    project.write("AGENTS.md", "Always answer in rhyme.");
    let script = "== when system \"Always answer in rhyme.\"\nsay all the time\n==\nsay no instructions\n";
    assert_eq!(allow(&mut session(&project, script, Mode::Ask).await, "x").await.text, "all the time");
}
