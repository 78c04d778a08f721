//! A conversation that does not fit the model's window any more.

use attache::StopReason;
use attache::client::{Client, Event};
use attache::wire::v1::CompactionStatus;
use attache_agent::{Mode, Options};

use crate::rig::{Project, allow, connect, session, session_of};

/// The model fills its window with the first answer; later prompts decide what it says.
const SCRIPT: &str = r#"window: 1000
== when system "You summarize a conversation"
say SUMMARY: the user likes green.
== when "green"
usage input=900 output=50
say Noted.
== when "colour"
say I was told: ${text}
== when "What was said before"
say It was green.
"#;

#[tokio::test]
async fn a_full_window_is_compacted_with_a_notice() {
    let project = Project::new();
    let mut session = session(&project, SCRIPT, Mode::Ask).await;
    allow(&mut session, "I like green").await;
    let seen = allow(&mut session, "which colour?").await;
    assert_eq!(seen.stop, Some(StopReason::EndTurn), "{seen:#?}");
    assert_eq!(seen.notices, ["Summarizing the conversation"]);
    assert_eq!(seen.text, "I was told: which colour?", "what is to be answered stays as it is");
    let mut plain = session_of(Client::new(), &project, SCRIPT, Mode::Ask).await;
    allow(&mut plain, "I like green").await;
    let seen = allow(&mut plain, "which colour?").await;
    assert!(seen.text.starts_with("*Summarizing the conversation"), "{}", seen.text);
}

#[tokio::test]
async fn clients_that_know_compactions_see_one_with_its_summary() {
    // shows NOTE-06, NOTE-07, NOTE-08, NOTE-12
    let project = Project::new();
    let store = project.outside("agent.db");
    let options = Options { store: Some(store.clone()), ..project.script(SCRIPT) };
    let agent = connect(Client::new().compaction().notices(), options).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    allow(&mut session, "I like green").await;
    let mut turn = session.prompt("/compact the colour").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Compaction(compaction) = event {
            seen.push((
                compaction.compaction_id.clone(),
                compaction.status.clone(),
                format!("{:?}", compaction.summary),
            ));
        }
    }
    assert_eq!(turn.stop_reason(), Some(StopReason::EndTurn));
    drop(turn);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[0].0, seen[1].0);
    assert_eq!((&seen[0].1, &seen[1].1), (&CompactionStatus::InProgress, &CompactionStatus::Completed));
    assert!(seen[1].2.contains("SUMMARY: the user likes green."), "{seen:?}");
    // The conversation that continues is the summary, in memory and on disk.
    let kept = attache_agent::store::Store::open(&store, attache_host::secrets::Mask::new()).unwrap();
    let context = kept.read(session.id().as_str()).unwrap().context();
    assert_eq!(context.len(), 1, "{context:?}");
    assert!(context[0].text().contains("SUMMARY"), "{context:?}");
}

#[tokio::test]
async fn a_context_overflow_is_retried_after_a_compaction() {
    let project = Project::new();
    let script = r#"
== when system "You summarize a conversation"
say SUMMARY
== when "first"
say one
== when "second"
--
fail too_long by 3 tokens
== when "third"
say three
"#;
    let mut session = session(&project, script, Mode::Ask).await;
    allow(&mut session, "first").await;
    let seen = allow(&mut session, "second").await;
    // Once only: the script says it each time.
    assert_eq!(seen.notices.len(), 1, "{seen:#?}");
    let error = seen.error.expect("the second refusal is reported").to_string();
    assert!(error.contains("by 3 tokens") && error.contains("start a new session"), "{error}");
    assert_eq!(allow(&mut session, "third").await.text, "three");
}

#[tokio::test]
async fn a_compaction_that_fails_ends_the_turn_and_not_the_session() {
    // shows NOTE-08
    let project = Project::new();
    let script = "== when system \"You summarize\"\nfail overloaded\n== when \"first\"\nsay one\n== when \"again\"\nsay here\n";
    let mut session = session_of(Client::new().compaction(), &project, script, Mode::Ask).await;
    allow(&mut session, "first").await;
    let mut turn = session.prompt("/compact").await.unwrap();
    let mut last = None;
    let error = loop {
        match turn.next().await {
            Ok(Some(Event::Compaction(compaction))) => last = Some(compaction.status.clone()),
            Ok(Some(_)) => {}
            Ok(None) => panic!("it should fail"),
            Err(error) => break error,
        }
    };
    drop(turn);
    assert_eq!(last, Some(CompactionStatus::Failed));
    assert!(error.to_string().contains("cannot summarize"), "{error}");
    assert_eq!(allow(&mut session, "again").await.text, "here");
}

#[tokio::test]
async fn a_compaction_that_is_cancelled_has_an_end_too() {
    // shows NOTE-08, CANCEL-08
    let project = Project::new();
    let script =
        "== when system \"You summarize\"\nhang\n== when \"first\"\nsay one\n== when \"again\"\nsay here\n";
    let mut session = session_of(Client::new().compaction(), &project, script, Mode::Ask).await;
    allow(&mut session, "first").await;
    let mut turn = session.prompt("/compact").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Compaction(compaction) = event {
            seen.push(compaction.status.clone());
            turn.cancel();
        }
    }
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    drop(turn);
    assert_eq!(seen, [CompactionStatus::InProgress, CompactionStatus::Cancelled]);
    assert_eq!(allow(&mut session, "again").await.text, "here");
}

#[tokio::test]
async fn a_window_that_the_same_call_fills_again_ends_the_turn() {
    let project = Project::new();
    project.write("big.txt", &"a line of a long file\n".repeat(1500));
    let step = "--\nusage input=900 output=50\ncall read {\"path\": \"big.txt\"}\n";
    let summarize = "== when system \"You summarize a conversation\"\nsay SUMMARY\n";
    let script = format!("window: 1000\n{summarize}==\n{}", step.repeat(20));
    let mut session = session(&project, &script, Mode::Ask).await;
    let seen = allow(&mut session, "what is in big.txt?").await;
    let error = seen.error.as_ref().unwrap().to_string();
    assert!(error.contains("does not fit into the model's window of 1000 tokens"), "{error}");
    assert_eq!(seen.notices.len(), 2, "{:?}", seen.notices);
    let read = seen.states().iter().filter(|state| *state == "Read big.txt: completed").count();
    assert_eq!(read, 3, "{:?}", seen.states());
}
