//! Lines whose error lies in the context: a real agent or client gets them, over a link in memory.
//!
//! What the context must be follows from the line itself: its method, its rule, the code it expects and the words that
//! say why it is wrong (`context`). The other end is a `peer` that writes raw lines.

mod answers;
mod context;
mod peer;
mod to_agent;
mod to_client;

use std::time::Duration;

use serde_json::Value;

use crate::judge::{self, Verdict, expect_any};
use crate::line::Line;

/// A peer that does not answer at all is a failure too; nothing here takes longer than a blink.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sets up the context that the line calls for, sends it, and compares what comes back.
pub fn judge(line: &Line) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Verdict::Bad("no runtime".to_owned()) };
    runtime.block_on(async {
        match tokio::time::timeout(PATIENCE, run(line)).await {
            Ok(verdict) => verdict,
            Err(_) => Verdict::Bad("no answer".to_owned()),
        }
    })
}

/// What a peer that offers everything answers to a valid request.
pub fn answer(line: &Line) -> Result<Option<Value>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let heard = async {
            if line.dir == "a2c" { to_client::heard(line).await } else { to_agent::heard(line).await }
        };
        let heard = tokio::time::timeout(PATIENCE, heard).await.map_err(|_| "no answer".to_owned())??;
        match heard.stray.first() {
            Some(stray) => Err(format!("answered {stray}")),
            None => Ok(heard.answer),
        }
    })
}

async fn run(line: &Line) -> Verdict {
    if line.is_answer() {
        // An answer to nothing in particular is a matter of the envelope.
        return if line.method.is_empty() {
            judge::envelope(line).into()
        } else {
            answers::judge(line).await
        };
    }
    let outcome = match line.dir.as_str() {
        "c2a" => to_agent::heard(line).await.map(|heard| vec![heard]),
        "a2c" => to_client::heard(line).await.map(|heard| vec![heard]),
        _ => match (to_agent::heard(line).await, to_client::heard(line).await) {
            (Ok(agent), Ok(client)) => Ok(vec![agent, client]),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        },
    };
    outcome.and_then(|all| all.iter().try_for_each(|heard| expected(line, heard))).into()
}

/// What came back for a line.
#[derive(Debug, Default)]
struct Heard {
    /// The answer that bears the line's id.
    answer: Option<Value>,
    /// Answers that bear no id of ours.
    stray: Vec<Value>,
}

/// Rules that leave it to the receiver whether it refuses or makes the best of it, with what ours makes.
const TOLERATED: &[(&str, &str)] = &[
    // Line 0 is read as line 1.
    ("FS-14", "fs/read_text_file"),
];

fn expected(line: &Line, heard: &Heard) -> Result<(), String> {
    let tolerated = TOLERATED.contains(&(line.rule.as_str(), line.method.as_str()));
    expect_any(&line.expect, |expect| {
        if let Some(stray) = heard.stray.first() {
            return Err(format!("answered {stray}"));
        }
        let request = line.kind == "request";
        let answer = heard.answer.as_ref();
        if let Some(code) = expect["code"].as_i64() {
            return match answer {
                Some(answer) if answer["error"]["code"] == code => Ok(()),
                Some(answer) if tolerated && answer.get("result").is_some() => Ok(()),
                Some(answer) => Err(format!("answered {answer}, expected {code}")),
                None => Err(format!("not answered, expected {code}")),
            };
        }
        if expect["ignored"] == true {
            return answer.map_or(Ok(()), |answer| Err(format!("answered {answer}")));
        }
        // A line that only a person can judge is handed on like any other.
        if expect["accept"] == true || expect["reviewed"] == true {
            return match answer {
                Some(answer) if answer.get("error").is_none() => Ok(()),
                None if !request => Ok(()),
                other => Err(format!("not accepted: {other:?}")),
            };
        }
        Err(format!("an expectation that is not known here: {expect}"))
    })
}
