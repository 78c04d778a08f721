//! `bench-driver [--timeout SECONDS] TEST [ARGS] -- AGENT COMMAND`: one measurement, one line of
//! JSON.

use bench_driver::agent::Subject;
use bench_driver::net::Transport;
use bench_driver::{held, requests, streams};
use bench_probe::Report;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

const USAGE: &str =
    "usage: bench-driver [--timeout SECONDS] TEST [ARGS] -- AGENT COMMAND (BENCH_PROTOCOL=2: in version 2)
  startup TIMES            start to the answer to initialize
  rtt N                    session/new, one at a time
  turns N                  empty turns, one at a time
  large LEN N              prompts of LEN characters, one at a time; version 1
  pipe N WINDOW            session/new, WINDOW in flight
  stream N LEN [VERB]      N chunks of LEN characters; VERB stream or streamy
  slowread N LEN SECONDS   the same, with a reader that stalls
  call N VERB              requests of the agent; VERB read or perm
  hol N [VERB]             another request during a burst of N updates
  sessions N               memory with N open sessions
  idle SECONDS             an agent at rest
  conns N                  memory with N open connections; servers only
  paced N RATE SECONDS     N connections with RATE updates a second each: how late they arrive; WebSocket only
  loopback N               no agent: round trips of a line over loopback TCP between two threads
  ws-TEST, http-TEST       the same over WebSocket or Streamable HTTP: AGENT COMMAND is a server that prints its port
  wss-TEST, https-TEST     the same with TLS
  spin NICENESS            no measurement: keep one core busy until stdin ends
  ahead                    no measurement: run the command with the highest priority";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let mut timeout = 300;
    if args.next_if(|word| word == "--timeout").is_some() {
        timeout = args.next().and_then(|word| word.parse().ok()).unwrap_or(timeout);
    }
    let mut test: Vec<String> = args.by_ref().take_while(|word| word != "--").collect();
    let protocol = bench_probe::protocol();
    let mut transport = Transport::Stdio;
    if let Some(name) = test.first_mut() {
        for (prefix, meant) in [
            ("ws-", Transport::WebSocket),
            ("wss-", Transport::SecureWebSocket),
            ("http-", Transport::Http),
            ("https-", Transport::SecureHttp),
        ] {
            if let Some(rest) = name.strip_prefix(prefix) {
                (transport, *name) = (meant, rest.to_owned());
                break;
            }
        }
    }
    let subject =
        Subject { command: args.collect(), transport, protocol, timeout: Duration::from_secs(timeout) };
    if test.first().is_some_and(|word| word == "spin") {
        return spin(test.get(1).and_then(|word| word.parse().ok()).unwrap_or(0));
    }
    let wants_agent = !test.is_empty() && !subject.command.is_empty();
    if wants_agent && test[0] == "ahead" {
        bench_probe::proc::go_ahead();
        let error = Command::new(&subject.command[0]).args(&subject.command[1..]).exec();
        println!("{}", Report::failure("ahead", &error.to_string()));
        return ExitCode::from(2);
    }
    if !wants_agent {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    }
    match run(&subject, &test) {
        Ok(report) => {
            println!("{}", report.finish());
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}", Report::failure(&test[0], &error.to_string()));
            ExitCode::from(2)
        }
    }
}

fn run(subject: &Subject, test: &[String]) -> io::Result<Report> {
    let word = |i: usize, default| test.get(i).map_or(default, String::as_str);
    let number = |i: usize, default| test.get(i).and_then(|word| word.parse().ok()).unwrap_or(default);
    match test[0].as_str() {
        "startup" => requests::startup(subject, number(1, 20)),
        "rtt" => requests::round_trips(subject, number(1, 5_000)),
        "turns" => requests::turns(subject, number(1, 5_000)),
        "large" => requests::large_prompts(subject, number(1, 10 << 20), number(2, 15)),
        "pipe" => requests::in_flight(subject, number(1, 30_000), number(2, 64)),
        "call" => requests::calls(subject, number(1, 10_000), word(2, "read")),
        "sessions" => requests::sessions(subject, number(1, 1_000)),
        "conns" => held::connections(subject, number(1, 1_000)),
        "paced" => held::paced(subject, number(1, 1_000), number(2, 10), number(3, 10)),
        "loopback" => requests::loopback(number(1, 5_000)),
        "idle" => requests::idle(subject, number(1, 5)),
        "stream" => streams::stream(subject, number(1, 200_000), number(2, 40), word(3, "stream")),
        "slowread" => streams::stalled(subject, number(1, 200_000), number(2, 40), number(3, 3)),
        "hol" => streams::during_burst(subject, number(1, 200_000), word(2, "stream")),
        other => Err(io::Error::other(format!("unknown test {other}"))),
    }
}

/// Other work for a core. It ends with its parent process, because its stdin does.
fn spin(niceness: i32) -> ExitCode {
    bench_probe::proc::give_way(niceness);
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    ExitCode::SUCCESS
}
