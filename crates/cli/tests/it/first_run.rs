//! The first start on a terminal, without settings.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::auth_terminal::Terminal;
use crate::chat_rig::DOWN;
use crate::world::{World, test_agent};

const QUESTION: &str = "Which agent do you want to talk to?";
const CTRL_D: &str = "\x04";

const SERVERS: [&str; 4] = ["OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"];

/// The last line of a list.
const LIST: &str = "Enter chooses, Esc leaves";

/// Starts the program where only a Gemini CLI is installed, which is a scripted agent.
fn start(world: &World, env: &[(&str, &str)]) -> Terminal {
    let script = world.write("script", "on prompt\n  say hello\n");
    let gemini = world.write(
        "bin/gemini",
        &format!("#!/bin/sh\nexec '{}' '{}'\n", test_agent().display(), script.display()),
    );
    fs::set_permissions(&gemini, fs::Permissions::from_mode(0o755)).unwrap();
    let bin = world.dir.join("bin");
    let mut all = vec![("PATH", bin.to_str().unwrap())];
    for key in
        ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"]
    {
        all.push((key, ""));
    }
    // Nothing listens there.
    for server in SERVERS {
        all.push((server, "http://127.0.0.1:9"));
    }
    all.extend(env);
    Terminal::start(world, &[], &all)
}

fn settings(world: &World) -> String {
    fs::read_to_string(world.home().join("config.toml")).unwrap_or_default()
}

#[test]
fn the_agents_that_work_are_offered_once() {
    let world = World::new();
    let key = [("ANTHROPIC_API_KEY", "sk-test")];
    let mut terminal = start(&world, &key);
    terminal.sees(QUESTION);
    terminal.sees("Attaché's own agent, with Anthropic (ANTHROPIC_API_KEY)");
    terminal.sees("Gemini CLI, which is installed");
    terminal.sees(LIST);
    terminal.keys(DOWN);
    terminal.keys("\r");
    terminal.sees("gemini is the default now");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
    assert!(settings(&world).contains("default_agent = \"gemini\""), "{}", settings(&world));

    let mut again = start(&world, &key);
    again.sees("/help shows");
    again.keys(CTRL_D);
    let (status, text) = again.end();
    assert!(status.success());
    assert!(!text.contains(QUESTION), "{text}");
}

#[test]
fn an_agent_that_is_chosen_for_want_of_a_model_becomes_the_default() {
    let world = World::new();
    let mut terminal = start(&world, &[]);
    terminal.sees("No model yet");
    terminal.sees("Use another agent: gemini");
    terminal.sees(LIST);
    // Words search; the best row is selected.
    terminal.keys("gemini");
    terminal.keys("\r");
    terminal.sees("gemini is the default now");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
    assert!(settings(&world).contains("default_agent = \"gemini\""), "{}", settings(&world));
}

/// Answers every request of `listener` from now on.
fn serve(listener: TcpListener, answer: impl Fn(&str) -> (u16, String) + Send + 'static) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                head.push(byte[0]);
            }
            let (status, body) = answer(&String::from_utf8_lossy(&head));
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{body}"
            );
        }
    });
}

#[test]
fn a_key_can_be_entered_in_the_first_minute() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    serve(listener, |head| match head.to_lowercase() {
        head if !head.starts_with("get /v1/models ") => (404, String::new()),
        head if head.contains("x-api-key: sk-ant-test\r\n") => (200, r#"{"data":[]}"#.to_owned()),
        _ => (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#
                .to_owned(),
        ),
    });
    let env = [("DBUS_SESSION_BUS_ADDRESS", "none"), ("ANTHROPIC_BASE_URL", &url)];
    let mut terminal = start(&world, &env);
    terminal.sees("No model yet");
    terminal.sees(LIST);
    terminal.keys("\r");
    terminal.sees("Key for");
    terminal.sees(LIST);
    terminal.keys("anthropic");
    terminal.keys("\r");
    terminal.sees("Key for Anthropic: ");
    // A key is tried before it is saved.
    terminal.keys("sk-ant-wrong\r");
    terminal.sees("Anthropic refuses this key (invalid x-api-key); an empty line cancels");
    terminal.sees("Key for Anthropic: ");
    terminal.keys("sk-ant-test\r");
    terminal.sees("saved the key for Anthropic");
    terminal.sees(QUESTION);
    terminal.sees(LIST);
    terminal.keys("\r");
    terminal.sees("attache is the default now");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    let (status, text) = terminal.end();
    assert!(status.success() && !text.contains("sk-ant-test"), "{text}");
}

#[test]
fn a_model_server_that_was_just_started_is_found() {
    let world = World::new();
    // It does not answer yet.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut terminal = start(&world, &[("VLLM_BASE_URL", &url)]);
    terminal.sees("No model yet");
    terminal.sees(LIST);
    terminal.keys(DOWN);
    terminal.keys("\r");
    terminal.sees("then press Enter");
    let models = r#"{"data":[{"id":"tiny","owned_by":"vllm","max_model_len":32768}]}"#;
    serve(listener, |head| {
        if head.starts_with("GET /v1/models") { (200, models.to_owned()) } else { (404, String::new()) }
    });
    terminal.keys("\r");
    terminal.sees(QUESTION);
    terminal.sees("a model server on this machine");
    terminal.sees(LIST);
    terminal.keys("\r");
    terminal.sees("/help shows");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
}

#[test]
fn the_demo_is_one_of_the_choices_and_esc_leaves() {
    let world = World::new();
    fs::create_dir_all(world.dir.join("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", world.dir.join("bin/sh")).unwrap();
    let mut terminal = start(&world, &[]);
    terminal.sees(LIST);
    terminal.keys("demo");
    terminal.keys("\r");
    terminal.sees("Ctrl-D leaves it");
    terminal.keys("\x03\x03");
    terminal.keys("\x03");
    terminal.end();
    let mut terminal = start(&world, &[]);
    terminal.sees(LIST);
    terminal.keys("\x1b");
    let (status, text) = terminal.end();
    assert!(status.success() && !text.contains("/help shows"), "{text}");
    assert!(!settings(&world).contains("default_agent"));
}

/// An agent that wants a login, which its own program does.
#[test]
fn a_login_that_a_session_needs_is_offered_before_it() {
    // shows AUTH-02
    let world = World::new();
    let hello = r#"{"protocolVersion":1,"authMethods":[{"id":"browser","name":"With a browser"},{"id":"own","name":"In the terminal","type":"terminal","args":["login"]}]}"#;
    let before = world.write(
        "before",
        &format!("on initialize\n  reply {hello}\non session/new\n  fail -32000 who are you?\n"),
    );
    let after = world.write("after", &format!("on initialize\n  reply {hello}\n"));
    let done = world.path("logged-in");
    let (agent, done) = (test_agent(), done.display().to_string());
    let program = world.write(
        "bin/mine",
        &format!(
            "#!/bin/sh\nif [ \"$1\" = login ]; then echo welcome; touch '{done}'; exit; fi\n\
             if [ -e '{done}' ]; then exec '{agent}' '{after}'; fi\nexec '{agent}' '{before}'\n",
            agent = agent.display(),
            before = before.display(),
            after = after.display(),
        ),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    world.settings(&format!("[agents.mine]\nargv = [{program:?}]\n"));
    // Left without a login, the reason stays.
    let mut terminal = Terminal::start(&world, &["mine"], &[]);
    terminal.sees("mine requires a login.");
    terminal.sees(LIST);
    terminal.keys("\x1b");
    let (status, text) = terminal.end();
    assert!(!status.success() && text.contains("attache auth login mine"), "{text}");
    let mut terminal = Terminal::start(&world, &["mine"], &[]);
    terminal.sees("With a browser");
    terminal.sees(LIST);
    terminal.keys("terminal");
    terminal.keys("\r");
    terminal.sees("welcome");
    terminal.sees("/help shows");
    terminal.keys("hello\r");
    terminal.sees("hello");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
}

#[test]
fn the_list_of_a_chat_has_the_conversations_with_all_agents() {
    let world = World::new();
    let hello = r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}"#;
    world.named_agent(
        "one",
        &format!("on initialize\n  reply {hello}\non session/load\n  say welcome back\n  reply {{}}\n"),
    );
    world.named_agent("two", "");
    let mut terminal = Terminal::start(&world, &["one"], &[]);
    terminal.sees("/help shows");
    terminal.keys("the first question\r");
    // The agent says it again.
    terminal.sees("the first question");
    terminal.sees("the first question");
    terminal.keys(CTRL_D);
    terminal.sees("resume this conversation");
    assert!(terminal.end().0.success());
    let mut terminal = Terminal::start(&world, &["two"], &[]);
    terminal.sees("/help shows");
    terminal.keys("/resume\r");
    terminal.sees("Resume");
    terminal.sees("the first question");
    terminal.sees(LIST);
    terminal.keys("\r");
    // The other agent takes over in a chat of its own.
    terminal.sees("starting one");
    terminal.sees("welcome back");
    terminal.keys(CTRL_D);
    assert!(terminal.end().0.success());
}
