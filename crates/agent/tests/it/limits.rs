//! Limits, refusals and failures: each with its stop reason or its error, and the session continues
//! after each.

use attache::client::Client;
use attache::{StopReason, code};
use attache_agent::{Limits, Mode, Options};

use crate::rig::{Project, allow, connect, session};

#[tokio::test]
async fn steps_are_limited() {
    // shows PROMPT-08
    let project = Project::new();
    let script = "== when \"go\"\n-- forever\ncall list {}\n== when \"again\"\nsay here\n";
    let limits = Limits { steps: 3, ..Limits::default() };
    let agent = connect(Client::new(), Options { limits, ..project.script(script) }).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.stop, Some(StopReason::MaxTurnRequests));
    assert_eq!(seen.states().iter().filter(|state| state.ends_with("completed")).count(), 3);
    assert_eq!(allow(&mut session, "again").await.text, "here");
}

#[tokio::test]
async fn tokens_are_limited() {
    let project = Project::new();
    let script = "== when \"long\"\nsay a lot\nstop max_tokens\n== when \"much\"\n-- forever\nusage input=10 output=60\ncall list {}\n\
                  == when \"called\"\n--\ncall list {}\nstop max_tokens\n== when \"again\"\nsay here\n";
    let limits = Limits { output_tokens: Some(100), ..Limits::default() };
    let agent = connect(Client::new(), Options { limits, ..project.script(script) }).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(allow(&mut session, "long").await.stop, Some(StopReason::MaxTokens));
    let seen = allow(&mut session, "much").await;
    assert_eq!(seen.stop, Some(StopReason::MaxTokens));
    assert_eq!(seen.states().iter().filter(|state| state.ends_with("completed")).count(), 2, "{seen:#?}");
    let seen = allow(&mut session, "called").await;
    assert_eq!(
        (seen.stop, seen.states().last().unwrap().as_str()),
        (Some(StopReason::MaxTokens), "list: failed")
    );
    assert_eq!(allow(&mut session, "again").await.text, "here");
}

#[tokio::test]
async fn refusals_end_the_turn_and_leave_the_conversation() {
    // shows PROMPT-14
    let project = Project::new();
    let script = "== when \"bad\"\nsay I will not\nstop refused\n== when \"worse\"\nfail refused not this\n== when \"again\"\nsay here\n";
    let store = project.outside("agent.db");
    let options = Options { store: Some(store.clone()), ..project.script(script) };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    assert_eq!(allow(&mut session, "bad").await.stop, Some(StopReason::Refusal));
    let seen = allow(&mut session, "worse").await;
    assert_eq!(seen.stop, Some(StopReason::Refusal));
    assert!(seen.text.contains("not this"), "{}", seen.text);
    assert_eq!(allow(&mut session, "again").await.text, "here");
    let kept = attache_agent::store::Store::open(&store, attache_host::secrets::Mask::new()).unwrap();
    let said: Vec<String> = kept
        .read(session.id().as_str())
        .unwrap()
        .context()
        .iter()
        .map(attache_agent::model::Message::text)
        .collect();
    assert_eq!(said, ["again", "here"]);
}

#[tokio::test]
async fn failures_of_the_model_are_errors_that_say_what_to_do() {
    // shows PROMPT-20
    let project = Project::new();
    let script = "== when \"auth\"\nfail auth no such key\n== when \"net\"\nsay half an\nfail network the cable is out\n\
                  == when \"busy\"\nfail overloaded\n== when \"call\"\n--\ncall read {\"path\": \"a\"}\nfail network gone\n== when \"again\"\nsay here\n";
    let mut session = session(&project, script, Mode::Ask).await;
    let failed = |seen: crate::rig::Seen| match seen.error {
        Some(attache::Error::Refused(error)) => {
            (error.code, error.message.to_string(), seen.text, seen.calls)
        }
        other => panic!("{other:?}"),
    };
    let (number, message, ..) = failed(allow(&mut session, "auth").await);
    assert_eq!(number, code::AUTH_REQUIRED);
    assert!(message.contains("no such key") && message.contains("set a valid key"), "{message}");
    let (number, message, text, _) = failed(allow(&mut session, "net").await);
    assert_eq!((number, text.as_str()), (code::INTERNAL_ERROR, "half an"));
    assert!(message.contains("the cable is out"), "{message}");
    let (_, message, ..) = failed(allow(&mut session, "busy").await);
    assert!(message.contains("try again later"), "{message}");
    let (_, _, _, calls) = failed(allow(&mut session, "call").await);
    assert_eq!(calls.last().unwrap().status, Some(attache::wire::v1::ToolCallStatus::Failed));
    assert_eq!(allow(&mut session, "again").await.text, "here");
}

#[tokio::test]
async fn retries_are_reported() {
    // shows NOTE-01, NOTE-02
    let project = Project::new();
    let script = "==\nretry 1ms too many requests\nsay here\n";
    let seen = allow(&mut session(&project, script, Mode::Ask).await, "go").await;
    assert!(seen.notices[0].contains("too many requests"), "{:?}", seen.notices);
    let mut plain = crate::rig::session_of(Client::new(), &project, script, Mode::Ask).await;
    let seen = allow(&mut plain, "go").await;
    assert!(seen.thoughts.contains("too many requests") && seen.notices.is_empty(), "{seen:?}");
    assert_eq!(seen.text, "here");
}

#[tokio::test]
async fn usage_and_cost_are_reported() {
    // shows MSG-05, PROMPT-19
    let project = Project::new();
    let script = "window: 1000\nprice: 1 10\n==\n--\nusage input=100 output=20\ncall list {}\n--\nusage input=130 output=10 cache_read=50\nsay done\n";
    let mut session = session(&project, script, Mode::Ask).await;
    let mut turn = session.prompt("go").await.unwrap();
    let mut updates = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        if let attache::client::Event::Usage(usage) = event {
            updates.push((usage.used, usage.size, usage.cost.clone().map(|cost| cost.amount)));
        }
    }
    let usage = turn.usage().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_read_tokens), (280, 30, Some(50)));
    let cost = (230.0 + 300.0 + 5.0) / 1e6;
    assert_eq!(updates.len(), 2);
    assert_eq!((updates[1].0, updates[1].1), (190, 1000));
    assert!((updates[1].2.unwrap() - cost).abs() < 1e-12, "{updates:?}");
}

#[tokio::test]
async fn without_a_model_the_options_are_listed() {
    let project = Project::new();
    let agent = connect(Client::new(), Options::default()).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "hello").await;
    let Some(attache::Error::Refused(error)) = seen.error else { panic!("{seen:?}") };
    assert_eq!(error.code, attache::code::AUTH_REQUIRED);
    assert!(error.message.starts_with("no model: "), "{}", error.message);
    let details = error.data.unwrap().to_string();
    for way in ["ANTHROPIC_API_KEY", "ollama serve", "attache demo"] {
        assert!(details.contains(way), "{way}: {details}");
    }
    let options = Options { model: Some("script:/no/such/file".into()), ..Options::default() };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "hello").await;
    let error = seen.error.unwrap().to_string();
    assert!(error.contains("`script:/no/such/file` cannot be used"), "{error}");
}
