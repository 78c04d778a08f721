//! Tasks: a subagent with a fresh context and tools that only read.

use attache::StopReason;
use attache::client::{Client, Event};
use attache_agent::{Mode, Options};
use serde_json::json;

use crate::rig::{Project, Seen, allow, connect, session_of, take};

fn task(prompt: &str) -> String {
    json!({"title": "Look around", "prompt": prompt}).to_string()
}

/// A script whose model starts a task, and plays `inner` in it.
fn script(inner: &str) -> String {
    format!(
        "window: 50000\nprice: 1 10\n== when \"go\"\n--\nusage input=100 output=10\ncall task {}\n--\nusage input=200 output=10\nsay The answer: ${{result}}\n\
         == when \"where is it\"\n{inner}",
        task("where is it?")
    )
}

#[tokio::test]
async fn a_task_reads_in_a_context_of_its_own() {
    let project = Project::new();
    project.write("a.txt", "the needle\n");
    let inner = "--\nusage input=1000 output=50\ncall search {\"pattern\": \"needle\"}\ncall read {\"path\": \"a.txt\"}\n\
                 -- when result \"the needle\"\nusage input=2000 output=50\nsay It is in a.txt:1.\n--\nsay Nothing.\n";
    let mut session = session_of(Client::new().subagents(), &project, &script(inner), Mode::Ask).await;
    let mut turn = session.prompt("go").await.unwrap();
    let mut seen = Seen::default();
    while let Some(event) = turn.next().await.unwrap() {
        take(&mut seen, event, &mut |_| panic!("nothing is asked"));
    }
    assert_eq!(seen.text, "The answer: It is in a.txt:1.");
    assert_eq!(turn.usage().map(|usage| (usage.input_tokens, usage.output_tokens)), Some((3300, 120)));
    // Two updates, of the same subagent: running, then idle.
    let updates: Vec<&String> = seen.others.iter().filter(|other| other.starts_with("Subagent(")).collect();
    assert_eq!(updates.len(), 2, "{:#?}", seen.others);
    assert!(updates[0].contains("Running") && updates[0].contains("Look around"), "{}", updates[0]);
    assert!(updates[1].contains("Idle") && updates[1].contains("EndTurn"), "{}", updates[1]);
    // The tool call shows what it does.
    assert!(seen.contents().contains("search {"), "{}", seen.contents());
    assert_eq!(seen.states().last().unwrap(), "Task: Look around: completed");
    // Its results are not in the conversation.
    let context = allow(&mut session, "/context").await;
    assert!(context.text.contains("opened: 3,300 in"), "{}", context.text);
    assert!(context.text.contains("210 of 50,000 tokens"), "{}", context.text);
}

#[tokio::test]
async fn a_task_cannot_change_anything_or_leave_the_project() {
    let project = Project::new();
    let outside = project.outside("secret.txt");
    std::fs::write(&outside, "secret").unwrap();
    let inner = format!(
        "--\ncall write {{\"path\": \"evil\", \"content\": \"x\"}}\ncall run {{\"command\": \"touch evil\"}}\ncall task {}\ncall read {}\n--\nsay ${{result}}\n",
        task("more"),
        json!({"path": outside})
    );
    let mut session = session_of(Client::new(), &project, &script(&inner), Mode::Auto).await;
    let seen = allow(&mut session, "go").await;
    for refused in
        ["no tool `write`", "no tool `run`", "no tool `task`", "a permission that cannot be asked for"]
    {
        assert!(seen.text.contains(refused), "{refused}: {}", seen.text);
    }
    assert!(seen.asked.is_empty() && !project.has("evil") && !seen.text.contains("secret\n"), "{seen:#?}");
}

#[tokio::test]
async fn a_task_is_limited() {
    let project = Project::new();
    project.write("a.txt", &"x\n".repeat(30_000));
    let reads: Vec<String> =
        (1..40).map(|line| format!("--\ncall read {{\"path\": \"a.txt\", \"line\": {line}}}\n")).collect();
    let inner = format!("{}--\nsay too late\n", reads.concat());
    let mut session = session_of(Client::new(), &project, &script(&inner), Mode::Ask).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("the subagent returned no answer"), "{}", seen.text);
    assert_eq!(seen.stop, Some(StopReason::EndTurn));
}

#[tokio::test]
async fn a_cancelled_task_ends() {
    let project = Project::new();
    let options = Options { mode: Some(Mode::Ask), ..project.script(&script("hang\n")) };
    let agent = connect(Client::new().subagents(), options).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let mut updates = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Subagent(update) = event {
            updates.push(format!("{update:?}"));
            turn.cancel();
        }
    }
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    assert!(updates.len() == 2 && updates[1].contains("Cancelled"), "{updates:#?}");
}
