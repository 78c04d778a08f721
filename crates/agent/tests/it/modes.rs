//! Modes, models and options, switched by either side.

use attache::client::{Client, Event, Session};
use attache::wire::v1::{
    LlmProtocol, PermissionOptionKind, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SetProviderRequest, SetSessionModelRequest,
};
use attache_agent::{Mode, Options};

use crate::rig::{Project, allow, connect, run, session};

fn current(session: &attache::client::Session, category: &SessionConfigOptionCategory) -> String {
    let options = session.config_options();
    let option = options.iter().find(|option| option.category.as_ref() == Some(category)).unwrap();
    match &option.kind {
        SessionConfigKind::Select(select) => select.current_value.as_str().to_owned(),
        _ => panic!("no select"),
    }
}

#[tokio::test]
async fn the_three_windows_on_the_settings_stay_in_step() {
    // shows MODE-01, MODE-04, MODE-10, CONF-13, MODEL-01, MODEL-02, MODEL-03
    let project = Project::new();
    let session = session(&project, "==\nsay hello\n", Mode::Ask).await;
    let control = session.control();
    let modes = session.modes().unwrap();
    let ids: Vec<&str> = modes.available_modes.iter().map(|mode| mode.id.as_str()).collect();
    assert_eq!(
        (ids.as_slice(), modes.current_mode_id.as_str()),
        (["ask", "plan", "code", "auto"].as_slice(), "ask")
    );
    control.set_mode("code").await.unwrap();
    assert_eq!(session.modes().unwrap().current_mode_id.as_str(), "code");
    assert_eq!(current(&session, &SessionConfigOptionCategory::Mode), "code");
    control.set_config_option("mode", "plan").await.unwrap();
    assert_eq!(session.modes().unwrap().current_mode_id.as_str(), "plan");
    control.set_config_option("thinking", "high").await.unwrap();
    assert_eq!(current(&session, &SessionConfigOptionCategory::ThoughtLevel), "high");
    let model = session.models().unwrap().current_model_id;
    assert_eq!(current(&session, &SessionConfigOptionCategory::Model), model.as_str());
    control.set_model(model).await.unwrap();
    assert!(control.set_config_option("thinking", "enormous").await.is_err());
}

#[tokio::test]
async fn a_mode_switched_during_a_turn_counts_from_the_next_call_on() {
    // shows MODE-06
    let project = Project::new();
    let script = "==\n--\ncall write {\"path\": \"a\", \"content\": \"1\"}\n--\ncall write {\"path\": \"b\", \"content\": \"2\"}\n--\nsay done\n";
    let mut session = session(&project, script, Mode::Ask).await;
    let control = session.control();
    let mut turn = session.prompt("go").await.unwrap();
    let mut asked = 0;
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Permission(ask) = event {
            asked += 1;
            control.set_mode("auto").await.unwrap();
            ask.choose_kind(PermissionOptionKind::AllowOnce);
        }
    }
    drop(turn);
    assert_eq!(asked, 1);
    assert_eq!((project.read("a"), project.read("b")), ("1".into(), "2".into()));
}

#[tokio::test]
async fn plan_mode_offers_no_tool_that_changes_and_is_left_only_with_the_users_word() {
    // shows MODE-07, MODE-08
    let project = Project::new();
    let script = r###"== when "plan it"
--
call write {"path": "a", "content": "1"}
--
call leave_plan_mode {"plan": "# The plan\n1. write a"}
-- when result "did not allow"
say as you like
-- when result "the user agrees"
call write {"path": "a", "content": "1"}
--
say ${result}
"###;
    let mut refused = session(&project, script, Mode::Plan).await;
    let seen = run(&mut refused, "plan it", PermissionOptionKind::RejectOnce).await;
    assert_eq!(seen.text, "as you like", "{seen:#?}");
    assert_eq!(seen.titles_asked(), ["Carry out the plan"]);
    assert!(serde_json::to_string(&seen.asked[0].content).unwrap().contains("# The plan"));
    assert_eq!(seen.asked[0].kind, Some(attache::wire::v1::ToolKind::SwitchMode));
    assert!(seen.contents().contains("cannot be used in plan mode"), "{}", seen.contents());
    assert!(!project.has("a"));
    let mut agreed = session(&project, script, Mode::Plan).await;
    let seen = allow(&mut agreed, "plan it").await;
    assert_eq!(seen.titles_asked(), ["Carry out the plan", "Write a"]);
    assert_eq!(project.read("a"), "1");
    assert_eq!(agreed.modes().unwrap().current_mode_id.as_str(), "ask");
}

#[tokio::test]
async fn the_model_knows_the_mode() {
    let project = Project::new();
    let script = "== when system \"You are in plan mode\"\nsay planning\n== when system \"Nothing inside of the project needs a permission\"\nsay free\n";
    let mut session = session(&project, script, Mode::Plan).await;
    assert_eq!(allow(&mut session, "x").await.text, "planning");
    session.control().set_mode("auto").await.unwrap();
    assert_eq!(allow(&mut session, "x").await.text, "free");
}

#[tokio::test]
async fn another_model_can_be_chosen() {
    let project = Project::new();
    std::fs::write(project.outside("other"), "== \nsay I am the other\n").unwrap();
    let options = project.script("==\nsay I am the first\n");
    let other = format!("script:{}", project.outside("other").display());
    let agent =
        connect(attache::client::Client::new(), Options { model: Some(other), ..options.clone() }).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(allow(&mut session, "x").await.text, "I am the other");
    // Only what was offered can be chosen.
    assert!(session.control().set_model("script:/etc/passwd").await.is_err());
    assert_eq!(allow(&mut session, "x").await.text, "I am the other");
}

/// The models that the agent reported, the current one first. A report precedes the answer to the
/// request that caused it.
fn models_reported(session: &Session) -> Vec<String> {
    let options = session.config_options();
    let is_model =
        |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
    let option = serde_json::to_value(options.iter().find(is_model).unwrap()).unwrap();
    let values = option["options"].as_array().unwrap().iter().map(|choice| &choice["value"]);
    let values = std::iter::once(&option["currentValue"]).chain(values);
    values.map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn gateway() -> SetProviderRequest {
    let mut set = SetProviderRequest::new("anthropic", LlmProtocol::Anthropic, "https://gateway.example");
    set.headers.insert("x-gateway".to_owned(), "token".to_owned());
    set
}

#[tokio::test]
async fn open_sessions_learn_of_models_that_come_and_go() {
    // shows CONF-05, CONF-16, MODEL-02, MODEL-03
    let project = Project::new();
    let agent = connect(Client::new(), project.script("==\nsay hello\n")).await;
    let mut sessions =
        [agent.new_session(project.path()).await.unwrap(), agent.new_session(project.path()).await.unwrap()];
    let scripted = sessions[0].models().unwrap().current_model_id;
    let providers = agent.providers().unwrap();
    providers.set(&gateway()).await.unwrap();
    let mut found = String::new();
    for session in &mut sessions {
        let reported = models_reported(session);
        assert_eq!(reported[0], scripted.as_str(), "what is in use stays");
        found = reported.iter().find(|model| model.starts_with("anthropic/")).unwrap().clone();
        // An older client, which gets no report.
        agent.request(&SetSessionModelRequest::new(session.id().clone(), found.as_str())).await.unwrap();
        session.control().set_config_option("model", scripted.as_str()).await.unwrap();
    }
    let list = providers.list().await.unwrap();
    let ours = list.iter().find(|provider| provider.provider_id == "anthropic").unwrap();
    providers.disable(ours).await.unwrap();
    for session in &mut sessions {
        assert_eq!(models_reported(session), [scripted.as_str(), scripted.as_str()]);
        let old = SetSessionModelRequest::new(session.id().clone(), found.as_str());
        assert!(agent.request(&old).await.is_err());
        assert!(session.control().set_config_option("model", found.as_str()).await.is_err());
        assert_eq!(allow(session, "x").await.text, "hello");
    }
}

#[tokio::test]
async fn a_session_without_a_model_takes_the_first_that_comes() {
    // shows CONF-16
    let project = Project::new();
    let agent = connect(Client::new(), Options::default()).await;
    let session = agent.new_session(project.path()).await.unwrap();
    assert_eq!(session.models(), None);
    agent.providers().unwrap().set(&gateway()).await.unwrap();
    let reported = models_reported(&session);
    assert!(reported[0].starts_with("anthropic/"), "{reported:?}");
    let old = SetSessionModelRequest::new(session.id().clone(), reported[0].as_str());
    agent.request(&old).await.unwrap();
}
