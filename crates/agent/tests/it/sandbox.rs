//! Commands in the sandbox: what they can reach, and what is asked about.

use std::io::Read as _;
use std::net::TcpListener;

use attache::client::{Client, Session};
use attache::wire::v1::PermissionOptionKind;
use attache_agent::{Mode, Options, Sandbox, SandboxOptions};

use crate::rig::{Project, Seen, connect, run};

async fn session(project: &Project, calls: &[&str], mode: Mode) -> Session {
    let calls: String =
        calls.iter().map(|line| format!("call run {}\n", serde_json::json!({ "command": line }))).collect();
    let script = format!("==\n--\n{calls}--\nsay ${{result}}\n");
    let options = Options { mode: Some(mode), ..project.sandboxed(&script) };
    connect(Client::new(), options).await.new_session(project.path()).await.unwrap()
}

async fn rejecting(project: &Project, calls: &[&str], mode: Mode) -> Seen {
    run(&mut session(project, calls, mode).await, "go", PermissionOptionKind::RejectOnce).await
}

#[tokio::test]
async fn auto_runs_commands_inside_and_nothing_gets_out() {
    let project = Project::new();
    let outside = project.outside("outside.txt");
    std::fs::write(&outside, "before").unwrap();
    project.write(".git/config", "[core]\n");
    project.write(".git/hooks/x", "old");
    project.write("AGENTS.md", "old");
    let script = format!(
        "echo made > made.txt; echo x > {0}; echo x > .git/hooks/x; echo x > .git/config; echo x > AGENTS.md; chmod 600 {0}; cat {0}",
        outside.display()
    );
    let seen = rejecting(&project, &[&script], Mode::Auto).await;
    assert!(seen.asked.is_empty(), "{:?}", seen.titles_asked());
    assert_eq!(project.read("made.txt"), "made\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "before");
    assert_eq!((project.read(".git/hooks/x"), project.read("AGENTS.md")), ("old".into(), "old".into()));
    assert_eq!(project.read(".git/config"), "[core]\n");
}

#[tokio::test]
async fn protected_files_that_a_command_creates_are_asked_about() {
    let project = Project::new();
    let calls =
        ["mkdir .vscode && echo '{}' > .vscode/tasks.json && echo x > .attache.toml && echo y > fine.txt"];
    let seen = rejecting(&project, &calls, Mode::Auto).await;
    assert_eq!(seen.titles_asked(), ["Keep .attache.toml, .vscode"]);
    assert!(!project.has(".vscode") && !project.has(".attache.toml") && project.has("fine.txt"));
    assert!(seen.text.contains("did not allow the changes"), "{}", seen.text);

    let mut session = session(&project, &["mkdir .idea"], Mode::Auto).await;
    let seen = run(&mut session, "go", PermissionOptionKind::AllowOnce).await;
    assert_eq!(seen.titles_asked(), ["Keep .idea"]);
    assert!(project.has(".idea"));
}

#[tokio::test]
async fn parts_of_git_that_a_command_creates_are_asked_about() {
    let project = Project::new();
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    let calls =
        ["mkdir .git/hooks && echo x > .git/hooks/pre-commit && echo y > .git/config && echo z > .git/index"];
    let seen = rejecting(&project, &calls, Mode::Auto).await;
    assert_eq!(seen.titles_asked(), ["Keep .git/config, .git/hooks"]);
    assert!(!project.has(".git/hooks") && !project.has(".git/config") && project.has(".git/index"));

    let project = Project::new();
    let seen =
        rejecting(&project, &["mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"], Mode::Auto).await;
    assert_eq!(seen.titles_asked(), ["Keep .git/hooks"]);
    assert!(!project.has(".git/hooks"));
}

#[tokio::test]
async fn protected_files_deep_in_the_project_are_asked_about() {
    let project = Project::new();
    project.write("vendor/x/.git/HEAD", "ref: refs/heads/main\n");
    project.write("vendor/x/.git/config", "[core]\n");
    project.write("a/AGENTS.md", "be kind\n");
    project.write("b/AGENTS.md", "be kind too\n");
    let calls = [
        "echo '[core]fsmonitor=x' > vendor/x/.git/config; mkdir vendor/x/.git/hooks; echo x > vendor/x/.git/hooks/post-checkout; \
         echo evil > a/AGENTS.md; rm b/AGENTS.md; mkdir -p c/.vscode; echo '{}' > c/.vscode/tasks.json; echo y > c/fine.txt",
    ];
    let seen = rejecting(&project, &calls, Mode::Auto).await;
    assert_eq!(
        seen.titles_asked(),
        ["Keep a/AGENTS.md, c/.vscode, vendor/x/.git/config, vendor/x/.git/hooks, b/AGENTS.md"]
    );
    assert_eq!(project.read("vendor/x/.git/config"), "[core]\n");
    assert_eq!(
        (project.read("a/AGENTS.md"), project.read("b/AGENTS.md")),
        ("be kind\n".into(), "be kind too\n".into())
    );
    assert!(!project.has("vendor/x/.git/hooks") && !project.has("c/.vscode") && project.has("c/fine.txt"));
    let diffs = seen.asked[0].content.iter().flatten();
    let shows =
        diffs.filter(|content| matches!(content, attache::wire::v1::ToolCallContent::Diff(_))).count();
    assert_eq!(shows, 5, "{:?}", seen.asked[0]);
}

#[tokio::test]
async fn a_new_host_is_a_question() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = server.accept().unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").unwrap();
    });
    let fetch = format!(
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').read().decode())\""
    );
    let project = Project::new();
    let title = format!("Connect to 127.0.0.1:{port}");
    let seen = rejecting(&project, &[&fetch], Mode::Auto).await;
    assert_eq!(seen.titles_asked(), [title.as_str()]);
    assert!(!seen.text.contains("hello"), "{}", seen.text);
    let mut session = session(&project, &[&fetch], Mode::Auto).await;
    let seen = run(&mut session, "go", PermissionOptionKind::AllowOnce).await;
    assert_eq!(seen.titles_asked(), [title.as_str()]);
    assert!(seen.text.contains("hello"), "{}", seen.text);
    served.join().unwrap();
}

#[tokio::test]
async fn outside_the_sandbox_only_after_a_question() {
    let project = Project::new();
    let outside = project.outside("target");
    let call =
        serde_json::json!({ "command": format!("touch {}", outside.display()), "outside_sandbox": true });
    let script = format!("==\n--\ncall run {call}\n--\nsay ${{result}}\n");
    for (mode, kind, made) in [
        (Mode::Auto, PermissionOptionKind::RejectOnce, false),
        (Mode::Plan, PermissionOptionKind::AllowOnce, false),
        (Mode::Auto, PermissionOptionKind::AllowOnce, true),
    ] {
        let options = Options { mode: Some(mode), ..project.sandboxed(&script) };
        let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
        let seen = run(&mut session, "go", kind).await;
        assert_eq!(seen.asked.len(), usize::from(mode == Mode::Auto), "{mode}");
        assert_eq!(outside.exists(), made, "{mode}");
    }
}

#[tokio::test]
async fn read_only_commands_see_the_project_and_nothing_else() {
    let project = Project::new();
    let secret = project.outside("secret");
    std::fs::write(&secret, "the secret").unwrap();
    project.write("a.txt", "visible\n");
    project.write("sub/b.txt", "b");
    std::os::unix::fs::symlink(&secret, project.path().join("link")).unwrap();
    // Whatever the table thinks of them, they show nothing from outside and change nothing.
    let calls = ["cat a.txt", "ls -la", "git status", "cat /proc/self/environ", "cat link", "ls .. && true"];
    let seen = rejecting(&project, &calls, Mode::Plan).await;
    assert!(seen.text.contains("visible"), "{}", seen.text);
    assert!(!seen.text.contains("the secret"), "{}", seen.text);
    assert!(!seen.contents().contains("CARGO_MANIFEST_DIR"), "{}", seen.contents());
}

#[tokio::test]
async fn without_a_working_sandbox_none_runs_or_all_are_asked() {
    let project = Project::new();
    let script = "==\n--\ncall run {\"command\": \"ls\"}\n--\nsay ${result}\n";
    for (required, asked) in [(true, 0), (false, 1)] {
        let sandbox =
            SandboxOptions { program: "/bin/false".into(), required, network: true, hidden: Vec::new() };
        let options =
            Options { mode: Some(Mode::Auto), sandbox: Sandbox::On(sandbox), ..project.script(script) };
        let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
        let seen = run(&mut session, "go", PermissionOptionKind::RejectOnce).await;
        assert_eq!(seen.asked.len(), asked);
        assert_eq!(seen.text.contains("no sandbox works"), required, "{}", seen.text);
    }
}
