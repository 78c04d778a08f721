//! A registry on this machine: a small HTTP server, and archives to put into it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// What was asked: the path, and the headers in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

#[derive(Default)]
struct Shelf {
    files: HashMap<String, (u16, Vec<u8>)>,
    /// Answers that end early, once, after so many bytes.
    cut: HashMap<String, usize>,
    asked: Vec<Asked>,
    over: bool,
}

pub(crate) struct Server {
    pub(crate) address: String,
    shelf: Arc<Mutex<Shelf>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let shared = shelf.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.lock().unwrap().over {
                    return;
                }
                let shelf = shared.clone();
                thread::spawn(move || answer(stream, &shelf));
            }
        });
        Server { address, shelf, thread: Some(thread) }
    }

    /// The address of a file.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(crate) fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.shelf.lock().unwrap().files.insert(path.to_owned(), (200, content.into()));
    }

    /// The next answer ends after so many bytes.
    pub(crate) fn cut(&self, path: &str, bytes: usize) {
        self.shelf.lock().unwrap().cut.insert(path.to_owned(), bytes);
    }

    /// From now on this is the answer.
    pub(crate) fn fail(&self, path: &str, status: u16) {
        self.shelf.lock().unwrap().files.insert(path.to_owned(), (status, Vec::new()));
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shelf.lock().unwrap().asked.clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }

    /// Offers these agents at `/registry.json`.
    pub(crate) fn agents(&self, agents: &[Value]) {
        self.put("/registry.json", json!({ "version": "1.0.0", "agents": agents }).to_string());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shelf.lock().unwrap().over = true;
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, shelf: &Mutex<Shelf>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or_default() == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    let found = {
        let mut shelf = shelf.lock().unwrap();
        shelf.asked.push(Asked { path: path.clone(), headers: headers.clone() });
        (shelf.files.get(&path).cloned(), shelf.cut.remove(&path))
    };
    let (found, cut) = found;
    let (mut status, mut body) = found.unwrap_or((404, b"not here".to_vec()));
    let tag = format!("\"{}\"", sha256(&body));
    if status == 200 && headers.get("if-none-match") == Some(&tag) {
        (status, body) = (304, Vec::new());
    }
    let whole = body.len();
    let mut range = String::new();
    let from =
        headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    if let (200, Some(from)) = (status, from)
        && headers.get("if-range") == Some(&tag)
    {
        (status, body) = (206, body.split_off(from));
        range = format!("Content-Range: bytes {from}-{}/{whole}\r\n", whole - 1);
    }
    let head = format!(
        "HTTP/1.1 {status} x\r\n{range}ETag: {tag}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    if let Some(cut) = cut {
        body.truncate(cut);
    }
    // In pieces, so that there is something to show.
    for piece in body.chunks(64 << 10) {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names and contents.
pub(crate) type Files<'a> = &'a [(&'a str, &'a [u8])];

/// A tar archive; all of it are programs.
pub(crate) fn tar(files: Files<'_>) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in files {
        let mut block = [0_u8; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000755");
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = b'0';
        block[257..263].copy_from_slice(b"ustar\0");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(block);
        archive.extend(*content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What registries call this machine.
pub(crate) fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// An agent that comes as an archive.
pub(crate) fn binary(id: &str, version: &str, archive: &str, sha256: Option<&str>) -> Value {
    let mut target = json!({ "archive": archive, "cmd": "./bin/agent", "args": ["--acp"] });
    if let Some(sha256) = sha256 {
        target["sha256"] = json!(sha256);
    }
    agent(id, version, json!({ "binary": { platform(): target } }))
}

pub(crate) fn agent(id: &str, version: &str, distribution: Value) -> Value {
    json!({
        "id": id, "name": format!("The {id}"), "version": version, "description": "answers questions",
        "authors": ["Somebody"], "license": "MIT", "distribution": distribution,
    })
}
