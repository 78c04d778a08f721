//! Confined commands that reach the network through the proxy, and in no other way.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use attache_host::proxy::{Destination, Options, Proxy};
use attache_host::sandbox::{Backend, Confinement, Network};

use crate::kit::Scratch;
use crate::sandbox_kit::{Outcome, perl, shell, with_namespaces};

/// Serves the files of a directory, one request for each connection.
fn file_server(root: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(&stream);
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/").to_owned();
                while reader.read_line(&mut line).is_ok_and(|count| count > 2) {}
                let (status, body) = match std::fs::read(root.join(path.trim_start_matches('/'))) {
                    Ok(body) => ("200 OK", body),
                    Err(_) => ("404 Not Found", Vec::new()),
                };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = (&stream).write_all(&[head.into_bytes(), body].concat());
            });
        }
    });
    port
}

/// A proxy on a runtime of its own, which allows one port.
struct Rig {
    proxy: Proxy,
    asked: Arc<Mutex<Vec<Destination>>>,
    runtime: tokio::runtime::Runtime,
    scratch: Scratch,
    port: u16,
}

impl Rig {
    fn new() -> Rig {
        let scratch = Scratch::new();
        scratch.file("www/hello", "hello from outside\n");
        let port = file_server(scratch.join("www"));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let asked: Arc<Mutex<Vec<Destination>>> = Arc::default();
        let asks = asked.clone();
        let proxy = runtime.block_on(async {
            Proxy::start(Options::default(), move |destination| {
                let answer = destination.port == port;
                asks.lock().unwrap().push(destination);
                async move { answer }
            })
        });
        scratch.dir("p");
        Rig { proxy: proxy.unwrap(), asked, runtime, scratch, port }
    }

    fn confinement(&self) -> Confinement {
        let network = Network::Proxy(self.proxy.socket().to_owned());
        Confinement { network, ..Confinement::writable([self.scratch.join("p")]) }
    }

    fn shell(&self, backend: Backend, script: &str) -> Outcome {
        shell(backend, &self.confinement(), &self.scratch.join("p"), script)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // The proxy is dropped after this, within its runtime.
        let _entered = self.runtime.enter();
    }
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn curl_reaches_what_is_allowed_by_every_protocol() {
    if !has("curl") {
        return;
    }
    for backend in with_namespaces() {
        let rig = Rig::new();
        let url = format!("http://localhost:{}/hello", rig.port);
        for flags in [
            "",
            "--proxytunnel",
            "--proxy $ALL_PROXY",
            "--proxy socks5://${ALL_PROXY#*//}",
            "--http1.0",
            "--retry 0 -H Host:evil",
        ] {
            let outcome = rig.shell(backend, &format!("curl -sS {flags} {url} {url}"));
            outcome.prints("hello from outside\nhello from outside");
        }
        let outcome = rig.shell(backend, "curl -sS -o /dev/null -w '%{http_code}' http://localhost:9/; curl -sS https://localhost:9/; curl -sS --proxy $ALL_PROXY http://localhost:9/");
        outcome.shows("403");
        assert!(outcome.stderr.contains("403") && outcome.stderr.contains("(2)"), "{outcome:?}");
        // The same in a view that shows nothing but the project.
        let mut confinement = Confinement::read_only([rig.scratch.join("p")]);
        confinement.network = rig.confinement().network;
        shell(backend, &confinement, &rig.scratch.join("p"), &format!("curl -sS {url}"))
            .prints("hello from outside");
        assert!(rig.asked.lock().unwrap().iter().all(|destination| destination.host != "evil"));
    }
}

#[test]
fn other_programs_find_the_proxy_too() {
    for backend in with_namespaces() {
        let rig = Rig::new();
        let url = format!("http://localhost:{}/hello", rig.port);
        if has("python3") {
            let script = format!(
                "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{url}\").read().decode(), end=\"\")'"
            );
            rig.shell(backend, &script).prints("hello from outside");
        }
        if has("wget") {
            rig.shell(backend, &format!("wget -qO- {url}")).prints("hello from outside");
        }
        if has("git") {
            let www = rig.scratch.join("www");
            let run = |directory: &Path, arguments: &[&str]| {
                let output = Command::new("git").args(arguments).current_dir(directory).output().unwrap();
                assert!(output.status.success(), "{output:?}");
            };
            run(&www, &["init", "-q", "work"]);
            let identity = ["-c", "user.name=u", "-c", "user.email=u@example.org"];
            run(
                &www.join("work"),
                &[&identity[..], &["commit", "-q", "--allow-empty", "-m", "from outside"]].concat(),
            );
            run(&www, &["clone", "-q", "--bare", "work", "repository"]);
            run(&www.join("repository"), &["update-server-info"]);
            let outcome = rig.shell(
                backend,
                &format!(
                    "git clone -q http://localhost:{}/repository copy && git -C copy log --format=%s",
                    rig.port
                ),
            );
            outcome.prints("from outside");
            assert!(rig.scratch.join("p/copy/.git").is_dir());
        }
    }
}

#[test]
fn there_is_no_other_way_out() {
    for backend in with_namespaces() {
        let rig = Rig::new();
        let socket = rig.proxy.socket().to_owned();
        let script = format!(
            "use Socket; my ($s, $t);
             for my $port ({port}, 53, 80) {{ for my $ip ('127.0.0.1', '1.1.1.1', '169.254.169.254') {{
                 socket($s, AF_INET, SOCK_STREAM, 0) or die; print \"reached $ip $port\\n\" if connect($s, pack_sockaddr_in($port, inet_aton($ip)));
             }} }}
             print \"unix\\n\" if socket($s, AF_UNIX, SOCK_STREAM, 0);
             print \"udp\\n\" if socket($s, AF_INET, SOCK_DGRAM, 0);
             print \"raw\\n\" if socket($s, AF_INET, SOCK_RAW, 1);
             print \"mptcp\\n\" if socket($s, AF_INET, SOCK_STREAM, 262);
             print \"pair\\n\" if socketpair($s, $t, AF_UNIX, SOCK_DGRAM, 0);
             print \"found\\n\" if -e '{socket}';
             # The loopback interface is there for the command's own servers.
             socket(my $server, AF_INET, SOCK_STREAM, 0); bind($server, pack_sockaddr_in(0, INADDR_LOOPBACK)) or die $!; listen($server, 1);
             my ($port) = unpack_sockaddr_in(getsockname $server);
             socket($s, AF_INET, SOCK_STREAM, 0); print 'own ', connect($s, pack_sockaddr_in($port, INADDR_LOOPBACK)) ? 1 : 0;",
            port = rig.port,
            socket = socket.display()
        );
        perl(backend, &rig.confinement(), &rig.scratch.join("p"), &script).prints("own 1");
        assert!(rig.asked.lock().unwrap().is_empty());
    }
}

#[test]
fn a_command_that_ends_takes_the_bridge_with_it() {
    for backend in with_namespaces() {
        let rig = Rig::new();
        assert_eq!(rig.shell(backend, "exit 4").code, 4);
        // A proxy that is gone is an error, not a way around it.
        let confinement =
            Confinement { network: Network::Proxy("/no/such/socket".into()), ..rig.confinement() };
        let outcome = shell(backend, &confinement, &rig.scratch.join("p"), "echo ran");
        outcome.prints("");
        assert!(outcome.stderr.contains("cannot find the socket of the proxy"), "{outcome:?}");
    }
}

#[test]
fn many_connections_at_once_are_served() {
    if !has("curl") {
        return;
    }
    for backend in with_namespaces() {
        let rig = Rig::new();
        let script = format!(
            "for i in $(seq 40); do curl -sS http://localhost:{}/hello > out.$i & done; wait; cat out.* | sort | uniq -c",
            rig.port
        );
        let outcome = rig.shell(backend, &script);
        assert_eq!(outcome.stdout.trim(), "40 hello from outside", "{outcome:?}");
        assert_eq!(rig.asked.lock().unwrap().len(), 1);
    }
}
