//! Skills: names and descriptions first, the text when the model wants it, and only in trusted
//! projects.

use attache::client::Client;
use attache_agent::{Mode, Options, TrustSource};
use attache_host::trust::{ProjectFiles, TrustStore};

use crate::rig::{Project, allow, connect};

const SCRIPT: &str = "== when system \"- release: Makes a release\" and \"go\"\n--\ncall skill {\"name\": \"release\"}\n--\nsay ${result}\n\
                      == when system \"- mine: Mine\" and \"own\"\n--\ncall skill {\"name\": \"mine\"}\n--\nsay ${result}\n\
                      ==\n--\ncall skill {\"name\": \"release\"}\n--\nsay without: ${result}\n";

fn skill(project: &Project, text: &str) {
    let text = format!("---\nname: release\ndescription: Makes a release\n---\n{text}\n");
    project.write(".claude/skills/release/SKILL.md", &text);
}

fn options(project: &Project, trust: TrustSource) -> Options {
    let config_dir = Some(project.outside("config"));
    Options { trust, config_dir, mode: Some(Mode::Ask), ..project.script(SCRIPT) }
}

#[tokio::test]
async fn a_skill_is_listed_and_read_on_demand() {
    let project = Project::new();
    skill(&project, "Raise the version.");
    let own = project.outside("config/skills/mine");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("SKILL.md"), "# Mine\nDo it my way.").unwrap();
    let agent = connect(Client::new(), options(&project, TrustSource::All)).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("Raise the version."), "{}", seen.text);
    assert!(seen.text.contains(&project.path_of(".claude/skills/release")), "{}", seen.text);
    let seen = allow(&mut session, "own").await;
    assert!(seen.text.contains("Do it my way."), "{}", seen.text);
    assert!(seen.asked.is_empty(), "{:?}", seen.titles_asked());
}

#[tokio::test]
async fn a_skill_needs_trust_in_its_present_state() {
    let project = Project::new();
    skill(&project, "Raise the version.");
    let store = TrustStore::new(&project.outside("state"));
    let agent = connect(Client::new(), options(&project, TrustSource::Store(store.clone()))).await;
    let mut session = agent.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("This folder is not trusted"), "{}", seen.text);
    assert!(seen.text.contains("without: no tool `skill`"), "{}", seen.text);
    assert!(!seen.text.contains("Raise"), "{}", seen.text);

    store.set(&ProjectFiles::scan(&project.path()), true).unwrap();
    let mut session = agent.new_session(project.path()).await.unwrap();
    assert!(allow(&mut session, "go").await.text.contains("Raise the version."));
    skill(&project, "Delete everything.");
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("has changed since the user trusted it"), "{}", seen.text);
    assert!(!seen.text.contains("Delete"), "{}", seen.text);
}

#[tokio::test]
async fn odd_skills_are_left_out() {
    let project = Project::new();
    for number in 0..60 {
        project
            .write(&format!(".agents/skills/s{number:02}/SKILL.md"), "---\ndescription: Something\n---\nx");
    }
    project.write(".agents/skills/a b/SKILL.md", "# A blank in the name");
    std::fs::create_dir_all(project.path().join(".agents/skills/fifo/SKILL.md")).unwrap();
    let script = "== when system \"- s40:\"\nsay more\n== when system \"- s39: Something\"\nsay forty\n==\nsay fewer\n";
    let options = Options { trust: TrustSource::All, ..project.script(script) };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    assert_eq!(allow(&mut session, "go").await.text, "forty");
}
