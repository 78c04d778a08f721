//! Sessions that outlive the agent.

use attache::client::{AgentHandle, Client};
use attache_agent::{Mode, Options};

use crate::rig::{Project, Seen, allow, connect, take};

/// Each answer names what was sent to the model before, so that a lost conversation shows.
const SCRIPT: &str = r#"
== when "first"
--
say one
--
== when "second"
--
call write {"path": "made.txt", "content": "x"}
--
say two
"#;

async fn agent(project: &Project) -> AgentHandle {
    let store = Some(project.outside("sessions.db"));
    connect(Client::new(), Options { store, mode: Some(Mode::Code), ..project.script(SCRIPT) }).await
}

#[tokio::test]
async fn a_loaded_session_is_replayed_from_the_beginning() {
    // shows SESS-11, SESS-12, LIST-03, LIST-15
    let project = Project::new();
    let id = {
        let mut session = agent(&project).await.new_session(project.path()).await.unwrap();
        assert_eq!(allow(&mut session, "the first thing").await.text, "one");
        assert_eq!(allow(&mut session, "the second").await.text, "two");
        session.id().clone()
    };
    let agent = agent(&project).await;
    let listed = agent.lister().unwrap().list().all().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].session_id, listed[0].title.as_deref()), (&id, Some("the first thing")));

    let mut loading = agent.loader().unwrap().load(id.clone(), project.path()).await.unwrap();
    let mut seen = Seen::default();
    while let Some(event) = loading.next().await.unwrap() {
        take(&mut seen, event, &mut |_| panic!("a question in a replay"));
    }
    assert_eq!(seen.text, "onetwo");
    assert!(seen.others.iter().any(|event| event.contains("the first thing")), "{:?}", seen.others);
    assert_eq!(seen.states().last().unwrap(), "Write made.txt: completed");
    // It continues where it was.
    let mut session = loading.finish().await.unwrap();
    assert_eq!(allow(&mut session, "the first thing").await.text, "one");
}

#[tokio::test]
async fn a_resumed_session_continues_and_can_be_undone() {
    // shows SESS-21
    let project = Project::new();
    let id = {
        let mut session = agent(&project).await.new_session(project.path()).await.unwrap();
        allow(&mut session, "the second").await;
        session.id().clone()
    };
    assert!(project.has("made.txt"));
    let agent = agent(&project).await;
    let mut session = agent.resumer().unwrap().resume(id, project.path()).await.unwrap();
    let seen = allow(&mut session, "/undo").await;
    assert!(seen.text.contains("made.txt"), "{}", seen.text);
    assert!(!project.has("made.txt"));
}

#[tokio::test]
async fn sessions_are_named_forked_put_away_and_deleted() {
    // shows FORK-02, DEL-04, SSTAT-06, SSTAT-09
    let project = Project::new();
    let agent = agent(&project).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    allow(&mut session, "the first thing").await;
    let id = session.id().clone();
    assert_eq!(agent.titler().unwrap().set_title(id.clone(), "mine").await.unwrap(), "mine");
    allow(&mut session, "the first again").await;

    let fork = agent.forker().unwrap().fork(id.clone(), project.path()).await.unwrap();
    let fork_id = fork.id().clone();
    assert_ne!(fork_id, id);
    let titles = |listed: Vec<attache::wire::v1::SessionInfo>| -> Vec<Option<String>> {
        listed.into_iter().map(|info| info.title).collect()
    };
    assert_eq!(
        titles(agent.lister().unwrap().list().all().await.unwrap()),
        [Some("mine".to_owned()), Some("mine".to_owned())]
    );

    agent.archiver().unwrap().archive(id.clone()).await.unwrap();
    assert_eq!(agent.lister().unwrap().list().all().await.unwrap().len(), 1);
    agent.archiver().unwrap().unarchive(id.clone()).await.unwrap();
    agent.deleter().unwrap().delete(fork_id.clone()).await.unwrap();
    agent.deleter().unwrap().delete(fork_id).await.unwrap();
    assert_eq!(agent.lister().unwrap().list().all().await.unwrap().len(), 1);
    let elsewhere = agent.lister().unwrap().list().cwd("/somewhere/else");
    assert_eq!(elsewhere.all().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_session_that_is_not_there_cannot_be_loaded() {
    // shows RPC-18
    let project = Project::new();
    let agent = agent(&project).await;
    let error = agent.resumer().unwrap().resume("ghost", project.path()).await.unwrap_err();
    assert!(error.to_string().contains("ghost"), "{error}");
}
