//! Through a real connection: an agent uses the capabilities of a client.

use std::path::PathBuf;
use std::sync::Arc;

use attache::agent::{self, Turn};
use attache::client::{Client, Event, Session};
use attache::wire::v1::ToolKind;
use attache::{Error, Link, Prompt, Result, StopReason, code};
use attache_host::Host;
use attache_host::policy::{Answer, Decision, Mode, Policy};
use serde_json::json;

use crate::kit::{Mark, Scratch};

/// An agent that does what the prompt says, with the client's files and terminals, and reports the
/// result.
struct Obedient {
    mark: String,
}

impl agent::AgentSession for Obedient {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        let (order, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let report = match order {
            "read" => turn.read_files().unwrap().read(rest).await,
            "write" => {
                turn.write_files().unwrap().write(rest, "from the agent").await.map(|()| "written".to_owned())
            }
            "ask-and-write" => {
                let tool = turn
                    .tool("Edit")
                    .kind(ToolKind::Edit)
                    .edit(attache::Edit::add(rest, "from the agent"))
                    .start()
                    .await?;
                match turn.ask(&tool, agent::usual_options()).await?.is_allowed() {
                    true => turn
                        .write_files()
                        .unwrap()
                        .write(rest, "from the agent")
                        .await
                        .map(|()| "written".to_owned()),
                    false => Ok("refused".to_owned()),
                }
            }
            "run" => self.run(&turn, rest).await,
            "leave-running" => {
                let terminals = turn.terminals().unwrap();
                let command = terminals.command("sh").args(["-c", "echo ready; read line"]);
                let terminal = command.env(Mark::NAME, &self.mark).start().await?.into_background();
                while terminal.output().await?.output != "ready\n" {
                    tokio::task::yield_now().await;
                }
                // TERM-05 is not kept by every agent.
                std::mem::forget(terminal);
                Ok("running".to_owned())
            }
            other => panic!("unknown order: {other}"),
        };
        match report {
            Ok(text) => turn.say(text).await?,
            Err(Error::Refused(error)) => turn.say(format!("{}: {}", error.code, error.message)).await?,
            Err(other) => return Err(other),
        }
        Ok(StopReason::EndTurn)
    }
}

impl Obedient {
    async fn run(&self, turn: &Turn<'_>, command: &str) -> Result<String> {
        let terminal = turn.terminals().unwrap().command("sh").args(["-c", command]).start().await?;
        let status = terminal.wait().await?;
        let output = terminal.output().await?.output;
        terminal.release().await?;
        Ok(format!("{output}{:?}", status.exit_code))
    }
}

async fn open(policy: &Arc<Policy>, root: PathBuf, mark: &str) -> Session {
    let (ours, theirs) = Link::pair();
    let mark = mark.to_owned();
    let serving = agent::serve(
        move |_| {
            let mark = mark.clone();
            async move { Ok(Obedient { mark }) }
        },
        theirs,
    );
    tokio::spawn(serving);
    let host = Host::new(policy.clone());
    let client = Client::new().read_files(host.files()).write_files(host.files()).terminals(host.terminals());
    let agent = client.connect(ours).await.unwrap();
    agent.new_session(root).await.unwrap()
}

/// Gives an order, answers questions as the policy says, and returns what the agent says.
async fn order(session: &mut Session, policy: &Policy, order: &str) -> String {
    let mut turn = session.prompt(order).await.unwrap();
    let mut said = String::new();
    while let Some(event) = turn.next().await.unwrap() {
        match event {
            Event::Text(text) => said.push_str(&text),
            Event::Permission(ask) => match policy.decide(ask.request()) {
                Decision::Choose(choice) => ask.choose(&choice.option).unwrap(),
                Decision::Ask(question) => {
                    // A person who says yes.
                    let decision = policy.answer(ask.request(), &question, &Answer::Once).unwrap();
                    let Decision::Choose(selected) = decision else { panic!() };
                    ask.choose(&selected.option).unwrap();
                }
                _ => ask.cancel(),
            },
            _ => {}
        }
    }
    drop(turn);
    policy.turn_over(session.id());
    said
}

#[tokio::test]
async fn files_of_the_session_and_no_others() {
    // shows ROOT-17, FS-13, FS-15
    let scratch = Scratch::new();
    let root = scratch.dir("project");
    scratch.file("project/a", "hello");
    scratch.file("outside", "secret");
    let policy = Arc::new(Policy::new(Mode::APPROVE_ALL).roots([&root]));
    let mut session = open(&policy, root.clone(), "").await;
    let at = |name: &str| root.join(name).display().to_string();
    assert_eq!(order(&mut session, &policy, &format!("read {}", at("a"))).await, "hello");
    let missing = order(&mut session, &policy, &format!("read {}", at("missing"))).await;
    assert!(missing.starts_with(&code::RESOURCE_NOT_FOUND.to_string()), "{missing}");
    for name in ["../outside", "/etc/passwd"] {
        let refused = order(&mut session, &policy, &format!("read {}", at(name))).await;
        assert!(refused.contains("outside of the directories"), "{refused}");
    }
    assert_eq!(order(&mut session, &policy, &format!("write {}", at("new/b"))).await, "written");
    assert_eq!(std::fs::read_to_string(root.join("new/b")).unwrap(), "from the agent");
}

#[tokio::test]
async fn a_permitted_effect_needs_no_second_question() {
    let scratch = Scratch::new();
    let policy = Arc::new(Policy::new(Mode::ASK).roots([scratch.path()]));
    let mut session = open(&policy, scratch.path().to_owned(), "").await;
    let at = |name: &str| scratch.join(name).display().to_string();
    // The files cannot ask the user here, so this is refused...
    let refused = order(&mut session, &policy, &format!("write {}", at("a"))).await;
    assert!(refused.contains("not permitted"), "{refused}");
    // ...and this is not, because the agent has asked.
    assert_eq!(order(&mut session, &policy, &format!("ask-and-write {}", at("a"))).await, "written");
    // The permission was for that turn.
    assert!(order(&mut session, &policy, &format!("write {}", at("a"))).await.contains("not permitted"));
}

#[tokio::test]
async fn commands_run_and_are_held_to_the_policy() {
    // shows TERM-04, TERM-09, TERM-11
    let scratch = Scratch::new();
    let rules = json!({ "autoApprove": [{ "command": ["pwd", "echo"] }], "defaultAction": "deny" });
    let rules = attache_host::policy::Rules::parse(&rules.to_string()).unwrap();
    let policy = Arc::new(Policy::new(Mode::APPROVE_ALL).rules(rules).roots([scratch.path()]));
    let mut session = open(&policy, scratch.path().to_owned(), "").await;
    let report = order(&mut session, &policy, "run pwd").await;
    assert_eq!(report, format!("{}\nSome(0)", scratch.path().display()));
    let refused = order(&mut session, &policy, "run echo x; touch made").await;
    assert!(refused.contains("not permitted"), "{refused}");
    assert!(!scratch.join("made").exists());
}

#[tokio::test]
async fn terminals_die_with_their_session_and_their_connection() {
    // shows TERM-20
    for drops_session in [true, false] {
        let scratch = Scratch::new();
        let mark = Mark::new();
        let policy = Arc::new(Policy::new(Mode::APPROVE_ALL));
        let mut session = open(&policy, scratch.path().to_owned(), mark.value()).await;
        assert_eq!(order(&mut session, &policy, "leave-running").await, "running");
        assert_eq!(mark.alive().len(), 1);
        // The session is kept until the end in the other case.
        let _kept = match drops_session {
            true => {
                drop(session);
                None
            }
            false => {
                session.agent().clone().shutdown().await;
                Some(session)
            }
        };
        while !mark.alive().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_host_decides_permissions_for_unread_turns() {
    // shows PERM-04
    for (answer, said) in
        [(Answer::Once, "written"), (Answer::Reject, "refused"), (Answer::Unanswered, "refused")]
    {
        let root = Scratch::new();
        let (ours, theirs) = Link::pair();
        tokio::spawn(agent::serve(|_| async { Ok(Obedient { mark: String::new() }) }, theirs));
        let host = Host::new(Policy::new(Mode::ASK)).on_ask(move |_| std::future::ready(answer.clone()));
        let agent = host.install(Client::new()).connect(ours).await.unwrap();
        let mut session = agent.new_session(root.path()).await.unwrap();
        let path = root.path().join("new.txt");
        let order = format!("ask-and-write {}", path.display());
        assert_eq!(session.prompt(order).await.unwrap().text().await.unwrap(), said);
        assert_eq!(path.exists(), said == "written");
    }
}
