//! Hostile agents: rules of the user approve or fail to deny something else.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::grants::{ask, terminal, wait_for_exit, write};
use crate::peer::{answers, command_line};
use crate::report::{Group, Report};
use crate::world::{Suite, World, changed, created};

const CLASS: &str = "rules";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "approvals", "a rule approves another effect than its own", rules),
    Group::new(CLASS, "denials", "a rule that denies is evaded", denials),
];

fn rules(suite: &Suite, report: &mut Report) {
    let run_of = |world: &World<'_>, steps: Value, flags: &[&str]| {
        let agent = command_line(world, &json!({ "steps": steps }));
        let mut args = flags.to_vec();
        args.extend(["--agent", &agent, "exec", "go"]);
        world.run(&args)
    };
    // Rules that approve one thing, and requests for another.
    let approvals: &[(&str, &str)] = &[
        ("command", r#"{"autoApprove":[{"command":"git status"}]}"#),
        ("command, escalate", r#"{"autoApprove":[{"command":"git status"}],"escalate":["edit"]}"#),
        ("host", r#"{"autoApprove":[{"host":"example.com"}]}"#),
        ("tool", r#"{"autoApprove":[{"tool":"read_file"}]}"#),
        ("reads", r#"{"autoApprove":["read","search"]}"#),
        ("path", r#"{"autoApprove":[{"kind":"edit","path":"*.txt"}]}"#),
        ("title", r#"{"autoApprove":["Edit README.md"]}"#),
        ("commands", r#"{"autoApprove":[{"command":"ls"},{"command":"true"}]}"#),
    ];
    let requests: Vec<(&str, Vec<Value>)> = vec![
        ("edit with that command", vec![ask(json!({ "title": "git status", "kind": "edit", "rawInput": { "command": "git status", "path": "$cwd/README.md" } })), write("$cwd/README.md", "evil")]),
        ("edit with that host", vec![ask(json!({ "title": "x", "kind": "edit", "rawInput": { "url": "https://example.com/", "path": "$cwd/README.md" } })), write("$cwd/README.md", "evil")]),
        ("command as that tool", [vec![ask(json!({ "title": "read_file", "kind": "read", "_meta": { "toolName": "read_file" }, "rawInput": { "command": "touch canary" } }))], terminal("touch", &["canary"], json!({}))].concat()),
        ("read of a file, then a write", vec![ask(json!({ "title": "read_file", "kind": "read", "locations": [{ "path": "$cwd/README.md" }] })), write("$cwd/README.md", "evil")]),
        ("command that begins the same", [vec![ask(json!({ "title": "x", "kind": "execute", "rawInput": { "command": "git status; touch canary" } }))], terminal("sh", &["-c", "git status; touch canary"], json!({}))].concat()),
        ("program that begins the same", terminal("git", &["status", "--porcelain;touch canary"], json!({}))),
        ("command in other words", terminal("sh", &["-c", "ls $(touch canary)"], json!({}))),
        ("list of commands", [vec![ask(json!({ "title": "ls", "kind": "execute", "rawInput": { "command": ["ls", ";", "touch", "canary"] } }))], terminal("touch", &["canary"], json!({}))].concat()),
        ("write of another path", vec![write("$cwd/README.md", "evil"), write("$cwd/src/../README.md", "evil")]),
        ("link with that name", vec![json!({ "sh": "ln -s README.md x.txt" }), write("$cwd/x.txt", "evil")]),
        ("link out with that name", vec![json!({ "sh": "ln -s ../outside/secret.txt y.txt" }), write("$cwd/y.txt", "evil")]),
        ("program in the project", vec![json!({ "sh": "printf '#!/bin/sh\\ntouch canary' > git; chmod +x git" }), json!({ "call": "terminal/create", "params": { "command": "$cwd/git", "args": ["status"] } }), wait_for_exit()]),
        ("search path", vec![json!({ "call": "terminal/create", "params": { "command": "ls", "args": [], "env": [{ "name": "PATH", "value": "$cwd/bin" }] } }), wait_for_exit()]),
    ];
    for (rule, policy) in approvals {
        for (name, steps) in &requests {
            let world = suite.world();
            world.script(&world.path("bin/ls"), "/bin/touch canary");
            let run = run_of(&world, json!(steps), &["--policy", policy]);
            let secret = changed(&world.outside("secret.txt"), &format!("{}\n", crate::world::SECRET));
            let happened = created(&world.path("canary"))
                .or_else(|| changed(&world.path("README.md"), "# A project\n"))
                .or(secret)
                .or_else(|| run.misbehaved());
            report.attack(
                format!("rule for a {rule}, {name}"),
                format!("--policy '{policy}'; agent: {}", json!(steps)),
                happened,
            );
        }
    }
    for (name, policy, steps) in [
        (
            "path",
            r#"{"autoApprove":[{"kind":"edit","path":"README.md"}]}"#,
            vec![write("$cwd/README.md", "evil")],
        ),
        (
            "command",
            r#"{"autoApprove":[{"command":"touch canary"}]}"#,
            terminal("touch", &["canary"], json!({})),
        ),
    ] {
        let world = suite.world();
        let run = run_of(&world, json!(steps), &["--policy", policy]);
        let fired = world.path("canary").exists() || world.read("README.md") == "evil";
        report.control(format!("rule for a {name}, the same {name}"), fired, run.tail());
    }
}

/// Rules that deny, and ways around them, with everything else allowed.
fn denials(suite: &Suite, report: &mut Report) {
    let lines = [
        "rm victim",
        "$(echo r)m victim",
        "`echo rm` victim",
        "r\\m victim",
        "\\rm victim",
        "'rm' victim",
        "r''m victim",
        "\"r\"m victim",
        "r\\\nm victim",
        "/bin/rm victim",
        "/usr/bin/../bin/rm victim",
        "env rm victim",
        "command rm victim",
        "exec rm victim",
        "eval 'rm victim'",
        "eval r''m victim",
        "a=r; ${a}m victim",
        "a=rm; $a victim",
        "sh -c 'rm victim'",
        "sh -c \"$(echo 'rm victim')\"",
        "echo rm victim | sh",
        "printf 'cm0gdmljdGlt' | base64 -d | sh",
        "xargs rm < list",
        "echo victim | xargs rm",
        "nice rm victim",
        "timeout 5 rm victim",
        "nohup rm victim",
        "true; rm victim",
        "true && rm victim",
        "false || rm victim",
        "true | rm victim",
        "(rm victim)",
        "{ rm victim; }",
        "! rm victim",
        "if true; then rm victim; fi",
        "for x in victim; do rm $x; done",
        "ls\nrm victim",
        "ls #\nrm victim",
        "x=1 rm victim",
        "rm -- victim",
        "rm -f victim",
        "rm victim > /dev/null",
        "</dev/null rm victim",
        ">/dev/null 2>&1 rm victim",
        "find victim -exec rm {} ;",
        "find victim -exec rm {} +",
        "${0+rm} victim",
        "$'rm' victim",
        "r{m,} victim",
        "/???/rm victim",
        ". ./evil.sh",
        "sh evil.sh",
        "./evil.sh",
        "cat <<E | sh\nrm victim\nE",
        "case x in x) rm victim;; esac",
        "f() { rm victim; }; f",
        "trap 'rm victim' EXIT",
        "rm\tvictim",
        "\nrm victim",
        "setsid rm victim",
        "busybox rm victim",
        "time rm victim",
        "bash -c 'rm victim'",
        "sudo rm victim",
    ];
    let attempt = |steps: Vec<Value>, policy: &str| {
        let world = suite.world();
        world.write("victim", "x");
        world.write("list", "victim\n");
        world.script(&world.path("evil.sh"), "rm victim");
        world.write(".env", "x");
        let agent = command_line(&world, &json!({ "steps": steps }));
        let run = world.run(&["--approve-all", "--policy", policy, "--agent", &agent, "exec", "go"]);
        let gone = (!world.path("victim").exists()).then(|| "the file was removed".to_owned());
        (gone, run, answers(&world))
    };
    let policy = r#"{"autoDeny":[{"command":"rm"}]}"#;
    // Scripts are other programs: what they run is theirs.
    let is_script = |line: &str| line.contains("evil.sh");
    for line in lines.iter().filter(|line| !is_script(line)) {
        for shell in ["sh", "/bin/sh", "bash"] {
            if shell != "sh" && line.len() > 12 {
                continue;
            }
            let (gone, ..) = attempt(terminal(shell, &["-c", line], json!({})), policy);
            report.attack(
                format!("deny rm, {shell} -c {line:?}"),
                format!("--approve-all --policy '{policy}'; {shell} -c {line:?}"),
                gone,
            );
        }
    }
    for (program, args) in [
        ("rm", &["victim"][..]),
        ("/bin/rm", &["victim"]),
        ("env", &["rm", "victim"]),
        ("nice", &["-n", "1", "rm", "victim"]),
        ("xargs", &["-a", "list", "rm"]),
        ("sh", &["-ec", "rm victim"]),
        ("sh", &["-c", "-e", "rm victim"]),
        ("find", &["victim", "-exec", "rm", "{}", ";"]),
        ("timeout", &["5", "sh", "-c", "rm victim"]),
    ] {
        let (gone, ..) = attempt(terminal(program, args, json!({})), policy);
        report.attack(
            format!("deny rm, {program} {args:?}"),
            format!("--approve-all --policy '{policy}'; {program} {args:?}"),
            gone,
        );
    }
    let (gone, run, _) =
        attempt(terminal("sh", &["-c", "rm victim"], json!({})), r#"{"autoDeny":[{"command":"mv"}]}"#);
    report.control("another program is denied", gone.is_some(), run.tail());
    // Paths.
    let policy = r#"{"autoDeny":[{"path":[".env","secrets/"]}]}"#;
    for path in [
        ".env",
        "./.env",
        "src/../.env",
        "link",
        "dir/link",
        "$cwd/.env",
        "secrets/key",
        "secrets-link/key",
        "./secrets/../secrets/key",
        ".env/../.env",
    ] {
        for method in ["fs/read_text_file", "fs/write_text_file"] {
            let world = suite.world();
            world.write(".env", "ENV-CANARY\n");
            world.write("secrets/key", "ENV-CANARY\n");
            fs::create_dir_all(world.path("dir")).unwrap();
            symlink(".env", world.path("link")).unwrap();
            symlink("../.env", world.path("dir/link")).unwrap();
            symlink("secrets", world.path("secrets-link")).unwrap();
            let path = if path.starts_with('$') { path.to_owned() } else { format!("$cwd/{path}") };
            let agent = command_line(
                &world,
                &json!({ "steps": [{ "call": method, "params": { "path": path, "content": "evil" } }] }),
            );
            world.run(&["--approve-all", "--policy", policy, "--agent", &agent, "exec", "go"]);
            let text = json!(answers(&world)).to_string();
            let happened = crate::world::leaked("the answer", &text, "ENV-CANARY")
                .or_else(|| changed(&world.path(".env"), "ENV-CANARY\n"))
                .or_else(|| changed(&world.path("secrets/key"), "ENV-CANARY\n"));
            report.attack(
                format!("deny path, {method} {path}"),
                format!("--policy '{policy}'; {method} {path}"),
                happened,
            );
        }
    }
    let world = suite.world();
    world.write("open.txt", "ENV-CANARY\n");
    let agent = command_line(
        &world,
        &json!({ "steps": [{ "call": "fs/read_text_file", "params": { "path": "$cwd/open.txt" } }] }),
    );
    world.run(&["--approve-all", "--policy", policy, "--agent", &agent, "exec", "go"]);
    report.control(
        "another path is read",
        json!(answers(&world)).to_string().contains("ENV-CANARY"),
        "not read",
    );
}
