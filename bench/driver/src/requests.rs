//! Measurements of questions and answers, in both directions, and of an agent at rest.

use crate::agent::{Agent, Subject, new_session, prompt};
use crate::line::Head;
use bench_probe::{Report, percentile, proc};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// From starting the process to the answer to `initialize`.
pub fn startup(subject: &Subject, times: usize) -> io::Result<Report> {
    let (mut wall, mut cpu, mut rss) = (Vec::new(), Vec::new(), 0);
    for _ in 0..times {
        let start = Instant::now();
        let agent = subject.initialized()?;
        wall.push(start.elapsed().as_secs_f64() * 1e3);
        cpu.push(proc::cpu(agent.pid()) * 1e3);
        rss = proc::rss(agent.pid());
    }
    wall.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    Ok(Report::new("startup")
        .number("n", times)
        .fixed("median_ms", percentile(&wall, 50.0), 3)
        .fixed("min_ms", percentile(&wall, 0.0), 3)
        .fixed("cpu_ms", percentile(&cpu, 50.0), 3)
        .number("rss_kb", rss as usize))
}

/// `session/new`, one at a time.
pub fn round_trips(subject: &Subject, n: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    one_at_a_time("rtt", &mut agent, n, |agent| agent.session().map(drop))
}

/// Empty turns, one at a time.
pub fn turns(subject: &Subject, n: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    one_at_a_time("turns", &mut agent, n, |agent| agent.turn(&session, "nothing"))
}

/// Measures `n` calls, after some that are not measured.
fn one_at_a_time(
    test: &str,
    agent: &mut Agent,
    n: usize,
    mut call: impl FnMut(&mut Agent) -> io::Result<()>,
) -> io::Result<Report> {
    for _ in 0..200 {
        call(agent)?;
    }
    let pid = agent.pid();
    let (cpu, switches, start) = (proc::cpu(pid), proc::switches(pid), Instant::now());
    let mut times = Vec::with_capacity(n);
    for _ in 0..n {
        let sent = Instant::now();
        call(agent)?;
        times.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    let secs = start.elapsed().as_secs_f64();
    let report = Report::new(test)
        .number("n", n)
        .times(&mut times)
        .fixed("per_s", n as f64 / secs, 0)
        .fixed("cpu_us_per", (proc::cpu(pid) - cpu) * 1e6 / n as f64, 3)
        .fixed("ctxsw_per", (proc::switches(pid) - switches) as f64 / n as f64, 2);
    Ok(agent.memory(report))
}

/// Prompts of `len` characters in turns in which nothing happens, one at a time.
pub fn large_prompts(subject: &Subject, len: usize, n: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    let text = "x".repeat(len);
    let mut times = Vec::with_capacity(n);
    for _ in 0..n {
        let id = agent.take_id();
        let message = prompt(id, &session, &text);
        let sent = Instant::now();
        agent.send(message.as_bytes())?;
        agent.answer(id)?;
        times.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let report = Report::new("large").number("n", n).fixed("median_ms", percentile(&times, 50.0), 3);
    Ok(agent.memory(report))
}

/// `session/new` with `window` of them in flight; every id must be answered once.
pub fn in_flight(subject: &Subject, n: usize, window: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    for _ in 0..200 {
        agent.session()?;
    }
    let pid = agent.pid();
    let first = agent.take_id();
    let mut answered = vec![false; n];
    let (cpu, start) = (proc::cpu(pid), Instant::now());
    let (mut sent, mut received, mut strange) = (0, 0, 0);
    while received < n {
        let mut batch = String::new();
        while sent < n && sent - received < window {
            batch.push_str(&new_session(first + sent as u64));
            sent += 1;
        }
        if !batch.is_empty() {
            agent.send(batch.as_bytes())?;
        }
        // One line at least, then whatever came with it, so that the window is refilled in batches.
        loop {
            agent.receive()?;
            let head = Head::of(&agent.line);
            let id = head.id.and_then(|id| std::str::from_utf8(id).ok()?.parse::<u64>().ok());
            match id.and_then(|id| answered.get_mut(id.checked_sub(first)? as usize)) {
                Some(seen) if !*seen && head.method.is_none() && !head.is_error => {
                    *seen = true;
                    received += 1;
                }
                _ => strange += 1,
            }
            if received >= n || !agent.has_more() {
                break;
            }
        }
    }
    let secs = start.elapsed().as_secs_f64();
    let report = Report::new("pipe")
        .number("n", n)
        .number("window", window)
        .fixed("per_s", n as f64 / secs, 0)
        .fixed("cpu_us_per", (proc::cpu(pid) - cpu) * 1e6 / n as f64, 3)
        .number("order_errors", strange);
    Ok(agent.memory(report))
}

/// Requests from the agent to its client: `verb` is `read` or `perm`.
pub fn calls(subject: &Subject, n: usize, verb: &str) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let session = agent.session()?;
    let pid = agent.pid();
    let (cpu, switches, start) = (proc::cpu(pid), proc::switches(pid), Instant::now());
    let mut prompt = agent.prompt(&session, &format!("{verb} {n}"))?;
    let (mut asked, mut gaps, mut last) = (0, Vec::with_capacity(n), None::<Instant>);
    let mut answer = Vec::with_capacity(160);
    loop {
        agent.receive()?;
        if prompt.ends(&mut agent)? {
            break;
        }
        let head = Head::of(&agent.line);
        let (Some(method), Some(id)) = (head.method, head.id) else { continue };
        gaps.extend(last.map(|sent| sent.elapsed().as_secs_f64() * 1e6));
        asked += 1;
        answer.clear();
        answer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        answer.extend_from_slice(id);
        answer.extend_from_slice(match method {
            b"session/request_permission" => {
                br#","result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#
            }
            _ => &br#","result":{"content":"hello from the file"}}"#[..],
        });
        answer.push(b'\n');
        last = Some(Instant::now());
        agent.send(&answer)?;
    }
    let secs = start.elapsed().as_secs_f64();
    let report = Report::new("call")
        .number("n", asked)
        .times(&mut gaps)
        .fixed("per_s", asked as f64 / secs, 0)
        .fixed("cpu_us_per", (proc::cpu(pid) - cpu) * 1e6 / n as f64, 3)
        .fixed("ctxsw_per", (proc::switches(pid) - switches) as f64 / n as f64, 2)
        .number("order_errors", n.abs_diff(asked));
    Ok(agent.memory(report))
}

/// What an agent holds with `n` open sessions, and what a small turn costs then.
pub fn sessions(subject: &Subject, n: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    let mut session = agent.session()?;
    let pid = agent.pid();
    let one = proc::rss(pid);
    for _ in 1..n {
        session = agent.session()?;
    }
    let all = proc::rss(pid);
    let mut turns = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        agent.turn(&session, "nothing")?;
        turns.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let report = Report::new("sessions")
        .number("sessions", n)
        .number("rss_1_kb", one as usize)
        .number("rss_s_kb", all as usize)
        .times(&mut turns);
    Ok(agent.memory(report))
}

/// What an agent costs that has nothing to do.
pub fn idle(subject: &Subject, secs: usize) -> io::Result<Report> {
    let mut agent = subject.initialized()?;
    agent.session()?;
    let pid = agent.pid();
    // Let it finish what it does after an answer.
    std::thread::sleep(Duration::from_millis(500));
    let (cpu, switches) = (proc::cpu(pid), proc::switches(pid));
    std::thread::sleep(Duration::from_secs(secs as u64));
    let report = Report::new("idle")
        .number("secs", secs)
        .fixed("cpu_ms", (proc::cpu(pid) - cpu) * 1e3, 3)
        .number("ctxsw", (proc::switches(pid) - switches) as usize)
        .number("threads", proc::status(pid, "Threads") as usize);
    Ok(agent.memory(report))
}

/// Round trips of a line like `session/new` over loopback TCP, between this thread and another one
/// that sends it back: what a socket costs.
pub fn loopback(n: usize) -> io::Result<Report> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut near = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = far.read(&mut bytes) {
            if far.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    });
    let message = new_session(1);
    let mut answer = vec![0; message.len()];
    let mut times = Vec::with_capacity(n);
    for i in 0..n + 200 {
        let sent = Instant::now();
        near.write_all(message.as_bytes())?;
        near.read_exact(&mut answer)?;
        if i >= 200 {
            times.push(sent.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(Report::new("loopback").number("n", n).times(&mut times))
}
