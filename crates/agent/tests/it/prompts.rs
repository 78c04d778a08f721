//! What a prompt may hold.

use attache::wire::v1::{BlobResourceContents, EmbeddedResource};
use attache::{Prompt, StopReason, code};
use attache_agent::Mode;

use crate::rig::{Project, allow, session};

#[tokio::test]
async fn links_and_included_resources_reach_the_model() {
    // shows PROMPT-03, CONT-01, CONT-04, CONT-05
    let project = Project::new();
    let mut session = session(&project, "==\nsay ${text}\n", Mode::Ask).await;
    let uri = format!("file://{}", project.path_of("src/my%20file.rs"));
    let prompt = Prompt::from("look ")
        .link("my file", &uri)
        .embed("file:///elsewhere/b.rs", "fn b() {}")
        .link("docs", "https://example.com/x");
    let seen = allow(&mut session, prompt).await;
    assert_eq!(
        seen.text,
        "look [The user refers to my file: src/my file.rs][The user includes /elsewhere/b.rs]\nfn b() {}\n\
         [End of /elsewhere/b.rs][The user refers to docs: https://example.com/x]"
    );
    let blob = EmbeddedResource::new(BlobResourceContents::new("file:///x.zip", "AAAA"));
    assert!(allow(&mut session, Prompt::new().with(blob)).await.text.contains("which is not text"));
    assert!(allow(&mut session, Prompt::new()).await.stop == Some(StopReason::EndTurn), "PROMPT-22");
}

#[tokio::test]
async fn pictures_and_sound_only_if_the_model_takes_them() {
    // shows PROMPT-04
    let project = Project::new();
    let mut takes = session(&project, "==\nsay seen\n", Mode::Ask).await;
    assert_eq!(allow(&mut takes, Prompt::from("x").image("AAAA", "image/png")).await.text, "seen");
    let mut blind = session(&project, "images: no\n==\nsay seen\n", Mode::Ask).await;
    let seen = allow(&mut blind, Prompt::from("x").image("AAAA", "image/png")).await;
    match seen.error {
        Some(attache::Error::Refused(error)) => {
            assert_eq!(error.code, code::INVALID_PARAMS);
            assert!(error.message.contains("does not accept images"), "{}", error.message);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(allow(&mut blind, "x").await.text, "seen", "no turn was begun, and the next one works");
    let agent = blind.agent();
    assert!(
        agent.capabilities().prompt_capabilities.image && !agent.capabilities().prompt_capabilities.audio
    );
    let mut hears = session(&project, "audio: yes\n==\nsay heard\n", Mode::Ask).await;
    assert!(hears.agent().capabilities().prompt_capabilities.audio);
    assert_eq!(allow(&mut hears, Prompt::from("x").audio("AAAA", "audio/wav")).await.text, "heard");
}
