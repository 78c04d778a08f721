//! The agent. The text of a prompt says what it sends: `burst N`, `rate R N` or `echo`.

use std::io::{self, BufRead as _, BufWriter, Write as _};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

pub(crate) fn run() -> io::Result<()> {
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let id = &message["id"];
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})
            }
            Some("session/new") => json!({"sessionId": format!("sess_{:016x}", std::process::id())}),
            Some("session/prompt") => {
                let session = message["params"]["sessionId"].as_str().unwrap_or_default();
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                turn(&mut output, session, text)?;
                json!({"stopReason": "end_turn"})
            }
            _ => json!({}),
        };
        if !id.is_null() {
            writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        }
        output.flush()?;
    }
    Ok(())
}

fn turn(output: &mut impl io::Write, session: &str, text: &str) -> io::Result<()> {
    let words: Vec<&str> = text.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
    match words.first().copied() {
        Some("burst") => {
            for _ in 0..number(1) {
                update(output, session, "a few more words of it ")?;
            }
        }
        // Every update has the time at which it was sent.
        Some("rate") => {
            let (rate, start) = (number(1), Instant::now());
            for count in 0..number(2) {
                let due = start + Duration::from_nanos(count * 1_000_000_000 / rate.max(1));
                if let Some(pause) = due.checked_duration_since(Instant::now()) {
                    output.flush()?;
                    std::thread::sleep(pause);
                }
                update(output, session, &format!("@{}@", now()))?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn update(output: &mut impl io::Write, session: &str, text: &str) -> io::Result<()> {
    writeln!(
        output,
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

/// Nanoseconds since 1970: the clock that processes share.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or_default()
}
