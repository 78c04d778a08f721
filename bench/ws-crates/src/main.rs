//! `bench-ws-crates [CONNECTIONS [MESSAGES]]`: a server on each WebSocket crate in a process of its
//! own, with its defaults, on one thread. It answers a message `N` with N messages of 40 bytes. The
//! client is raw sockets, the same for all, and the opening handshake is left out. Prints a row for
//! each crate: memory of a held connection after one answer, and messages per second.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

mod servers;

const CRATES: [&str; 5] =
    ["ours", "tokio-tungstenite", "tokio-tungstenite-4k", "tokio-websockets", "fastwebsockets"];
const LEN: usize = 40;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, name] = args.as_slice()
        && word == "serve"
    {
        return servers::run(name);
    }
    let number = |at: usize, default| args.get(at).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (connections, messages) = (number(0, 1_000), number(1, 1_000_000));
    println!("| crate | memory of a held connection | messages of {LEN} bytes | CPU each |");
    println!("|---|---:|---:|---:|");
    for name in CRATES {
        let each = held(name, connections)?;
        let mut runs: Vec<(f64, f64)> = (0..3).map(|_| stream(name, messages)).collect::<io::Result<_>>()?;
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (rate, cpu) = runs[1];
        println!("| {name} | {each:.1} kB | {:.2}M/s | {cpu:.2} us |", rate / 1e6);
    }
    Ok(())
}

/// A server process, which ends with this value.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(name: &str) -> io::Result<Server> {
        let mut child =
            Command::new(std::env::current_exe()?).args(["serve", name]).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut port = String::new();
        BufReader::new(stdout).read_line(&mut port)?;
        Ok(Server { child, port: port.trim().parse().map_err(io::Error::other)? })
    }

    fn proc(&self, file: &str) -> io::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
    }

    fn rss_kb(&self) -> io::Result<f64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        Ok(line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0))
    }

    fn cpu_us(&self) -> io::Result<f64> {
        let stat = self.proc("stat")?;
        let fields: Vec<f64> = stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .split(' ')
            .filter_map(|field| field.parse().ok())
            .collect();
        // The state is no number, so user time is the eleventh of them; a tick is 10 ms.
        Ok((fields[10] + fields[11]) * 10_000.0)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a number as a masked text frame.
fn ask(stream: &mut TcpStream, number: usize) -> io::Result<()> {
    let text = number.to_string();
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    stream.write_all(&frame)
}

fn held(name: &str, connections: usize) -> io::Result<f64> {
    let server = Server::start(name)?;
    let mut all = Vec::new();
    let open = |all: &mut Vec<TcpStream>| -> io::Result<()> {
        let mut stream = server.connect()?;
        ask(&mut stream, 1)?;
        stream.read_exact(&mut [0; LEN + 2])?;
        all.push(stream);
        Ok(())
    };
    open(&mut all)?;
    let before = server.rss_kb()?;
    for _ in 0..connections {
        open(&mut all)?;
    }
    Ok((server.rss_kb()? - before) / connections as f64)
}

/// Messages per second, and CPU of the server for each.
fn stream(name: &str, messages: usize) -> io::Result<(f64, f64)> {
    let server = Server::start(name)?;
    let mut stream = server.connect()?;
    let (cpu, start) = (server.cpu_us()?, Instant::now());
    ask(&mut stream, messages)?;
    let (mut left, mut bytes) = (messages * (LEN + 2), vec![0; 256 << 10]);
    while left > 0 {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left -= count,
        }
    }
    let rate = messages as f64 / start.elapsed().as_secs_f64();
    Ok((rate, (server.cpu_us()? - cpu) / messages as f64))
}
