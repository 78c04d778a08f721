//! One connection: requests in, answers out, until it ends.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::api::{self, Api};
use crate::http::{self, Events, Request};
use crate::log::Log;
use crate::script;
use crate::talk::Reply;

/// Between two words of an endless answer, and after how many even that ends.
const PAUSE: Duration = Duration::from_millis(20);
const ENDLESS: usize = 6000;

pub(crate) fn connection(stream: TcpStream, log: &Log) {
    let _ = stream.set_nodelay(true);
    let Ok(mut to) = stream.try_clone() else { return };
    let mut from = BufReader::new(stream);
    while let Ok(Some(request)) = Request::read(&mut from) {
        if answer(&request, &mut to, log).is_err() {
            return;
        }
    }
}

fn answer(request: &Request, to: &mut TcpStream, log: &Log) -> io::Result<()> {
    let number = log.number();
    if request.is_for_elsewhere() {
        log.write(
            &json!({"n": number, "what": "outside", "method": request.method, "target": request.target}),
        );
        return http::answer(to, "403 Forbidden", &json!({"error": {"message": "only loopback is served"}}));
    }
    let Some(api) = Api::of(request) else {
        log.write(&json!({"n": number, "what": "other", "method": request.method, "target": request.target}));
        return match api::catalogue(request) {
            Some(value) => http::answer(to, "200 OK", &value),
            None => http::answer(
                to,
                "404 Not Found",
                &json!({"error": {"message": "there is no such thing here"}}),
            ),
        };
    };
    let body = request.json();
    let ask = api.read(request, &body);
    let decision = script::decide(&ask);
    log.write(&json!({
        "n": number,
        "what": "model",
        "api": api.name(),
        "model": ask.model,
        "stream": ask.stream,
        "tools": ask.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "marker": decision.marker,
        "step": decision.step,
        "reply": decision.reply.brief(),
        "body": body,
    }));
    let sent = if ask.stream {
        stream(api, to, &ask.model, number, &decision.reply)
    } else {
        let reply = match decision.reply {
            Reply::Endless => Reply::Text("word 0".to_owned()),
            reply => reply,
        };
        http::answer(to, "200 OK", &api.whole(&ask.model, number, &reply))
    };
    if let Err(error) = &sent {
        log.write(&json!({"n": number, "what": "dropped", "why": error.to_string()}));
    }
    sent
}

fn stream(api: Api, to: &mut TcpStream, model: &str, number: u64, reply: &Reply) -> io::Result<()> {
    let mut events = Events::begin(to)?;
    let mut stream = api.stream(model, number);
    let mut send = |list: Vec<(&'static str, String)>| -> io::Result<()> {
        list.iter().try_for_each(|(name, data)| events.send(name, data))
    };
    match reply {
        Reply::Text(text) => {
            send(stream.begin_text())?;
            for piece in pieces(text) {
                send(stream.text(piece))?;
            }
        }
        Reply::Endless => {
            send(stream.begin_text())?;
            for count in 0..ENDLESS {
                send(stream.text(&format!("word {count} ")))?;
                std::thread::sleep(PAUSE);
            }
        }
        Reply::Call { tool, input } => send(stream.call(tool, input))?,
    }
    send(stream.end(reply))?;
    events.end()
}

/// A text in a few pieces, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let cut = rest.char_indices().nth(8).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(cut);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
