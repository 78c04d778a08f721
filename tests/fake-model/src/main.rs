//! A model server for tests: `fake-model [--log FILE]`.
//!
//! It listens on a free loopback port, prints its address on standard output and serves until its standard input ends.
//! It speaks the chat completions and responses APIs of OpenAI, the messages API of Anthropic and the generateContent
//! API of Gemini, with and without streaming. What it answers is decided by markers in the user's text, see `script`;
//! what it was asked goes to the log, one JSON object per line, see `log`.
//!
//! Read `main`, `serve` (one connection), `talk` (what a request means, whichever API it came by), `script` (what the
//! model does), then the four APIs in `api`.

mod api;
mod http;
mod log;
mod script;
mod serve;
mod talk;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;

use log::Log;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fake-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let log = match &args[..] {
        [] => Log::none(),
        [flag, file] if flag == "--log" => Log::to(file).map_err(|error| format!("{file}: {error}"))?,
        _ => return Err("usage: fake-model [--log FILE]".to_owned()),
    };
    let log = Arc::new(log);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{address}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())?;

    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || serve::connection(stream, &log));
        }
    });
    // Whoever started this program holds the other end: it can end in any way and nothing is left.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}
