//! The settings of other programs in the guide "Remote agents": nginx, Caddy, systemd and a
//! container.
//!
//! nginx, Caddy and systemd are used where they are installed; the programs that `ATTACHE_REQUIRE`
//! names must be, as in continuous integration. The container file is not built: its instructions
//! are checked, and its command is run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use attache_http::server::Tokens;

use crate::world::{Running, World, eventually};

const ECHO: &str = "on session/prompt\n  say [$prompt]\n  done end_turn\n";

/// The indented block of the guide that follows a line.
fn block(title: &str) -> String {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/remote.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut lines = guide.lines().skip_while(|line| *line != title).skip(2);
    let lines: Vec<&str> = lines
        .by_ref()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| line.get(4..).unwrap_or_default())
        .collect();
    assert!(!lines.is_empty(), "the guide has no block after {title:?}");
    lines.join("\n").trim_end().to_owned()
}

/// A server with a token, started with the words of the guide, and its address.
struct Served {
    world: World,
    token: String,
    running: Running,
    address: String,
}

impl Served {
    /// Runs a command of the guide. Its first word is the program, and `tokens` the file at its
    /// end.
    fn start(command: &str, tokens: &str) -> Served {
        let world = World::new().agent(ECHO);
        world.named_agent("gemini", ECHO);
        let (token, entry) = Tokens::generate("guide").unwrap();
        let file = world.write("tokens", &entry).display().to_string();
        let mut words: Vec<&str> = command.split(' ').skip(1).collect();
        assert!(words.contains(&tokens), "{command}");
        words.iter_mut().filter(|word| **word == tokens).for_each(|word| *word = &file);
        // The port of the guide may be taken here.
        words.iter_mut().filter(|word| **word == "0.0.0.0:4848").for_each(|word| *word = "0.0.0.0:0");
        if !words.contains(&"--listen") {
            words.splice(1..1, ["--listen", "127.0.0.1:0"]);
        }
        words.splice(0..0, ["--format", "quiet"]);
        let mut running = world.start(&words);
        let url = running.next();
        let address =
            url.trim_start_matches("http://").trim_end_matches("/acp").replace("0.0.0.0", "127.0.0.1");
        Served { world, token, running, address }
    }

    /// Uses the agent by both transports at another address.
    fn check(&self, port: u16) {
        let url = format!("http://127.0.0.1:{port}/acp");
        let run = |words: &[&str]| {
            let mut command = self.world.command(words);
            let output = command.env("ATTACHE_TOKEN", &self.token).stdin(Stdio::null()).output().unwrap();
            (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        assert_eq!(run(&["--format", "quiet", "--agent", &url, "exec", "hi"]), (true, "[hi]\n".to_owned()));
        let (is_fine, report) = run(&["doctor", &url]);
        let has = |text: &str| report.contains(text);
        assert!(
            is_fine && has("the server has it") && has("the server has POST and server-sent events"),
            "{report}"
        );
    }

    fn stop(self) {
        self.running.signal("TERM");
        self.running.end().ok();
    }
}

/// The status that a server gives to a request with a name, without a token.
fn status(port: u16, host: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET /acp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[expect(clippy::print_stderr, reason = "the run names what it leaves out")]
fn is_installed(program: &str) -> bool {
    let found =
        ["/usr/sbin", "/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !found {
        let required = std::env::var("ATTACHE_REQUIRE").unwrap_or_default();
        assert!(!required.split(' ').any(|required| required == program), "{program} is not installed");
        eprintln!("{program} is not installed: its settings in the guide are not run");
    }
    found
}

/// A program of the guide. Dropping it ends it.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Starts a proxy on a free port. Another process may take the port first, so there are several
/// attempts.
fn proxy(start: impl Fn(u16) -> Command) -> (Proxy, u16) {
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Proxy(start(port).stdin(Stdio::null()).spawn().unwrap());
        let mut is_up = false;
        eventually("the proxy listens or ends", || {
            is_up = TcpStream::connect(("127.0.0.1", port)).is_ok();
            is_up || process.0.try_wait().unwrap().is_some()
        });
        if is_up && process.0.try_wait().unwrap().is_none() {
            return (process, port);
        }
    }
    panic!("the proxy does not start");
}

fn served() -> Served {
    let guide = block(
        "`Host` header that arrives must be a name of the server: `--host` adds those that the proxy passes on.",
    );
    Served::start(&guide, "tokens")
}

#[test]
fn behind_nginx() {
    if !is_installed("nginx") {
        return;
    }
    let served = served();
    let location = block("nginx:");
    assert!(location.contains("127.0.0.1:4848"), "{location}");
    let location = location.replace("127.0.0.1:4848", &served.address);
    let dir = served.world.path("nginx");
    std::fs::create_dir(&dir).unwrap();
    let (nginx, port) = proxy(|port| {
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|kind| format!("{kind}_temp_path {kind};\n"))
            .collect();
        let settings = format!(
            "daemon off;\npid nginx.pid;\nerror_log error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
             server {{\nlisten 127.0.0.1:{port};\nserver_name agents.example.com;\n{location}\n}}\n}}\n"
        );
        std::fs::write(dir.join("nginx.conf"), settings).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(&dir).args(["-c", "nginx.conf", "-e", "error.log"]);
        command.env("PATH", "/usr/sbin:/usr/bin:/usr/local/bin");
        command
    });
    served.check(port);
    assert_eq!(status(port, "agents.example.com"), "401");
    assert_eq!(status(port, "evil.example.com"), "403");
    drop(nginx);
    served.stop();
}

#[test]
fn behind_caddy() {
    if !is_installed("caddy") {
        return;
    }
    let served = served();
    let site = block("Caddy:");
    let (caddy, port) = proxy(|port| {
        // Without the certificate that Caddy would get for a public name.
        let site = site.replace("127.0.0.1:4848", &served.address);
        let names = format!("http://agents.example.com:{port}, http://127.0.0.1:{port} {{");
        let site = site.replacen("agents.example.com {", &names, 1);
        assert!(site.contains(&served.address) && site.contains(&names), "{site}");
        let file = served.world.write("Caddyfile", &format!("{{\nadmin off\nauto_https off\n}}\n{site}\n"));
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file).stderr(Stdio::null());
        command.env("HOME", served.world.path("caddy"));
        command
    });
    served.check(port);
    assert_eq!(status(port, "agents.example.com"), "401");
    drop(caddy);
    served.stop();
}

#[test]
fn as_a_service_of_systemd() {
    let unit = block("A service of systemd:");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let served = Served::start(command, "/etc/attache/tokens");
    served.check(served.address.rsplit(':').next().unwrap().parse().unwrap());
    if is_installed("systemd-analyze") {
        let unit = unit.replace("/usr/local/bin/attache", env!("CARGO_BIN_EXE_attache"));
        let file = served.world.write("attache.service", &unit);
        let verified = Command::new("systemd-analyze").arg("verify").arg(file).output().unwrap();
        let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
        // Other units of the machine are looked at as well.
        assert!(!complaints.lines().any(|line| line.contains("attache.service")), "{complaints}");
    }
    served.stop();
}

#[test]
fn in_a_container() {
    let file = block("A container, with the program built before:");
    let known = ["FROM", "COPY", "RUN", "USER", "WORKDIR", "EXPOSE", "CMD"];
    let instructions: Vec<(&str, &str)> = file.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert!(instructions.iter().all(|(name, _)| known.contains(name)), "{file}");
    let of = |name: &str| instructions.iter().find(|(known, _)| *known == name).unwrap().1;
    // The user that is made is the one that runs, and the program is where the command finds it.
    assert!(of("RUN").ends_with(of("USER")) && of("COPY").ends_with("/bin/attache"));
    let words: Vec<String> = serde_json::from_str(of("CMD")).unwrap();
    let served = Served::start(&words.join(" "), "/run/secrets/tokens");
    served.check(served.address.rsplit(':').next().unwrap().parse().unwrap());
    served.stop();
}
