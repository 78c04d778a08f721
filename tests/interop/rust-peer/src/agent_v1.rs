//! The interop agent of version 1 on the official Rust SDK. What each prompt does is written in
//! ../../README.md.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Result};
use serde_json::json;

use crate::sessions::{Session, Sessions, typed};
use crate::turn::Turn;
use crate::{Echo, Note, Notes, on_notification, on_request};

fn commands(session: &Session) -> Result<SessionNotification> {
    typed(json!({"sessionId": session.id, "update": {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            {"name": "plan", "description": "Make a plan"},
            {"name": "web", "description": "Search the web", "input": {"hint": "query"}},
        ],
    }}))
}

fn hello() -> Result<InitializeResponse> {
    let mut response = InitializeResponse::new(ProtocolVersion::V1);
    response = response.agent_info(Implementation::new("interop-agent", "1.0.0"));
    response.agent_capabilities = typed(json!({
        "loadSession": true,
        "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
        "mcpCapabilities": {"http": true, "sse": true},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "fork": {}, "delete": {}},
        "auth": {"logout": {}},
    }))?;
    response.auth_methods =
        typed(json!([{"id": "pass", "name": "Pass", "description": "Lets everybody in"}]))?;
    Ok(response)
}

/// The agent; several share the sessions.
pub fn agent(sessions: &Sessions) -> impl ConnectTo<Client> + use<> {
    // Every handler owns a handle of the shared state.
    let [h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11, h12, h13, h14, h15] =
        std::array::from_fn(|_| sessions.clone());
    Agent
        .v1()
        .name("interop-agent")
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| responder.respond_with_result(hello()),
            on_request!(),
        )
        .on_receive_request(
            async move |r: AuthenticateRequest, responder, _| {
                if &*r.method_id.0 != "pass" {
                    return responder.respond_with_error(Error::invalid_params());
                }
                h1.lock().authenticated = true;
                responder.respond(AuthenticateResponse::new())
            },
            on_request!(),
        )
        .on_receive_request(
            async move |_: LogoutRequest, responder, _| {
                h2.lock().authenticated = false;
                responder.respond(LogoutResponse::new())
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: NewSessionRequest, responder, cx: ConnectionTo<Client>| match h3.new_session(r) {
                Ok(session) => {
                    responder.respond(typed(session.setup())?)?;
                    cx.send_notification(commands(&session)?)
                }
                Err(error) => responder.respond_with_error(error),
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: LoadSessionRequest, responder, cx: ConnectionTo<Client>| {
                let session = h4.kept(&r.session_id, |s| {
                    s.open = true;
                    s.clone()
                });
                let session = match session {
                    Ok(session) => session,
                    Err(error) => return responder.respond_with_error(error),
                };
                for (user, text) in &session.history {
                    for (kind, text) in [("user_message_chunk", user), ("agent_message_chunk", text)] {
                        let content = json!({"type": "text", "text": text});
                        let update = json!({"sessionUpdate": kind, "content": content});
                        let update = json!({"sessionId": session.id, "update": update});
                        cx.send_notification(typed::<SessionNotification>(update)?)?;
                    }
                }
                responder.respond(typed(session.setup())?)
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ResumeSessionRequest, responder, _| {
                let setup = h5.kept(&r.session_id, |s| {
                    s.open = true;
                    s.setup()
                });
                responder.respond_with_result(setup.and_then(typed))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ForkSessionRequest, responder, _| {
                let history = h6.kept(&r.session_id, |s| s.history.clone());
                let session = history.map(|history| h6.make(r.cwd, r.mcp_servers, history));
                responder.respond_with_result(session.and_then(|s| typed(s.setup())))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: CloseSessionRequest, responder, _| {
                let closed = h7.kept(&r.session_id, |s| {
                    s.open = false;
                    s.cancelled.store(true, Ordering::SeqCst);
                });
                responder.respond_with_result(closed.map(|()| CloseSessionResponse::new()))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: DeleteSessionRequest, responder, _| {
                h8.lock().sessions.retain(|s| *s.id != *r.session_id.0);
                responder.respond(DeleteSessionResponse::new())
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ListSessionsRequest, responder, _| responder.respond_with_result(h9.list(r)),
            on_request!(),
        )
        .on_receive_request(
            async move |r: SetSessionModeRequest, responder, _| {
                let set = h10.live(&r.session_id, |s| {
                    if !["ask", "code"].contains(&&*r.mode_id.0) {
                        return Err(Error::invalid_params());
                    }
                    s.mode = r.mode_id.0.to_string();
                    Ok(())
                });
                responder.respond_with_result(set.map(|()| SetSessionModeResponse::new()))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: SetSessionConfigOptionRequest, responder, _| {
                let value = serde_json::to_value(&r)?["value"].clone();
                let set = h11.live(&r.session_id, |s| match value.as_str() {
                    Some(value @ ("fast" | "deep")) if &*r.config_id.0 == "model" => {
                        s.model = value.to_owned();
                        typed(json!({"configOptions": s.config_options()}))
                    }
                    _ => Err(Error::invalid_params()),
                });
                responder.respond_with_result(set)
            },
            on_request!(),
        )
        .on_receive_request(
            async move |prompt: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let session = h12.live(&prompt.session_id, |s| {
                    s.cancelled = Arc::default();
                    Ok(s.clone())
                });
                let session = match session {
                    Ok(session) => session,
                    Err(error) => return responder.respond_with_error(error),
                };
                let turn = Turn { sessions: h12.clone(), client: cx.clone(), session, prompt };
                let cancellation = responder.cancellation();
                cx.spawn(async move {
                    let stop = cancellation.run_until_cancelled(turn.run()).await;
                    responder.respond_with_result(stop.map(PromptResponse::new))
                })
            },
            on_request!(),
        )
        .on_receive_notification(
            async move |n: CancelNotification, _| {
                let _ = h13.kept(&n.session_id, |s| s.cancelled.store(true, Ordering::SeqCst));
                Ok(())
            },
            on_notification!(),
        )
        .on_receive_request(
            async move |r: Echo, responder, _| responder.respond(json!({"value": r.value})),
            on_request!(),
        )
        .on_receive_notification(
            async move |_: Note, _| {
                h14.lock().notes += 1;
                Ok(())
            },
            on_notification!(),
        )
        .on_receive_request(
            async move |_: Notes, responder, _| {
                let count = h15.lock().notes;
                responder.respond(json!({"count": count}))
            },
            on_request!(),
        )
}
