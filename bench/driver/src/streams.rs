//! Measurements of an agent that talks: updates, a reader that stalls, a question during a burst.

use crate::agent::{Agent, Prompted, Subject, new_session};
use crate::line::{Head, Hint, is_update, sequence};
use bench_probe::{Report, proc};
use std::io;
use std::time::{Duration, Instant};

/// What came before the answer to a prompt.
#[derive(Default)]
struct Drained {
    updates: usize,
    bytes: usize,
    out_of_order: usize,
    first: Option<Duration>,
}

fn drain(agent: &mut Agent, mut prompt: Prompted, start: Instant) -> io::Result<Drained> {
    let mut seen = Drained::default();
    let (mut method, mut text) = (Hint::default(), Hint::default());
    loop {
        agent.receive()?;
        // The states and the user's message of version 2 have no number.
        if is_update(&agent.line, &mut method)
            && let Some(number) = sequence(&agent.line, &mut text)
        {
            seen.first.get_or_insert_with(|| start.elapsed());
            seen.out_of_order += usize::from(number != seen.updates as u64);
            seen.updates += 1;
            seen.bytes += agent.line.len();
        } else if prompt.ends(agent)? {
            return Ok(seen);
        }
    }
}

/// One prompt, `n` chunks of `len` characters; `verb` is `stream` or `streamy`.
pub fn stream(subject: &Subject, n: usize, len: usize, verb: &str) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    let pid = agent.pid();
    let (cpu, switches, start) = (proc::cpu(pid), proc::switches(pid), Instant::now());
    let prompt = agent.prompt(&session, &format!("{verb} {n} {len}"))?;
    let seen = drain(&mut agent, prompt, start)?;
    let secs = start.elapsed().as_secs_f64();
    let report = Report::new("stream")
        .number("n", seen.updates)
        .number("len", len)
        .number("order_errors", seen.out_of_order + n.abs_diff(seen.updates))
        .fixed("secs", secs, 4)
        .fixed("msgs_per_s", seen.updates as f64 / secs, 0)
        .fixed("mb_per_s", seen.bytes as f64 / 1e6 / secs, 1)
        .fixed("first_ms", seen.first.unwrap_or_default().as_secs_f64() * 1e3, 3)
        .fixed("cpu_us_per", (proc::cpu(pid) - cpu) * 1e6 / n as f64, 3)
        .fixed("ctxsw_per", (proc::switches(pid) - switches) as f64 / n as f64, 3);
    Ok(agent.memory(report))
}

/// The same with a reader that stalls: measures the memory that the agent holds.
pub fn stalled(subject: &Subject, n: usize, len: usize, stall: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    let pid = agent.pid();
    let before = proc::rss(pid);
    let start = Instant::now();
    let prompt = agent.prompt(&session, &format!("stream {n} {len}"))?;
    std::thread::sleep(Duration::from_secs(stall as u64));
    let held = proc::rss(pid);
    let seen = drain(&mut agent, prompt, start)?;
    let report = Report::new("slowread")
        .number("n", seen.updates)
        .number("stall_s", stall)
        .number("rss_before_kb", before as usize)
        .number("rss_stalled_kb", held as usize)
        .number("order_errors", seen.out_of_order + n.abs_diff(seen.updates));
    Ok(agent.memory(report))
}

/// After the first of `n` updates another session is opened: how long does its answer take?
pub fn during_burst(subject: &Subject, n: usize, verb: &str) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    let start = Instant::now();
    let mut prompt = agent.prompt(&session, &format!("{verb} {n} 40"))?;
    let (mut method, mut text) = (Hint::default(), Hint::default());
    agent.receive()?;
    while !is_update(&agent.line, &mut method) || sequence(&agent.line, &mut text).is_none() {
        if prompt.ends(&mut agent)? {
            return Err(io::Error::other("the turn ended without a single update"));
        }
        agent.receive()?;
    }
    let first = start.elapsed();
    let other = agent.take_id();
    let asked = Instant::now();
    agent.send(new_session(other).as_bytes())?;
    let other = other.to_string();
    let (mut updates, mut before, mut answered, mut ended) = (1, 1, None, None);
    while answered.is_none() || ended.is_none() {
        agent.receive()?;
        if is_update(&agent.line, &mut method) && sequence(&agent.line, &mut text).is_some() {
            updates += 1;
            before += usize::from(answered.is_none());
            continue;
        }
        let head = Head::of(&agent.line);
        if head.is_error {
            return Err(agent.refused());
        }
        if head.answers(other.as_bytes()) {
            answered = Some(asked.elapsed());
        } else if prompt.ends(&mut agent)? {
            ended = Some(start.elapsed());
        }
    }
    let report = Report::new("hol")
        .number("n", updates)
        .fixed("first_update_ms", first.as_secs_f64() * 1e3, 3)
        .fixed("other_request_ms", answered.unwrap_or_default().as_secs_f64() * 1e3, 3)
        .number("updates_before_it", before)
        .fixed("turn_ms", ended.unwrap_or_default().as_secs_f64() * 1e3, 3)
        .number("order_errors", n.abs_diff(updates));
    Ok(agent.memory(report))
}
