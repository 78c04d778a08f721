//! What an agent does without asking for permission is decided by the policy, or by the user within
//! a time limit.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::wire::v1::{CreateTerminalRequest, ReadTextFileRequest, WriteTextFileRequest};
use attache_host::Host;
use attache_host::policy::{Answer, Content, Effect, Mode, Policy, Rules, Unanswered};

use crate::kit::Scratch;

fn write(scratch: &Scratch, name: &str) -> WriteTextFileRequest {
    WriteTextFileRequest::new("s", scratch.join(name).to_str().unwrap(), "text")
}

fn roots(scratch: &Scratch) -> [PathBuf; 1] {
    [scratch.path().to_owned()]
}

#[tokio::test]
async fn a_person_decides_about_what_is_shown() {
    let scratch = Scratch::new();
    scratch.file("yes", "before");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let host = Host::new(Policy::new(Mode::ASK).roots(roots(&scratch))).on_ask(move |question| {
        let answer = match question.effects.as_slice() {
            [Effect::Write { path, content: Content::Known { old, new } }] => {
                assert_eq!(&**new, "text");
                match path.real().file_name().unwrap().to_str().unwrap() {
                    "yes" => {
                        assert_eq!(old.as_deref(), Some("before"), "the change is shown");
                        Answer::Once
                    }
                    "always" => Answer::Project,
                    _ => Answer::Reject,
                }
            }
            [Effect::Run(_)] => Answer::Unanswered,
            other => panic!("{other:?}"),
        };
        seen.lock().unwrap().push(question);
        async move { answer }
    });
    let files = host.files();
    files.write_in(None, &roots(&scratch), write(&scratch, "yes")).await.unwrap();
    let error = files.write_in(None, &roots(&scratch), write(&scratch, "no")).await.unwrap_err().to_wire();
    assert!(error.message.contains("you denied it"), "{}", error.message);
    files.write_in(None, &roots(&scratch), write(&scratch, "always")).await.unwrap();
    files.write_in(None, &roots(&scratch), write(&scratch, "other")).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 3, "the last one needed no question");
    assert!(scratch.join("other").exists() && !scratch.join("no").exists());
    let run = CreateTerminalRequest::new("s", "true");
    let error = host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err().to_wire();
    assert!(error.message.contains("not a terminal"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_stand_for_ever() {
    let scratch = Scratch::new();
    let policy = Policy::new(Mode::ASK).asking(Some(Duration::from_secs(30)), Unanswered::Deny);
    let host = Host::new(policy).on_ask(|question| {
        assert_eq!(question.limit, Some(Duration::from_secs(30)));
        std::future::pending()
    });
    let run = CreateTerminalRequest::new("s", "true");
    let error = host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err().to_wire();
    assert!(error.message.contains("no answer in time"), "{}", error.message);
}

#[tokio::test]
async fn without_someone_to_ask_the_answer_is_no() {
    let scratch = Scratch::new();
    let host = Host::new(Policy::new(Mode::APPROVE_READS));
    let error = host.files().write_in(None, &roots(&scratch), write(&scratch, "a")).await.unwrap_err();
    assert!(error.to_wire().message.contains("not a terminal"));
    scratch.file("b", "text");
    let read = ReadTextFileRequest::new("s", scratch.join("b").to_str().unwrap());
    assert_eq!(host.files().read_in(None, &roots(&scratch), read).await.unwrap(), "text");
}

#[tokio::test]
async fn a_rule_is_about_the_name_and_about_where_it_leads() {
    let scratch = Scratch::new();
    scratch.file("secret/key", "old");
    scratch.file("plain", "old");
    scratch.link("notes", "secret/key");
    scratch.link("dir", "secret");
    scratch.link(".env", "plain");
    let rules = Rules::parse(r#"{"autoDeny":[{"path":["secret/**",".env"]}],"autoApprove":[{"path":"**"}]}"#)
        .unwrap();
    let host = Host::new(Policy::new(Mode::ASK).rules(rules).roots(roots(&scratch)));
    for name in ["secret/key", "notes", "dir/key", "dir/new", "secret/a/b", ".env"] {
        host.files().write_in(None, &roots(&scratch), write(&scratch, name)).await.unwrap_err();
        let read = ReadTextFileRequest::new("s", scratch.join(name).to_str().unwrap());
        host.files().read_in(None, &roots(&scratch), read).await.unwrap_err();
    }
    assert_eq!(std::fs::read_to_string(scratch.join("secret/key")).unwrap(), "old");
    host.files().write_in(None, &roots(&scratch), write(&scratch, "open")).await.unwrap();
}

#[tokio::test]
async fn a_command_that_is_approved_here_is_not_approved_elsewhere() {
    let scratch = Scratch::new();
    let rules = Rules::parse(r#"{"autoApprove":[{"command":"pwd"}]}"#).unwrap();
    let host = Host::new(Policy::new(Mode::ASK).rules(rules).roots(roots(&scratch)));
    let mut run = CreateTerminalRequest::new("s", "pwd");
    host.terminals().create_in(None, &roots(&scratch), run.clone()).await.unwrap();
    run.cwd = Some("/".to_owned());
    host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err();
    let mut run = CreateTerminalRequest::new("s", "pwd");
    run.env = Some(vec![attache::wire::v1::EnvVariable::new("LD_PRELOAD", "/tmp/x.so")]);
    host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err();
}

#[tokio::test]
async fn decisions_are_reported() {
    let scratch = Scratch::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notices = seen.clone();
    let host = Host::new(Policy::new(Mode::APPROVE_ALL).roots(roots(&scratch))).on_notice(move |notice| {
        notices.lock().unwrap().push((notice.allowed, notice.effect.to_string(), notice.reason.text))
    });
    host.files().write_in(None, &roots(&scratch), write(&scratch, "a")).await.unwrap();
    host.files().write_in(None, &roots(&scratch), write(&scratch, "AGENTS.md")).await.unwrap_err();
    let read = ReadTextFileRequest::new("s", scratch.join("a").to_str().unwrap());
    host.files().read_in(None, &roots(&scratch), read).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].0 && seen[0].1.starts_with("write ") && seen[0].2 == "mode approve-all", "{seen:?}");
    assert!(!seen[1].0, "{seen:?}");
}
