//! Chooses the next response of a script and plays it.

use std::time::Duration;

use serde_json::Value;

use super::ToolCall;
use super::parse::{Action, Condition, Scene, Script, Step, Target};
use crate::model::{
    ErrorKind, Event, Events, InvalidCall, Message, ModelError, Part, Request, Role, Stop, Usage, text_of,
};

/// Plays the response to a request.
pub(super) async fn answer(script: &Script, request: &Request, events: &Events) -> Result<(), ModelError> {
    let (scene, view) = scene(script, request);
    let step = scene.and_then(|scene| step(scene, request, &view));
    let Some((step, results)) = step else {
        let message = format!("the script has no answer to `{}`; add a scene to it", first_line(&view.text));
        return Err(ModelError::new(ErrorKind::Other, message));
    };
    let answered = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let words = Words { text: &view.text, result: &results };
    Player { events, words, pace: script.head.pace, answered, calls: 0, output: 0 }.play(step, request).await
}

/// A turn of a request: the user's text, and the messages since then.
struct View<'a> {
    text: String,
    rest: &'a [Message],
}

/// The turns of a conversation.
fn turns(messages: &[Message]) -> Vec<View<'_>> {
    let starts: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].starts_turn()).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| View { text: messages[start].text(), rest: &messages[start + 1..end] })
        .collect()
}

/// The scene for the last turn. Each turn takes the first scene that fits and that no turn before
/// it took; when all that fit are taken, the last of them is played again.
fn scene<'a, 'r>(script: &'a Script, request: &'r Request) -> (Option<&'a Scene>, View<'r>) {
    let mut taken = vec![false; script.scenes.len()];
    let mut found = None;
    let mut turns = turns(&request.messages);
    for turn in &turns {
        let fits = |scene: &Scene| holds(&scene.when, request, &turn.text, "");
        let mut fitting = script.scenes.iter().enumerate().filter(|(_, scene)| fits(scene));
        let free = fitting.clone().find(|(place, _)| !taken[*place]);
        found = free.or_else(|| fitting.next_back());
        if let Some((place, _)) = found {
            taken[place] = true;
        }
    }
    let last = turns.pop().unwrap_or(View { text: String::new(), rest: &[] });
    (found.map(|(_, scene)| scene), last)
}

/// The step that comes next in a turn, and the results it answers. Steps are taken in order; one
/// whose condition does not hold is passed over. The answers that were given already are gone
/// through in the same way.
fn step<'a>(scene: &'a Scene, request: &Request, view: &View<'_>) -> Option<(&'a Step, String)> {
    let mut next = 0;
    let mut results = String::new();
    let mut choose = |results: &str| {
        let steps = scene.steps.iter().enumerate().skip(next);
        let (place, step) = { steps }.find(|(_, step)| holds(&step.when, request, &view.text, results))?;
        next = if step.forever { place } else { place + 1 };
        Some(step)
    };
    for message in view.rest {
        match message.role {
            Role::Assistant => {
                choose(&results);
                results.clear();
            }
            Role::User => results.push_str(&results_of(message)),
        }
    }
    choose(&results).map(|step| (step, results))
}

fn results_of(message: &Message) -> String {
    let texts = message.parts.iter().map(|part| match part {
        Part::Result { parts, .. } => text_of(parts) + "\n",
        Part::Text(text) => format!("{text}\n"),
        _ => String::new(),
    });
    texts.collect()
}

fn holds(conditions: &[Condition], request: &Request, text: &str, results: &str) -> bool {
    conditions.iter().all(|condition| {
        let text = match condition.target {
            Target::Text => text,
            Target::Result => results,
            Target::System => &request.system,
        };
        text.contains(&condition.part)
    })
}

/// The values of `${text}` and `${result}`.
struct Words<'a> {
    text: &'a str,
    result: &'a str,
}

impl Words<'_> {
    fn fill(&self, text: &str) -> String {
        text.replace("${text}", self.text).replace("${result}", self.result.trim_end())
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), self.fill_value(value))).collect()
            }
            other => other.clone(),
        }
    }
}

struct Player<'a> {
    events: &'a Events,
    words: Words<'a>,
    pace: Duration,
    /// Responses before this one, which make the ids of calls unique.
    answered: usize,
    calls: usize,
    /// Characters given out.
    output: usize,
}

impl Player<'_> {
    async fn play(mut self, step: &Step, request: &Request) -> Result<(), ModelError> {
        let mut stop = None;
        let mut usage = None;
        for action in &step.actions {
            match action {
                Action::Say(text) => self.pieces(text, Event::Text).await,
                Action::Think(text) => self.pieces(text, Event::Thought).await,
                Action::Call { name, arguments } => {
                    let arguments = self.words.fill_value(arguments);
                    self.call(name, arguments.to_string(), Some(arguments)).await;
                }
                Action::BadCall { name, raw } => self.call(name, raw.clone(), None).await,
                Action::Wait(time) => tokio::time::sleep(*time).await,
                Action::Retry { after, why } => {
                    self.events.send(Event::Retry { after: *after, why: why.clone() }).await;
                    tokio::time::sleep(*after).await;
                }
                Action::Usage(given) => usage = Some(*given),
                Action::Stop(given) => stop = Some(given.clone()),
                Action::Fail(error) => return Err(error.clone()),
                Action::Flood(text) => loop {
                    self.pieces(text, Event::Text).await;
                    // Let the reader do something else.
                    tokio::task::yield_now().await;
                },
                Action::Hang => std::future::pending().await,
            }
        }
        let usage = usage.unwrap_or_else(|| self.guess(request));
        self.events.send(Event::Usage(usage)).await;
        let end = if self.calls > 0 { Stop::Calls } else { Stop::Done };
        self.events.send(Event::End(stop.unwrap_or(end))).await;
        Ok(())
    }

    /// Word by word, as models do.
    async fn pieces(&mut self, text: &str, event: fn(String) -> Event) {
        let text = self.words.fill(text);
        self.output += text.len();
        for piece in text.split_inclusive([' ', '\n']) {
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
            self.events.send(event(piece.to_owned())).await;
        }
    }

    async fn call(&mut self, name: &str, raw: String, arguments: Option<Value>) {
        let index = self.calls;
        self.calls += 1;
        self.output += raw.len();
        let id = format!("script_{}_{index}", self.answered);
        let name = name.to_owned();
        self.events.send(Event::CallBegins { index, id: id.clone(), name: name.clone() }).await;
        self.events.send(Event::CallGrows { index, json: raw.clone() }).await;
        let call = match arguments {
            Some(arguments) => Ok(ToolCall { id, name, arguments, signature: None }),
            None => Err(InvalidCall { id, name, raw, why: "the arguments are not a JSON object".to_owned() }),
        };
        self.events.send(Event::CallEnds { index, call }).await;
    }

    /// An estimate of four bytes per token, so that meters have something to show.
    fn guess(&self, request: &Request) -> Usage {
        let read = request.system.len() + request.messages.iter().map(Message::size).sum::<usize>();
        Usage { input: read as u64 / 4, output: self.output as u64 / 4, ..Usage::default() }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(80).collect()
}
