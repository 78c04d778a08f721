//! The bench client on attache. `--multi-thread` runs it on the runtime that a bare
//! `#[tokio::main]` gives.

use attache::client::{AgentHandle, Client, Event, Protocol, RequestContext};
use attache::wire::v1::{PermissionOptionKind, ReadTextFileRequest};
use attache::{Command, Error, Link, Result};
use bench_probe::{Job, Meter, Report, Seen, proc};
use std::time::Instant;

fn main() {
    let outcome = Job::from_args().and_then(|job| start(&job).map_err(|error| error.to_string()));
    match outcome {
        Ok(line) => println!("{line}"),
        Err(why) => println!("{}", Report::failure("client", &why)),
    }
}

fn start(job: &Job) -> Result<String> {
    let mut runtime = match bench_probe::multi_thread() {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().build().map_err(Error::internal)?.block_on(run(job))
}

async fn run(job: &Job) -> Result<String> {
    let command = Command::new(&job.agent[0]).args(&job.agent[1..]);
    let agent = Client::new()
        .info("bench", env!("CARGO_PKG_VERSION"))
        .protocol(if bench_probe::protocol() == 2 { Protocol::V2 } else { Protocol::V1 })
        .read_files(async |_: RequestContext, _: ReadTextFileRequest| Ok("hello from the file".to_owned()))
        .connect(Link::command(command)?)
        .await?;
    let report = match job.mode.as_str() {
        "rtt" => round_trips(job, &agent).await,
        "turns" => turns(job, &agent).await,
        _ => turn(job, &agent).await,
    };
    agent.shutdown().await;
    Ok(report?.finish())
}

async fn round_trips(job: &Job, agent: &AgentHandle) -> Result<Report> {
    let mut times = Vec::with_capacity(job.n());
    let meter = Meter::start();
    for _ in 0..job.n() {
        let start = Instant::now();
        agent.new_session("/tmp").await?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(meter.stop(job, &Seen::default()).times(&mut times))
}

async fn turns(job: &Job, agent: &AgentHandle) -> Result<Report> {
    let mut session = agent.new_session("/tmp").await?;
    let mut times = Vec::with_capacity(job.n());
    let meter = Meter::start();
    for _ in 0..job.n() {
        let start = Instant::now();
        let mut turn = session.prompt("nothing").await?;
        while turn.next().await?.is_some() {}
        drop(turn);
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(meter.stop(job, &Seen::default()).times(&mut times))
}

async fn turn(job: &Job, agent: &AgentHandle) -> Result<Report> {
    let me = std::process::id();
    let before = proc::rss(me);
    let opening = Instant::now();
    let mut open = Vec::new();
    for _ in 0..job.sessions() {
        open.push(agent.new_session("/tmp").await?);
    }
    let each = opening.elapsed().as_secs_f64() * 1e6 / open.len() as f64;
    let held = proc::rss(me);
    let middle = open.len() / 2;
    let jitter = job.mode == "jitter";
    let seen = Seen::default();
    let meter = Meter::start();
    let mut turn = open[middle].prompt(job.prompt()).await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Text(text) => {
                if jitter {
                    tokio::time::sleep(Job::jitter(&text)).await;
                }
                seen.text(&text);
            }
            Event::Permission(ask) => ask.choose_kind(PermissionOptionKind::AllowOnce),
            _ => {}
        }
    }
    let handled = seen.handled();
    Ok(meter
        .stop(job, &seen)
        .number("handled_at_response", handled)
        .number("sessions", job.sessions())
        .fixed("open_us_per", each, 1)
        .number("rss_1_kb", before as usize)
        .number("rss_s_kb", held as usize))
}
