//! Five tasks as people set them, from the prompt to the files that result.

use attache::StopReason;
use attache_agent::Mode;

use crate::rig::{Project, Seen, allow, session};

async fn task(project: &Project, mode: Mode, prompt: &str, script: &str) -> Seen {
    let mut session = session(project, script, mode).await;
    let seen = allow(&mut session, prompt).await;
    assert_eq!(seen.stop, Some(StopReason::EndTurn), "{seen:#?}");
    seen
}

/// Runs a shell line in the project, as the user would to check.
fn sh(project: &Project, line: &str) -> (bool, String) {
    let output =
        std::process::Command::new("sh").args(["-c", line]).current_dir(project.path()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn fix_a_failing_test() {
    let project = Project::new();
    project
        .write("sum.sh", "total=0\nfor n in \"$@\"; do\n    total=$((total - n))\ndone\necho \"$total\"\n");
    project.write("test.sh", "[ \"$(sh sum.sh 1 2 3)\" = 6 ] && echo pass || { echo FAIL; exit 1; }\n");
    assert!(!sh(&project, "sh test.sh").0);
    let script = r#"== when "failing test"
--
call plan {"entries": [{"content": "see it fail", "status": "in_progress"}, {"content": "fix it", "status": "pending"}]}
call run {"command": "sh test.sh"}
call read {"path": "sum.sh"}
-- when result "FAIL"
call plan {"entries": [{"content": "see it fail", "status": "completed"}, {"content": "fix it", "status": "in_progress"}]}
call edit {"path": "sum.sh", "old": "total - n", "new": "total + n"}
--
call run {"command": "sh test.sh"}
-- when result "pass"
call plan {"entries": [{"content": "see it fail", "status": "completed"}, {"content": "fix it", "status": "completed"}]}
--
say sum.sh subtracted; it adds now.
"#;
    let seen = task(&project, Mode::Ask, "fix the failing test", script).await;
    assert_eq!(seen.titles_asked(), ["`sh test.sh`", "Edit sum.sh", "`sh test.sh`"]);
    assert_eq!(seen.plans.len(), 3);
    assert!(sh(&project, "sh test.sh").0);
}

#[tokio::test]
async fn add_a_function() {
    let project = Project::new();
    project.write("geometry.py", "def area(w, h):\n    return w * h\n");
    let script = r#"==
--
call read {"path": "geometry.py"}
--
call edit {"path": "geometry.py", "old": "    return w * h\n", "new": "    return w * h\n\n\ndef perimeter(w, h):\n    return 2 * (w + h)\n"}
--
say Added.
"#;
    task(&project, Mode::Code, "add a function perimeter", script).await;
    assert_eq!(
        project.read("geometry.py"),
        "def area(w, h):\n    return w * h\n\n\ndef perimeter(w, h):\n    return 2 * (w + h)\n"
    );
}

#[tokio::test]
async fn rename_across_files() {
    let project = Project::new();
    project.write("src/lib.sh", "get_user() { echo \"user $1\"; }\n");
    project.write("src/main.sh", ". src/lib.sh\nget_user 1\nget_user 2\n");
    project.write("README.md", "Call `get_user`.\n");
    let script = r#"==
--
call search {"pattern": "get_user"}
-- when result "src/main.sh:3:get_user 2"
call read {"path": "src/lib.sh"}
call read {"path": "src/main.sh"}
call read {"path": "README.md"}
call edit {"path": "src/lib.sh", "old": "get_user", "new": "find_user", "all": true}
call edit {"path": "src/main.sh", "old": "get_user", "new": "find_user", "all": true}
call edit {"path": "README.md", "old": "get_user", "new": "find_user", "all": true}
call move {"from": "src/lib.sh", "to": "src/users.sh"}
call edit {"path": "src/main.sh", "old": "src/lib.sh", "new": "src/users.sh"}
--
call search {"pattern": "get_user|lib\\.sh"}
-- when result "no line matches"
say Renamed in three files.
"#;
    let seen =
        task(&project, Mode::Code, "rename get_user to find_user and lib.sh to users.sh", script).await;
    assert_eq!(seen.text, "Renamed in three files.");
    assert_eq!(project.read("src/users.sh"), "find_user() { echo \"user $1\"; }\n");
    assert_eq!(project.read("README.md"), "Call `find_user`.\n");
    assert_eq!(sh(&project, "sh src/main.sh"), (true, "user 1\nuser 2\n".into()));
}

#[tokio::test]
async fn explain_a_module() {
    let project = Project::new();
    project.write("cache.py", "# A cache that forgets the oldest.\nclass Cache:\n    pass\n");
    let before = project.read("cache.py");
    let script = r#"==
--
call glob {"pattern": "*.py"}
--
call read {"path": "${result}"}
-- when result "forgets the oldest"
say `cache.py` line 2: `Cache` forgets the oldest.
"#;
    let seen = task(&project, Mode::Plan, "explain the module", script).await;
    assert_eq!(seen.text, "`cache.py` line 2: `Cache` forgets the oldest.");
    assert!(seen.asked.is_empty());
    assert_eq!(project.read("cache.py"), before);
}

#[tokio::test]
async fn a_small_program_from_scratch() {
    let project = Project::new();
    let script = r##"==
--
call list {}
-- when result "(empty)"
call write {"path": "bin/greet", "content": "#!/bin/sh\necho \"Hello, ${1:-world}!\"\n"}
call write {"path": "README.md", "content": "# greet\n\n    sh bin/greet NAME\n"}
--
call run {"command": "sh bin/greet Ada"}
-- when result "Hello, Ada!"
say It greets.
"##;
    let seen = task(&project, Mode::Code, "make a program that greets", script).await;
    assert_eq!(seen.text, "It greets.");
    assert_eq!(seen.titles_asked(), ["`sh bin/greet Ada`"]);
    assert_eq!(sh(&project, "sh bin/greet"), (true, "Hello, world!\n".into()));
    assert!(project.has("README.md"));
}
