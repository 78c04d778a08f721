//! Faults of a server, and what a remote client must still do afterwards.

use serde_json::json;

use crate::remote::FAULT_METHOD;
use crate::scenarios::client::steps::{end, open_turn};
use crate::scenarios::scenario_table;
use crate::target::Need;
use crate::{Stage, Step, Stop, Transport};

const HTTP: Need = Need::Transport(Transport::Http);
const WEB_SOCKET: Need = Need::Transport(Transport::WebSocket);

scenario_table! { Client, faults:
    "http-client-fault-cut": "streams that end in the middle of an event, during a turn",
        ["HTTP-41"] needs [HTTP] => cut("HTTP-41");
    "ws-client-fault-cut": "a WebSocket that ends in the middle of a frame, during a turn",
        ["WS-19"] needs [WEB_SOCKET] => cut("WS-19");
    "ws-client-fault-compressed": "a compressed frame although nothing was agreed on",
        ["WS-20"] needs [WEB_SOCKET] => wrong_frame("a frame with a reserved bit");
    "ws-client-fault-masked": "a masked frame", ["WS-20"] needs [WEB_SOCKET] => wrong_frame("a masked frame");
    "ws-client-fault-opcode": "a frame with an unknown opcode",
        ["WS-20"] needs [WEB_SOCKET] => wrong_frame("a frame with an unknown opcode");
}

/// The connection is cut under the response to a prompt, which waits for a client that comes again.
async fn cut(stage: &mut Stage, rule: &'static str) -> Step {
    let turn = open_turn(stage).await?;
    let before = stage.mark();
    stage.notify(FAULT_METHOD, turn.with(json!({}))).await?;
    end(stage, &turn).await?;
    loop {
        match stage.next().await {
            // It may have been under way before.
            Ok(_) if stage.mark() == before => {}
            Ok(_) | Err(Stop::PeerGone) => {
                stage.pass(rule);
                return Ok(());
            }
            Err(stop @ Stop::Deadline(_)) => {
                stage.fail(
                    rule,
                    "the client was cut off during a turn and waits: it neither connects again nor goes on nor ends",
                );
                return Err(stop);
            }
            Err(stop) => return Err(stop),
        }
    }
}

/// The client must not take part in a conversation with a server that sends such frames.
async fn wrong_frame(stage: &mut Stage, what: &str) -> Step {
    let turn = open_turn(stage).await?;
    stage.notify(FAULT_METHOD, turn.with(json!({}))).await?;
    if !stage.observes("WS-20").await {
        stage.fail("WS-20", format!("{what} does not end the connection"));
    }
    Ok(())
}
