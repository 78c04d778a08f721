//! The five tasks once more with a real model, if one is named: `ATTACHE_REAL_MODEL=anthropic cargo test -p attache-agent tasks_real`.
//!
//! A real model finds its own way, so only what was asked for is looked at: what the files do in the end, or what was said.

use attache::client::Client;
use attache_agent::model::Settings;
use attache_agent::{Mode, Options};

use crate::rig::{Project, Seen, allow, connect};

struct Task {
    files: &'static [(&'static str, &'static str)],
    mode: Mode,
    prompt: &'static str,
    /// What must succeed in the project afterwards.
    check: &'static str,
    /// What must have been said.
    says: &'static str,
}

const TASKS: [Task; 5] = [
    Task {
        files: &[
            ("sum.sh", "total=0\nfor n in \"$@\"; do\n    total=$((total - n))\ndone\necho \"$total\"\n"),
            ("test.sh", "[ \"$(sh sum.sh 1 2 3)\" = 6 ] && echo pass || { echo FAIL; exit 1; }\n"),
        ],
        mode: Mode::Auto,
        prompt: "`sh test.sh` fails. Fix the cause, not the test.",
        check: "sh test.sh && grep -q 1 test.sh",
        says: "",
    },
    Task {
        files: &[("geometry.sh", "area() {\n    echo $(($1 * $2))\n}\n")],
        mode: Mode::Auto,
        prompt: "Add a function `perimeter` to geometry.sh that prints the perimeter of a rectangle from its two sides.",
        check: ". ./geometry.sh && [ \"$(perimeter 2 3)\" = 10 ] && [ \"$(area 2 3)\" = 6 ]",
        says: "",
    },
    Task {
        files: &[
            ("src/lib.sh", "get_user() { echo \"user $1\"; }\n"),
            ("src/main.sh", ". src/lib.sh\nget_user 1\nget_user 2\n"),
        ],
        mode: Mode::Auto,
        prompt: "Rename the function get_user to find_user everywhere.",
        check: "! grep -rq get_user src && [ \"$(sh src/main.sh | wc -l)\" -eq 2 ]",
        says: "",
    },
    Task {
        files: &[("cache.py", "# A cache that forgets the oldest.\nclass Cache:\n    pass\n")],
        mode: Mode::Plan,
        prompt: "Explain in one sentence what cache.py is about. Use the word oldest.",
        check: "[ \"$(wc -l < cache.py)\" -eq 3 ]",
        says: "oldest",
    },
    Task {
        files: &[],
        mode: Mode::Auto,
        prompt: "Make a program bin/greet for sh that prints `Hello, NAME!` for its first argument, and `Hello, world!` without one.",
        check: "[ \"$(sh bin/greet Ada)\" = 'Hello, Ada!' ] && [ \"$(sh bin/greet)\" = 'Hello, world!' ]",
        says: "",
    },
];

async fn attempt(task: &Task, model: &str) -> (Seen, bool) {
    let project = Project::new();
    for (name, text) in task.files {
        project.write(name, text);
    }
    let options = Options {
        model: Some(model.to_owned()),
        models: Settings::from_env(),
        mode: task.mode,
        ..Options::default()
    };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, task.prompt).await;
    let checked = std::process::Command::new("sh")
        .args(["-c", task.check])
        .current_dir(project.path())
        .status()
        .unwrap();
    (seen, checked.success())
}

#[tokio::test]
async fn a_real_model_does_the_five_tasks() {
    let Ok(model) = std::env::var("ATTACHE_REAL_MODEL") else { return };
    for task in &TASKS {
        let (seen, checked) = attempt(task, &model).await;
        assert!(checked, "{}: {seen:#?}", task.prompt);
        assert!(seen.text.contains(task.says), "{}: {seen:#?}", task.prompt);
    }
}

#[tokio::test]
async fn the_checks_of_the_tasks_can_fail() {
    // A model that does nothing passes none.
    let path = std::env::temp_dir().join(format!("attache-idle-{}", std::process::id()));
    std::fs::write(&path, "==\nsay nothing done\n").unwrap();
    for task in &TASKS {
        let (seen, checked) = attempt(task, &format!("script:{}", path.display())).await;
        assert!(!(checked && seen.text.contains(task.says)), "{}", task.prompt);
    }
    std::fs::remove_file(&path).unwrap();
}
