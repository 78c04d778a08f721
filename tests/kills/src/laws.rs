//! What holds after any number of kills.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::agent::Task;
use crate::view::{SentPrompt, View};

/// Checks the laws. `journal` is what a client sees that loads the sessions afterwards.
pub(crate) fn check(journal: &View, clients: &[View], agents: &[Value]) -> Result<Counts, String> {
    for (number, client) in clients.iter().enumerate() {
        saw_a_prefix(journal, client, number).map_err(|error| format!("client {number}: {error}"))?;
    }
    let ran = no_prompt_ran_twice(agents)?;
    let texts = in_order(journal);
    let mut counts = Counts::default();
    for (id, prompt) in clients.iter().flat_map(|client| &client.prompts) {
        turn_is_whole(id, prompt, &ran, &texts).map_err(|error| format!("prompt {id}: {error}"))?;
        let is_interrupted = prompt.response.as_ref().is_some_and(|response| !response["error"].is_null());
        counts.prompts += 1;
        counts.interrupted += u64::from(is_interrupted);
    }
    answers_were_given(clients, agents)?;
    counts.questions = agents.iter().filter(|event| event["asked"].is_string()).count() as u64;
    counts.messages =
        clients.iter().flat_map(|client| client.sessions.values()).map(|s| s.texts.len() as u64).sum();
    Ok(counts)
}

/// What a world had, for the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) prompts: u64,
    pub(crate) interrupted: u64,
    pub(crate) questions: u64,
    pub(crate) messages: u64,
}

/// Everything that a client saw, over all its lives and connections, is the journal up to its
/// position.
fn saw_a_prefix(journal: &View, client: &View, number: usize) -> Result<(), String> {
    for (name, seen) in &client.sessions {
        let all = journal.sessions.get(name).ok_or_else(|| format!("the session {name} is gone"))?;
        if seen.seq > all.seq {
            return Err(format!("it is at {} and the journal ends at {}", seen.seq, all.seq));
        }
        for (seq, text) in &seen.texts {
            if all.texts.get(seq) != Some(text) {
                return Err(format!("at {seq} it saw {text:?}, the journal has {:?}", all.texts.get(seq)));
            }
        }
        // A client need not be shown its own prompts.
        let own = format!("> c{number}p");
        for (seq, text) in all.texts.range(..=seen.seq) {
            if !seen.texts.contains_key(seq) && !text.starts_with(&own) {
                return Err(format!("it is at {} and has not seen {seq}: {text}", seen.seq));
            }
        }
    }
    Ok(())
}

/// The prompts that agents got.
fn no_prompt_ran_twice(agents: &[Value]) -> Result<HashSet<&str>, String> {
    let mut ran = HashSet::new();
    for prompt in agents.iter().filter_map(|event| event["prompt"].as_str()) {
        if !ran.insert(prompt) {
            return Err(format!("the prompt {prompt} ran twice"));
        }
    }
    Ok(ran)
}

/// The numbers of the chunks of each prompt, in the order of the journal.
fn in_order(journal: &View) -> BTreeMap<&str, Vec<u64>> {
    let mut chunks: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for text in journal.sessions.values().flat_map(|session| session.texts.values()) {
        if let Some((prompt, number)) = text.split_once(':')
            && let Ok(number) = number.parse()
        {
            chunks.entry(prompt).or_default().push(number);
        }
    }
    chunks
}

/// A prompt has a response. What its turn said is there from its first chunk on without a hole, and
/// to the last one if it came to its end.
fn turn_is_whole(
    id: &str,
    prompt: &SentPrompt,
    ran: &HashSet<&str>,
    texts: &BTreeMap<&str, Vec<u64>>,
) -> Result<(), String> {
    let Some(response) = &prompt.response else { return Err("it has no response".to_owned()) };
    let task = Task::parse(&prompt.text).ok_or("its text is unknown")?;
    let said = texts.get(id).cloned().unwrap_or_default();
    if said.iter().copied().ne(1..=said.len() as u64) || said.len() as u64 > task.chunks {
        return Err(format!("its chunks are {said:?} of {}", task.chunks));
    }
    match response["result"]["stopReason"].as_str() {
        Some("end_turn") if !ran.contains(id) => Err("it ended and no agent got it".to_owned()),
        Some("end_turn") if said.len() as u64 != task.chunks => {
            Err(format!("it ended with {} of {} chunks", said.len(), task.chunks))
        }
        Some("end_turn" | "cancelled") => Ok(()),
        None if response["error"]["data"]["attache"]["interrupted"] == true => Ok(()),
        _ => Err(format!("its response is {response}")),
    }
}

/// An answer that an agent got is one that a client gave, or says that the turn was cancelled.
fn answers_were_given(clients: &[View], agents: &[Value]) -> Result<(), String> {
    for event in agents {
        let (Some(question), Some(answer)) = (event["answered"].as_str(), event["answer"].as_str()) else {
            continue;
        };
        let is_given = clients
            .iter()
            .any(|client| client.answers.get(question).is_some_and(|answers| answers.contains(answer)));
        if answer != "cancelled" && !is_given {
            return Err(format!("the agent got the answer {answer} to {question}, which no client gave"));
        }
    }
    Ok(())
}
