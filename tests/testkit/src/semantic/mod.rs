//! Examples whose error depends on the context: they are sent to a real agent or client over a link
//! in memory.
//!
//! The context follows from the example: its method, its rule, the expected code and the reason
//! (`context`). The other end is a `peer` that writes raw lines.

mod answers;
mod context;
mod peer;
mod to_agent;
mod to_client;

use std::time::Duration;

use serde_json::Value;

use crate::example::Example;
use crate::verify::{self, Verdict, expect_any};

/// Time after which a missing response is a failure.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Sets up the context of the example, sends it, and compares the response.
pub fn verify(line: &Example) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Verdict::Fail("no runtime".to_owned()) };
    runtime.block_on(async {
        match tokio::time::timeout(TIMEOUT, run(line)).await {
            Ok(verdict) => verdict,
            Err(_) => Verdict::Fail("no answer".to_owned()),
        }
    })
}

/// Returns the response of a peer with all capabilities to a valid request.
pub fn answer(line: &Example) -> Result<Option<Value>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let responses = async {
            if line.dir == "a2c" { to_client::responses(line).await } else { to_agent::responses(line).await }
        };
        let responses =
            tokio::time::timeout(TIMEOUT, responses).await.map_err(|_| "no answer".to_owned())??;
        match responses.stray.first() {
            Some(stray) => Err(format!("answered {stray}")),
            None => Ok(responses.answer),
        }
    })
}

async fn run(line: &Example) -> Verdict {
    if line.is_answer() {
        // A response without a method is verified by its envelope.
        return if line.method.is_empty() {
            verify::envelope(line).into()
        } else {
            answers::verify(line).await
        };
    }
    let outcome = match line.dir.as_str() {
        "c2a" => to_agent::responses(line).await.map(|responses| vec![responses]),
        "a2c" => to_client::responses(line).await.map(|responses| vec![responses]),
        _ => match (to_agent::responses(line).await, to_client::responses(line).await) {
            (Ok(agent), Ok(client)) => Ok(vec![agent, client]),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        },
    };
    outcome.and_then(|all| all.iter().try_for_each(|responses| expected(line, responses))).into()
}

/// The responses to an example.
#[derive(Debug, Default)]
struct Responses {
    /// The response with the id of the example.
    answer: Option<Value>,
    /// Responses with other ids.
    stray: Vec<Value>,
}

/// Rules that leave it to the receiver whether it refuses or makes the best of it, with what ours
/// makes.
const TOLERATED: &[(&str, &str)] = &[
    // Example 0 is read as line 1.
    ("FS-14", "fs/read_text_file"),
];

fn expected(line: &Example, responses: &Responses) -> Result<(), String> {
    let tolerated = TOLERATED.contains(&(line.rule.as_str(), line.method.as_str()));
    expect_any(&line.expect, |expect| {
        if let Some(stray) = responses.stray.first() {
            return Err(format!("answered {stray}"));
        }
        let request = line.is_request();
        let answer = responses.answer.as_ref();
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
        // An example that only a person can assess is accepted like a valid one.
        if expect["accept"] == true || expect["reviewed"] == true {
            return match answer {
                Some(answer) if answer.get("error").is_none() => Ok(()),
                None if !request => Ok(()),
                other => Err(format!("not accepted: {other:?}")),
            };
        }
        Err(format!("an unknown expectation: {expect}"))
    })
}
