//! Clients beyond a limit: floods of wrong ids, messages that are too long, more clients than
//! places.

use attache_http::ws::frame::Opcode;
use serde_json::json;
use tokio::time::{Duration, timeout};

use super::client::{Client, GLANCE, send, within};
use super::faults::{lives, survives};
use super::http::UNKNOWN;
use super::ws::{Incoming, Peer};
use super::{HTTP, WEB_SOCKET};
use crate::remote::Endpoint;
use crate::remote::http1::{Request, Response};
use crate::remote::socket::{Socket, Upgrade};
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent, faults in BOTH:
    "http-fault-wrong-ids": "a flood of connection ids, session ids and answers that fit nothing",
        ["HTTP-37", "HTTP-39"] needs [HTTP] => wrong_ids;
    "ws-fault-wrong-ids": "a flood of session ids and answers that fit nothing", ["WS-16"] needs [WEB_SOCKET] => ws_wrong_ids;
    "ws-fault-oversized": "a frame that claims a length beyond all memory",
        ["WS-16", "WS-17"] needs [WEB_SOCKET] => oversized;
    "ws-fault-connections": "more clients than there are places", ["WS-18", "HTTP-39"] needs [WEB_SOCKET] => connections;
}

/// The scenario that takes all places of a server, so that no other can run beside it.
pub(crate) const TAKES_ALL_PLACES: &str = "ws-fault-connections";

/// Sessions that do not exist; more than servers keep for one client.
const SESSIONS: usize = 1_100;
/// Other ids that do not exist.
const IDS: usize = 200;

async fn wrong_ids(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let sent = flood(stage, client).await;
    survives(stage, "HTTP-37", "a flood of wrong ids", sent).await
}

async fn flood(stage: &mut Stage, mut client: Client) -> Step {
    let mut refused = None;
    for number in 0..SESSIONS {
        let unknown = format!("{UNKNOWN}-{number}");
        let (_, probe) = client.message("_attache/probe", json!({ "sessionId": unknown }));
        let mut requests = vec![client.of(Request::post(&probe), Some(&unknown))];
        if number < IDS {
            requests.push(Request::post(&probe).with("acp-connection-id", &unknown));
            let answer = json!({ "jsonrpc": "2.0", "id": unknown, "result": {} });
            requests.push(client.of(Request::post(&answer), None));
        }
        for request in requests {
            // Not in the trace: thousands of lines would hide everything else.
            let response =
                within(stage, "the response to a wrong id", request.send(&client.endpoint)).await?;
            if is_full(&response) && refused.is_none() {
                refused = Some((number, response));
            }
        }
    }
    stage.note(format!("{SESSIONS} sessions, {IDS} connections and {IDS} answers that do not exist"));
    match refused {
        Some((number, response)) => {
            stage.exchanged(format!("unknown session {number} → {}", response.status));
            judge_retry(stage, &response);
        }
        None => stage.note("nothing was refused by a limit"),
    }
    client.delete(stage).await?;
    Ok(())
}

/// Judges a refusal by a limit.
fn judge_retry(stage: &mut Stage, response: &Response) {
    let why = format!("status {} has no Retry-After", response.status);
    stage.check("HTTP-39", response.header("retry-after").is_some(), why);
}

/// Whether a response says that there is no room.
fn is_full(response: &Response) -> bool {
    matches!(response.status, 429 | 503)
}

async fn ws_wrong_ids(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    for number in 0..SESSIONS {
        let unknown = format!("{UNKNOWN}-{number}");
        let (_, probe) = peer.message("_attache/probe", json!({ "sessionId": unknown }));
        let answer = json!({ "jsonrpc": "2.0", "id": unknown, "result": {} });
        for message in [probe.to_string(), answer.to_string()] {
            let sent = peer.socket.send(Opcode::Text, true, message.as_bytes());
            // A server that closes the connection does right.
            if !matches!(timeout(stage.deadline(), sent).await, Ok(Ok(()))) {
                return lives(stage, "WS-16", "a flood of wrong ids").await;
            }
        }
    }
    stage.note(format!("{SESSIONS} sessions and {SESSIONS} answers that do not exist"));
    lives(stage, "WS-16", "a flood of wrong ids").await
}

/// The length of a frame that no server takes.
const HUGE: u64 = 1 << 40;
/// The bytes of it that are sent at most, in MiB.
const SENT: usize = 80;
/// How long an answer is waited for between two pieces.
const MOMENT: Duration = Duration::from_millis(1);

async fn oversized(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let mut frame = vec![0x81, 0xFF];
    frame.extend(HUGE.to_be_bytes());
    frame.extend([0; 4]);
    stage.exchanged(format!("frame Text of {HUGE} bytes"));
    within(stage, "room to write", peer.socket.write(&frame)).await?;
    let piece = vec![b' '; 1 << 20];
    let mut came = timeout(GLANCE, peer.receive()).await.ok();
    for _ in 0..SENT {
        // A connection that is reset may have lost a close frame, so that is not judged.
        if came.is_some() || !matches!(timeout(stage.deadline(), peer.socket.write(&piece)).await, Ok(Ok(())))
        {
            break;
        }
        came = timeout(MOMENT, peer.receive()).await.ok();
    }
    if came.is_none() {
        came = timeout(GLANCE, peer.receive()).await.ok();
    }
    match came {
        Some(Ok(Incoming::Close(code))) => {
            stage.exchanged(format!("server: Close({code})"));
            let why = format!("a message over the limit is closed with {code}, not with 1009");
            stage.check("WS-17", code == 1009, why);
        }
        Some(Ok(Incoming::End)) => {
            stage.exchanged("server: End");
            stage.fail("WS-17", "the connection ends without a close frame after a message over the limit");
        }
        Some(Err(error)) => stage.note(format!("the connection broke: {error}")),
        Some(Ok(_)) | None => stage.note(format!("{SENT} MiB of one frame were taken")),
    }
    lives(stage, "WS-16", "a frame of unlimited length").await
}

/// The number of clients at which a server may still have a place.
const CLIENTS: usize = 100;

async fn connections(stage: &mut Stage) -> Step {
    let endpoint = stage.endpoint()?;
    let mut open = Vec::new();
    while open.len() < CLIENTS {
        match enter(stage, &endpoint, &[]).await? {
            Entry::Open(peer) => open.push(peer),
            Entry::Refused(_) if open.is_empty() => {
                return Err(Stop::NotExercised("the server has no place for a first client".to_owned()));
            }
            Entry::Refused(why) => {
                stage.note(format!("{} clients have a place", open.len()));
                judge(stage, why);
                // A page learns no status of an upgrade, so it may get a close frame.
                let origin = endpoint.origin();
                if let Entry::Refused(why) = enter(stage, &endpoint, &[("origin", &origin)]).await? {
                    judge(stage, why);
                }
                let initialize = Request::post(&Client::initialize(stage));
                let response = send(stage, &endpoint, &initialize).await?;
                if is_full(&response) {
                    judge_retry(stage, &response);
                }
                return Ok(());
            }
        }
    }
    Err(Stop::NotExercised(format!("{CLIENTS} clients have a place")))
}

/// Judges how a client without a place was refused.
fn judge(stage: &mut Stage, problem: Option<String>) {
    match problem {
        None => stage.pass("WS-18"),
        Some(why) => stage.fail("WS-18", why),
    }
}

/// The outcome of an attempt to connect.
enum Entry {
    Open(Peer),
    /// With what is wrong about the refusal.
    Refused(Option<String>),
}

async fn enter(stage: &mut Stage, endpoint: &Endpoint, headers: &[(&str, &str)]) -> Result<Entry, Stop> {
    match within(stage, "the response to an upgrade", Socket::open(endpoint, headers)).await? {
        Upgrade::Refused(response) => {
            stage.exchanged(format!("GET upgrade: websocket → {}", response.status));
            let problem = match (is_full(&response), response.header("retry-after")) {
                (true, Some(_)) => None,
                (true, None) => Some(format!("status {} has no Retry-After", response.status)),
                // A page of another site, whatever its place.
                (false, _) if response.status == 403 && !headers.is_empty() => None,
                (false, _) => {
                    Some(format!("a client without a place gets status {}, not 429 or 503", response.status))
                }
            };
            Ok(Entry::Refused(problem))
        }
        Upgrade::Switched(socket) => {
            let mut peer = Peer::new(socket);
            let (id, message) = peer.message("initialize", stage.offer(json!({})));
            let message = message.to_string();
            let sent = peer.socket.send(Opcode::Text, true, message.as_bytes());
            // A close frame may be under way already.
            let _ = timeout(stage.deadline(), sent).await;
            let came = timeout(stage.deadline(), peer.receive()).await;
            let problem = match came {
                Ok(Ok(Incoming::Close(1008 | 1012 | 1013))) => None,
                Ok(Ok(Incoming::Close(code))) => {
                    Some(format!("a client without a place is closed with {code}, not with 1008 or 1013"))
                }
                Ok(Ok(Incoming::End) | Err(_)) => {
                    Some("the connection of a client without a place ends without a status".to_owned())
                }
                Ok(Ok(_)) => return Ok(Entry::Open(peer)),
                Err(_) => return Err(Stop::Deadline(format!("the answer to request {id}"))),
            };
            stage.exchanged(format!("GET upgrade: websocket → 101; {came:?}"));
            Ok(Entry::Refused(problem))
        }
    }
}
