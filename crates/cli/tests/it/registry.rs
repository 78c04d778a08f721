//! `attache registry`: found, checked, unpacked, recorded, used.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::auth_terminal::Terminal;
use super::registry_server::{Files, Server, agent, binary, gzip, platform, sha256, tar};
use super::world::{Run, World, test_agent};

/// A world whose registry is a server of this test.
fn world(server: &Server) -> World {
    World::new().env("ATTACHE_REGISTRY", &server.url("/registry.json"))
}

/// An archive with an agent that works: it does what a script says.
fn working_archive(world: &World) -> Vec<u8> {
    let script = world.path("registry.script");
    fs::write(&script, "").unwrap();
    let program = format!("#!/bin/sh\nexec {:?} {:?}\n", test_agent(), script);
    gzip(&tar(&[("bin/agent", program.as_bytes()), ("README", b"hello")]))
}

fn lock(world: &World) -> Value {
    let text = fs::read_to_string(world.home().join("data/agents.lock.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn agents_dir(world: &World, id: &str) -> Vec<String> {
    let entries = fs::read_dir(world.home().join("data/agents").join(id)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn object(run: Run) -> Value {
    run.json().pop().unwrap()
}

#[test]
fn listed_and_searched_with_what_is_for_this_machine() {
    let server = Server::new();
    server.agents(&[
        binary("goose", "1.2.3", "goose.tar.gz", None),
        agent("gemini", "0.1.0", json!({ "npx": { "package": "@google/gemini-cli@0.1.0" } })),
        json!({ "id": "BROKEN" }),
    ]);
    let world = world(&server);
    let text = world.run(&["registry"]).ok();
    assert!(text.contains("goose   1.2.3  binary  The goose: answers questions"), "{text}");
    assert!(text.contains("gemini  0.1.0  npx"), "{text}");
    let list = object(world.run(&["--format", "json", "registry", "search", "GOO"]));
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(
        (&list[0]["id"], &list[0]["via"], &list[0]["installed"]),
        (&json!("goose"), &json!(["binary"]), &Value::Null)
    );
    assert_eq!(world.run(&["--format", "quiet", "registry", "search", "answers", "gem"]).ok(), "gemini\n");
    assert_eq!(world.run(&["registry", "search", "nothing like it"]).ok(), "no matching agent\n");
    // A slip in one agent is reported to those who ask for it.
    assert!(world.run(&["-v", "registry", "list"]).stderr.contains("BROKEN"));
    // All of that needed one request.
    assert_eq!(server.paths(), ["/registry.json"]);
}

#[test]
fn the_copy_serves_when_the_server_does_not() {
    let server = Server::new();
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", None)]);
    let world = world(&server);
    let failed = world.run(&["registry", "list", "--offline"]).code(1);
    assert!(failed.stderr.contains("no cached copy"), "{}", failed.stderr);
    world.run(&["registry", "list"]).ok();
    // Asked again, the server only says that nothing has changed.
    world.run(&["registry", "list", "--refresh"]).ok();
    assert!(server.asked()[1].headers.contains_key("if-none-match"));
    // A server in trouble is made up for by the copy, with a warning.
    server.fail("/registry.json", 503);
    let run = world.run(&["registry", "list", "--refresh"]);
    assert!(run.stderr.contains("503") && run.stderr.contains("using the copy"), "{}", run.stderr);
    assert!(run.ok().contains("goose"));
    // One that has no such file is believed.
    server.fail("/registry.json", 404);
    assert!(world.run(&["registry", "list", "--refresh"]).code(1).stderr.contains("404"));
    // Nor does nonsense replace the copy.
    server.put("/registry.json", "<html>");
    assert!(world.run(&["registry", "list", "--refresh"]).code(1).stderr.contains("not JSON"));
    drop(server);
    assert!(world.run(&["registry", "list", "--offline"]).ok().contains("goose"));
    assert!(world.run(&["registry", "list", "--refresh"]).ok().contains("goose"));
}

#[test]
fn an_archive_is_checked_installed_and_used_by_name() {
    let server = Server::new();
    let world = world(&server);
    let archive = working_archive(&world);
    let sum = sha256(&archive);
    server.put("/goose.tar.gz", archive);
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", Some(&sum.to_uppercase()))]);
    let run = world.run(&["registry", "install", "goose"]);
    assert!(run.stderr.contains("downloading goose 1.2.3"), "{}", run.stderr);
    assert!(run.ok().contains("installed goose 1.2.3 (checksum verified)"));
    let lock = lock(&world);
    let goose = &lock["agents"]["goose"];
    assert_eq!(goose["sha256"], json!(sum));
    assert_eq!(
        (&goose["version"], &goose["verified"], &goose["via"]),
        (&json!("1.2.3"), &json!(true), &json!("binary"))
    );
    assert_eq!(goose["source"], json!(server.url("/registry.json")));
    // It is an agent like any other.
    let agents = object(world.run(&["--format", "json", "agents"]));
    let listed = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "goose").unwrap();
    assert_eq!((&listed["source"], &listed["installed"]), (&json!("registry"), &json!(true)));
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "hi there"]).ok(), "hi there\n");
    // Once more does nothing, and without a network it can be made whole again.
    assert!(world.run(&["registry", "install", "goose"]).ok().contains("is already installed"));
    fs::remove_dir_all(world.home().join("data/agents/goose")).unwrap();
    let asked = server.paths().len();
    assert!(world.run(&["registry", "install", "--offline", "goose"]).ok().contains("installed goose"));
    assert_eq!(server.paths().len(), asked);
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "again"]).ok(), "again\n");
    let text = world.run(&["registry", "list"]).ok();
    assert!(text.starts_with("* goose"), "{text}");
    assert!(world.run(&["registry", "list", "--installed"]).ok().contains("bin/agent --acp"));
    // And goes again.
    assert_eq!(world.run(&["registry", "remove", "goose"]).ok(), "removed goose 1.2.3\n");
    assert!(agents_dir(&world, "goose").is_empty());
    assert!(!world.run(&["agents", "--all"]).ok().contains("registry"));
    assert!(world.run(&["registry", "remove", "goose"]).code(1).stderr.contains("not installed"));
}

#[test]
fn an_interrupted_download_is_resumed() {
    let server = Server::new();
    let world = world(&server);
    let archive = working_archive(&world);
    let (sum, length) = (sha256(&archive), archive.len());
    server.put("/goose.tar.gz", archive.clone());
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", Some(&sum))]);
    server.cut("/goose.tar.gz", length / 2);
    let run = world.run(&["registry", "install", "goose"]).code(1);
    assert!(run.stderr.contains("the download resumes"), "{}", run.stderr);
    world.run(&["registry", "install", "goose"]).ok();
    let asked = server.asked().pop().unwrap();
    assert_eq!(asked.headers["range"], format!("bytes={}-", length / 2));
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "hi"]).ok(), "hi\n");
    // If the archive is another one by then, it is taken from its beginning.
    world.run(&["registry", "remove", "goose"]).ok();
    let mut other = archive;
    other.extend([0; 64]);
    server.cut("/goose.tar.gz", length / 2);
    world.run(&["registry", "install", "goose"]).code(1);
    server.put("/goose.tar.gz", other.clone());
    server.agents(&[binary("goose", "1.2.4", "goose.tar.gz", Some(&sha256(&other)))]);
    world.run(&["registry", "install", "--refresh", "goose"]).ok();
}

#[test]
fn an_archive_with_another_checksum_is_not_unpacked() {
    let server = Server::new();
    let world = world(&server);
    server.put("/goose.tar.gz", working_archive(&world));
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", Some(&"0".repeat(64)))]);
    let run = world.run(&["registry", "install", "goose"]).code(1);
    assert!(run.stderr.contains("checksum mismatch"), "{}", run.stderr);
    assert!(!world.home().join("data/agents.lock.json").exists());
    assert!(agents_dir(&world, "goose").is_empty());
    let failure = object(world.run(&["--format", "json", "registry", "install", "goose"]));
    assert_eq!(failure["error"]["data"]["detailCode"], "CHECKSUM_MISMATCH");
}

#[test]
fn an_archive_without_a_checksum_is_remembered() {
    let server = Server::new();
    let world = world(&server);
    server.put("/goose.tar.gz", working_archive(&world));
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", None)]);
    let refused = world.run(&["registry", "install", "--require-checksum", "goose"]).code(1);
    assert!(refused.stderr.contains("no checksum"), "{}", refused.stderr);
    assert!(world.run(&["registry", "install", "goose"]).ok().contains("recorded for the next time"));
    // The same version cannot become something else.
    server.put("/goose.tar.gz", gzip(&tar(&[("bin/agent", b"#!/bin/sh\necho other\n")])));
    let run = world.run(&["registry", "install", "--force", "goose"]).code(1);
    assert!(run.stderr.contains("has changed without a new version"), "{}", run.stderr);
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "still me"]).ok(), "still me\n");
}

#[test]
fn archives_that_are_made_to_do_damage() {
    let server = Server::new();
    let world = world(&server);
    let cases: &[(&str, Files<'_>, &str)] = &[
        ("out", &[("bin/agent", b"x"), ("../../../evil", b"x")], "leads out"),
        ("root", &[("/tmp/evil", b"x")], "leads out"),
        ("empty", &[("other", b"x")], "not in the archive"),
    ];
    let mut agents = Vec::new();
    for (id, files, _) in cases {
        server.put(&format!("/{id}.tgz"), gzip(&tar(files)));
        agents.push(binary(id, "1.0.0", &format!("{id}.tgz"), None));
    }
    server.put("/short.tgz", gzip(&tar(&[("bin/agent", &[7; 5000])]))[..40].to_vec());
    agents.push(binary("short", "1.0.0", "short.tgz", None));
    agents.push(binary("dmg", "1.0.0", "installer.dmg", None));
    server.agents(&agents);
    for (id, what) in
        cases.iter().map(|(id, _, what)| (*id, *what)).chain([("short", "unpacked"), ("dmg", "installer")])
    {
        let run = world.run(&["registry", "install", id]).code(1);
        assert!(run.stderr.contains(what), "{id}: {}", run.stderr);
    }
    assert!(!world.path("evil").exists() && !world.home().join("evil").exists());
    let left: Vec<PathBuf> =
        fs::read_dir(world.home().join("data/agents")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!world.home().join("data/agents.lock.json").exists());
}

#[test]
fn updates_replace_the_version_before() {
    let server = Server::new();
    let world = world(&server);
    server.put("/1.tgz", working_archive(&world));
    server.put("/2.tgz", working_archive(&world));
    server.agents(&[binary("goose", "1.0.0", "1.tgz", None)]);
    world.run(&["registry", "install", "goose"]).ok();
    assert!(world.run(&["registry", "update"]).ok().contains("is already installed"));
    server.agents(&[binary("goose", "2.0.0", "2.tgz", None)]);
    let text = world.run(&["registry", "list", "--refresh"]).ok();
    assert!(text.contains("^ goose  2.0.0") && text.contains("(1.0.0 is installed)"), "{text}");
    assert_eq!(world.run(&["registry", "update", "--dry-run"]).ok(), "goose 1.0.0 can be updated to 2.0.0\n");
    let done = object(world.run(&["--format", "json", "registry", "update", "goose"]));
    assert_eq!((&done["action"], &done["previousVersion"]), (&json!("agent_updated"), &json!("1.0.0")));
    assert_eq!(agents_dir(&world, "goose"), ["2.0.0"]);
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "new"]).ok(), "new\n");
    // An agent that is gone from the registry stays.
    server.agents(&[]);
    assert!(
        world.run(&["registry", "update", "--refresh"]).code(0).stderr.contains("no longer in the registry")
    );
    assert!(world.run(&["registry", "update", "nope"]).code(1).stderr.contains("not installed"));
    // A failed update leaves what there was.
    server.agents(&[binary("goose", "3.0.0", "3.tgz", None)]);
    assert!(world.run(&["registry", "update", "--refresh"]).code(1).stderr.contains("404"));
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "old"]).ok(), "old\n");
}

/// A directory for programs that only this test has; PATH is that and nothing else but the shell's.
fn tools(world: World, programs: &[(&str, &str)]) -> World {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = world.path("tools");
    fs::create_dir_all(&dir).unwrap();
    for (name, text) in programs {
        fs::write(dir.join(name), text).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = dir.to_string_lossy().into_owned();
    world.env("PATH", &path)
}

#[test]
fn packages_become_the_command_that_runs_them() {
    let server = Server::new();
    server.agents(&[
        agent("one", "1.0.0", json!({ "npx": { "package": "@a/one@1.0.0", "args": ["--acp"], "env": { "ONE": "1" } } })),
        agent("two", "1.0.0", json!({ "npx": { "package": "two@1.0.0", "cmd": "two-acp" } })),
        agent("three", "1.0.0", json!({ "uvx": { "package": "three==1.0.0", "cmd": "three-acp", "args": ["x"] } })),
        agent("four", "1.0.0", json!({ "binary": { "plan9-mips": { "archive": "x.tgz", "cmd": "x" } }, "npx": { "package": "four" } })),
        agent("five", "1.0.0", json!({ "binary": { "plan9-mips": { "archive": "x.tgz", "cmd": "x" } } })),
    ]);
    let without = tools(world(&server), &[]);
    let run = without.run(&["registry", "install", "one"]).code(1);
    assert!(run.stderr.contains("needs npx") && run.stderr.contains("nodejs.org"), "{}", run.stderr);
    let world = tools(world(&server), &[("npx", "#!/bin/sh\n"), ("uvx", "#!/bin/sh\n")]);
    world.run(&["registry", "install", "one", "two", "three", "four"]).ok();
    let list = object(world.run(&["--format", "json", "registry", "list", "--installed"]));
    let commands: Vec<&str> =
        list.as_array().unwrap().iter().map(|agent| agent["command"].as_str().unwrap()).collect();
    assert_eq!(
        commands,
        [
            "npx -y four",
            "npx -y @a/one@1.0.0 --acp",
            "uvx --from three==1.0.0 three-acp x",
            "npx -y --package two@1.0.0 two-acp",
        ]
    );
    assert_eq!(lock(&world)["agents"]["one"]["env"]["ONE"], "1");
    let run = world.run(&["registry", "install", "five"]).code(1);
    assert!(
        run.stderr.contains(&format!("is not available for {}", platform()))
            && run.stderr.contains("plan9-mips"),
        "{}",
        run.stderr
    );
    let run = world.run(&["registry", "install", "--via", "uvx", "one"]).code(1);
    assert!(run.stderr.contains("via uvx"), "{}", run.stderr);
}

#[test]
fn npm_can_install_at_once() {
    let server = Server::new();
    server.agents(&[agent(
        "one",
        "1.0.0",
        json!({ "npx": { "package": "@a/one@1.0.0", "args": ["--acp"] } }),
    )]);
    // What npm does, as far as it matters here.
    let npm = r#"#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
[ "$4" = "@a/one@1.0.0" ] || { echo "npm ERR! 404 $4" >&2; exit 1; }
/bin/mkdir -p "$2/node_modules/@a/one" "$2/node_modules/.bin"
echo '{"dependencies":{"@a/one":"1.0.0"}}' > "$2/package.json"
echo '{"bin":{"one-acp":"x.js"}}' > "$2/node_modules/@a/one/package.json"
printf '#!/bin/sh\necho installed\n' > "$2/node_modules/.bin/one-acp"
/bin/chmod +x "$2/node_modules/.bin/one-acp"
"#;
    let world = tools(world(&server), &[("npx", "#!/bin/sh\n"), ("npm", npm)]);
    let done = object(world.run(&["--format", "json", "registry", "install", "--preinstall", "one"]));
    let command = done["command"].as_str().unwrap();
    assert!(command.ends_with("/agents/one/1.0.0/node_modules/.bin/one-acp --acp"), "{command}");
    // It stays that way, and the other way is another installation.
    assert!(world.run(&["registry", "update"]).ok().contains("already"));
    world.run(&["registry", "install", "one"]).ok();
    assert!(agents_dir(&world, "one").is_empty());
    server.agents(&[agent("one", "2.0.0", json!({ "npx": { "package": "@a/one@2.0.0" } }))]);
    let run = world.run(&["registry", "install", "--refresh", "--preinstall", "one"]).code(1);
    assert!(run.stderr.contains("npm ERR! 404 @a/one@2.0.0"), "{}", run.stderr);
    assert_eq!(lock(&world)["agents"]["one"]["version"], "1.0.0");
}

#[test]
fn files_and_directories_are_registries_too() {
    let world = World::new();
    let archive = working_archive(&world);
    fs::create_dir_all(world.dir.join("index/goose")).unwrap();
    fs::write(world.dir.join("index/goose.tgz"), &archive).unwrap();
    world.write(
        "index/goose/agent.json",
        &binary("goose", "1.0.0", "goose.tgz", Some(&sha256(&archive))).to_string(),
    );
    world.write("index/_hidden/agent.json", "{}");
    assert_eq!(world.run(&["--format", "quiet", "registry", "list", "--registry", "index"]).ok(), "goose\n");
    world.run(&["registry", "install", "goose", "--registry", "index"]).ok();
    assert_eq!(world.run(&["--format", "quiet", "goose", "exec", "local"]).ok(), "local\n");
    // From the settings, several: the first that has it counts, one that is missing is told about.
    world.write(
        "one.json",
        &json!({ "agents": [binary("goose", "9.0.0", "index/goose.tgz", None)] }).to_string(),
    );
    let dir = world.dir.display();
    world.settings(&format!("[registry]\nurl = ['{dir}/one.json', '{dir}/missing.json', '{dir}/index']"));
    let run = world.run(&["registry", "list"]);
    assert!(run.stderr.contains("missing.json"), "{}", run.stderr);
    assert!(run.ok().contains("9.0.0"));
    // An installed agent does not move to another registry by itself.
    let run = world.run(&["registry", "update"]).code(0);
    assert!(run.stderr.contains("was installed from"), "{}", run.stderr);
    assert_eq!(lock(&world)["agents"]["goose"]["version"], "1.0.0");
}

#[test]
fn a_token_goes_to_its_own_server_only() {
    let (private, public) = (Server::new(), Server::new());
    let world = World::new().env("MY_TOKEN", "tok-123456");
    let archive = working_archive(&world);
    for server in [&private, &public] {
        server.put("/goose.tgz", archive.clone());
    }
    private.agents(&[
        binary("near", "1.0.0", "/goose.tgz", None),
        binary("far", "1.0.0", &public.url("/goose.tgz"), None),
    ]);
    world.settings(&format!(
        "[registry]\nurl = {{ url = '{}', token_env = 'MY_TOKEN' }}",
        private.url("/registry.json")
    ));
    world.run(&["registry", "install", "near", "far"]).ok();
    let sent = |server: &Server| -> Vec<Option<String>> {
        server.asked().iter().map(|asked| asked.headers.get("authorization").cloned()).collect()
    };
    let token = Some("Bearer tok-123456".to_owned());
    assert_eq!(sent(&private), [token.clone(), token]);
    assert_eq!(sent(&public), [None]);
    assert!(!fs::read_to_string(world.home().join("data/agents.lock.json")).unwrap().contains("tok-123456"));
}

#[test]
fn paths_that_others_can_change_are_refused() {
    let world = World::new().env("ATTACHE_REGISTRY", "http://registry.example.com/registry.json");
    let run = world.run(&["registry", "list"]).code(1);
    assert!(run.stderr.contains("plain http is not protected"), "{}", run.stderr);
    let world = World::new();
    world.settings("[registry]\nurl = 1");
    assert!(world.run(&["registry", "list"]).code(2).stderr.contains("`url` is an address"));
}

#[test]
fn names_that_are_not_there() {
    let server = Server::new();
    server.agents(&[binary("goose", "1.2.3", "goose.tar.gz", None)]);
    let world = world(&server);
    let run = world.run(&["registry", "install", "gose"]).code(1);
    assert!(run.stderr.contains("did you mean `goose`?"), "{}", run.stderr);
    assert!(
        world
            .run(&["registry", "install", "goose@1.0.0"])
            .code(1)
            .stderr
            .contains("has goose 1.2.3, not 1.0.0")
    );
    assert!(
        world.run(&["registry", "install"]).code(2).stderr.contains("needs a agent")
            || world.run(&["registry", "install"]).code == Some(2)
    );
}

#[test]
fn a_damaged_record_stops_only_what_needs_it() {
    let world = World::new().agent("");
    fs::create_dir_all(world.home().join("data")).unwrap();
    fs::write(world.home().join("data/agents.lock.json"), "{").unwrap();
    assert_eq!(world.run(&["--format", "quiet", "exec", "hi"]).ok(), "hi\n");
    let run = world.run(&["registry", "remove", "x"]).code(1);
    assert!(run.stderr.contains("agents.lock.json"), "{}", run.stderr);
}

#[test]
fn a_terminal_shows_how_far_it_is() {
    let server = Server::new();
    let world = World::new();
    let program = [b"#!/bin/sh\n".as_slice(), &[b'x'; 3_000_000]].concat();
    server.put("/goose", program);
    server.agents(&[binary("goose", "1.2.3", "goose", None)]);
    let url = server.url("/registry.json");
    let mut terminal =
        Terminal::start(&world, &["registry", "install", "goose"], &[("ATTACHE_REGISTRY", &url)]);
    terminal.sees("] ");
    terminal.sees("% ");
    terminal.sees("of 3.0 MB");
    terminal.sees("installed goose 1.2.3");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
    // The bar is gone when it is done, and there are no lines beside it.
    assert!(!text.contains("downloading"), "{text}");
}

#[test]
fn two_at_once_both_end_up_recorded() {
    let server = Server::new();
    let world = world(&server);
    server.put("/a.tgz", working_archive(&world));
    server.agents(&[binary("one", "1.0.0", "a.tgz", None), binary("two", "1.0.0", "a.tgz", None)]);
    let runs: Vec<_> = ["one", "two"].map(|id| world.start(&["registry", "install", id])).into();
    for run in runs {
        run.end().code(0);
    }
    assert_eq!(world.run(&["--format", "quiet", "registry", "list", "--installed"]).ok(), "one\ntwo\n");
}
