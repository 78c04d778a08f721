//! What the agent does without asking is asked of the user, within a time limit.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::wire::v1::{CreateTerminalRequest, ReadTextFileRequest, WriteTextFileRequest};
use attache_host::Host;
use attache_host::policy::{Answer, Mode, Policy, Rules, Unanswered, What};

use crate::kit::Scratch;

fn write(scratch: &Scratch, name: &str) -> WriteTextFileRequest {
    WriteTextFileRequest::new("s", scratch.join(name).to_str().unwrap(), "text")
}

fn roots(scratch: &Scratch) -> [PathBuf; 1] {
    [scratch.path().to_owned()]
}

#[tokio::test]
async fn a_person_decides() {
    let scratch = Scratch::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let host = Host::new(Policy::new(Mode::Ask).roots(roots(&scratch))).on_ask(move |question| {
        let answer = match &question.what {
            What::Write { path, content } => {
                assert_eq!(content, "text");
                match path.file_name().unwrap().to_str().unwrap() {
                    "yes" => Answer::Allow,
                    "always" => Answer::AllowAlways,
                    _ => Answer::Deny,
                }
            }
            What::Run { .. } => Answer::Nobody,
            other => panic!("{other:?}"),
        };
        seen.lock().unwrap().push(question);
        async move { answer }
    });
    let files = host.files();
    files.write_in(None, &roots(&scratch), write(&scratch, "yes")).await.unwrap();
    let error = files.write_in(None, &roots(&scratch), write(&scratch, "no")).await.unwrap_err().to_wire();
    assert!(error.message.contains("the user has denied it"), "{}", error.message);
    files.write_in(None, &roots(&scratch), write(&scratch, "always")).await.unwrap();
    files.write_in(None, &roots(&scratch), write(&scratch, "other")).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 3, "the last one needed no question");
    assert!(scratch.join("other").exists() && !scratch.join("no").exists());
    let run = CreateTerminalRequest::new("s", "true");
    let error = host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err().to_wire();
    assert!(error.message.contains("nobody is there"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_stand_for_ever() {
    let scratch = Scratch::new();
    let policy = Policy::new(Mode::Ask).asking(Some(Duration::from_secs(30)), Unanswered::Deny);
    let host = Host::new(policy).on_ask(|question| {
        assert_eq!(question.limit, Some(Duration::from_secs(30)));
        std::future::pending()
    });
    let run = CreateTerminalRequest::new("s", "true");
    let error = host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err().to_wire();
    assert!(error.message.contains("nobody answered in time"), "{}", error.message);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_answer_is_no() {
    let scratch = Scratch::new();
    let host = Host::new(Policy::new(Mode::ApproveReads));
    let error = host.files().write_in(None, &roots(&scratch), write(&scratch, "a")).await.unwrap_err();
    assert!(error.to_wire().message.contains("nobody is there"));
    scratch.file("b", "text");
    let read = ReadTextFileRequest::new("s", scratch.join("b").to_str().unwrap());
    assert_eq!(host.files().read_in(None, &roots(&scratch), read).await.unwrap(), "text");
}

#[tokio::test]
async fn a_rule_is_about_where_a_path_really_leads() {
    let scratch = Scratch::new();
    scratch.file("secret/key", "old");
    scratch.link("notes", "secret/key");
    scratch.link("dir", "secret");
    let rules = Rules::parse(r#"{"autoDeny":[{"path":"secret/**"}],"autoApprove":[{"path":"**"}]}"#).unwrap();
    let host = Host::new(Policy::new(Mode::Ask).rules(rules).roots(roots(&scratch)));
    for name in ["secret/key", "notes", "dir/key", "dir/new", "secret/a/b"] {
        host.files().write_in(None, &roots(&scratch), write(&scratch, name)).await.unwrap_err();
        let read = ReadTextFileRequest::new("s", scratch.join(name).to_str().unwrap());
        host.files().read_in(None, &roots(&scratch), read).await.unwrap_err();
    }
    assert_eq!(std::fs::read_to_string(scratch.join("secret/key")).unwrap(), "old");
    host.files().write_in(None, &roots(&scratch), write(&scratch, "open")).await.unwrap();
}

#[tokio::test]
async fn a_command_that_is_fine_here_is_not_fine_elsewhere() {
    let scratch = Scratch::new();
    let rules = Rules::parse(r#"{"autoApprove":[{"command":"pwd"}]}"#).unwrap();
    let host = Host::new(Policy::new(Mode::Ask).rules(rules).roots(roots(&scratch)));
    let mut run = CreateTerminalRequest::new("s", "pwd");
    host.terminals().create_in(None, &roots(&scratch), run.clone()).await.unwrap();
    run.cwd = Some("/".to_owned());
    host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err();
    let mut run = CreateTerminalRequest::new("s", "pwd");
    run.env = Some(vec![attache::wire::v1::EnvVariable::new("LD_PRELOAD", "/tmp/x.so")]);
    host.terminals().create_in(None, &roots(&scratch), run).await.unwrap_err();
}
