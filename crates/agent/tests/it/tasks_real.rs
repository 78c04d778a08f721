//! The five tasks once more with a real model, if one is named: `ATTACHE_REAL_MODEL=anthropic cargo
//! test -p attache-agent tasks_real`. Its key and where it is come from the environment, as for
//! everybody else.
//!
//! A real model finds its own way, so only what was asked for is looked at: what the files do in
//! the end, or what was said. That all this works before anybody pays for it is shown by a server
//! on loopback that speaks as providers do.

use attache::client::Client;
use attache_agent::model::Settings;
use attache_agent::{Mode, Options};
use serde_json::{Value, json};

use crate::models_server::{Seen as Asked, Server, Step, events};
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

async fn attempt(task: &Task, model: &str, models: Settings) -> (Seen, bool) {
    let project = Project::new();
    for (name, text) in task.files {
        project.write(name, text);
    }
    let options =
        Options { model: Some(model.to_owned()), models, mode: Some(task.mode), ..Options::default() };
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
        let (seen, checked) = attempt(task, &model, Settings::from_env()).await;
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
        let (seen, checked) =
            attempt(task, &format!("script:{}", path.display()), Settings::from_vars(|_| None)).await;
        assert!(!(checked && seen.text.contains(task.says)), "{}", task.prompt);
    }
    std::fs::remove_file(&path).unwrap();
}

/// What a model that knows the answers writes, by a word of the task.
const ANSWERS: [(&str, &[(&str, &str)]); 5] = [
    (
        "test.sh",
        &[("sum.sh", "total=0\nfor n in \"$@\"; do\n    total=$((total + n))\ndone\necho \"$total\"\n")],
    ),
    (
        "perimeter",
        &[("geometry.sh", "area() { echo $(($1 * $2)); }\nperimeter() { echo $((2 * ($1 + $2))); }\n")],
    ),
    (
        "find_user",
        &[
            ("src/lib.sh", "find_user() { echo \"user $1\"; }\n"),
            ("src/main.sh", ". src/lib.sh\nfind_user 1\nfind_user 2\n"),
        ],
    ),
    ("oldest", &[]),
    ("greet", &[("bin/greet", "echo \"Hello, ${1:-world}!\"\n")]),
];

/// Chat completions: calls for what is to be written, and words when that is done.
fn completion(asked: &Asked) -> Vec<Step> {
    let messages = asked.body["messages"].as_array().unwrap();
    let said = |role: &str| messages.iter().filter(|message| message["role"] == role).collect::<Vec<_>>();
    let task = said("user")[0]["content"].to_string();
    let (_, files) = ANSWERS.iter().find(|(word, _)| task.contains(word)).unwrap();
    // A file that exists is shown first, and is written by the second call.
    let is_done = |result: &&&Value| !result["content"].to_string().contains("make it again");
    let delta = if said("tool").iter().filter(is_done).count() < files.len() {
        let call = |(index, (path, content)): (usize, &(&str, &str))| {
            let arguments = json!({"path": path, "content": content}).to_string();
            json!({"index": index, "id": format!("call-{index}"), "type": "function",
                "function": {"name": "write", "arguments": arguments}})
        };
        json!({"tool_calls": files.iter().enumerate().map(call).collect::<Vec<Value>>()})
    } else {
        json!({"content": "Done. A cache forgets the oldest."})
    };
    let reason = if delta.get("content").is_some() { "stop" } else { "tool_calls" };
    let chunks = [
        json!({"choices": [{"delta": delta}]}),
        json!({"choices": [{"delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ];
    let stream: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events(&format!("{stream}data: [DONE]\n\n"))
}

#[tokio::test]
async fn the_tasks_run_to_their_end_with_a_provider_that_the_environment_names() {
    let server = Server::answering(completion).await;
    let url = format!("{}/v1", server.url);
    let settings = || {
        Settings::from_vars(|name| match name {
            "OPENAI_API_KEY" => Some("sk-test".to_owned()),
            "OPENAI_BASE_URL" => Some(url.clone()),
            _ => None,
        })
    };
    for task in &TASKS {
        let (seen, checked) = attempt(task, "openai", Settings { discover: false, ..settings() }).await;
        assert!(checked, "{}: {seen:#?}", task.prompt);
        assert!(seen.text.contains(task.says), "{}: {seen:#?}", task.prompt);
    }
    assert!(server.seen().iter().all(|asked| asked.header("authorization") == Some("Bearer sk-test")));
    assert!(server.seen().len() > TASKS.len(), "tools were called, and their results were sent");
}
