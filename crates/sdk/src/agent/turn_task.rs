//! The task that runs a turn.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use attache_conn::{CancelToken, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{PromptRequest, StopReason};
use attache_wire::v2::IdleStateUpdate;
use tracing::Instrument as _;

use super::client::ClientHandle;
use super::steering::{PendingPrompt, PromptSource, Steering};
use super::table::TurnSlot;
use super::turn::{Turn, until_cancelled};
use super::turn_state::{Ending, TurnState};
use super::v2;
use crate::race::{First, race};
use crate::report::ErrorReporter;
use crate::task::{catch, lock};
use crate::{Error, Result};

/// A prompt and everything that its task needs.
pub(super) struct TurnTask {
    pub(super) client: ClientHandle,
    pub(super) errors: ErrorReporter,
    pub(super) running: TurnSlot,
    /// An earlier change of modes or options; the turn starts after it.
    pub(super) changing: Option<CancelToken>,
    pub(super) token: CancelToken,
    pub(super) source: PromptSource,
    /// Time for the handler to end after a cancel.
    pub(super) grace: Duration,
}

/// Runs a prompt handler and sends the response.
pub(super) async fn run(task: TurnTask) {
    let TurnTask { client, errors, running, changing, token, source, grace } = task;
    let in_v2 = client.is_v2();
    let offered = matches!(source, PromptSource::Offered(_));
    let waited = async {
        match in_v2 || offered {
            true => until_cancelled(&token, running.wait_turn()).await?, // V2-15
            false => running.wait_turn().await,
        }
        match changing {
            Some(change) => until_cancelled(&token, change.cancelled()).await,
            None => Ok(()),
        }
    };
    let waited = waited.await;
    // An earlier turn may have taken the prompt.
    let Some(PendingPrompt { responder, mut prompt, meta }) = source.take() else { return };
    let steering = offered.then(|| Steering::new(running.entry(), running.number()));
    let inner = TurnState::new(client, running.entry().shared().clone(), token.clone(), meta, steering);
    let span = tracing::debug_span!(parent: &running.entry().span, "turn", session = %inner.session_id());
    let ending = Ending(&inner);
    let mut responder = Some(responder);
    let outcome = match waited {
        Err(error) => Err(error),
        Ok(()) => {
            inner.insert_prompt(&mut responder, &mut prompt);
            inner.begins();
            inner.client().flush_records();
            // CANCEL-06: a panic is caught like any other failure, so that a cancelled turn ends as
            // one.
            let handler = async {
                let reason = running.entry().session.prompt(Turn::new(&inner), prompt).await?;
                inner.until_released().await;
                Ok(reason)
            };
            let handler = pin!(catch(handler.instrument(span.clone())));
            let given_up = pin!(async {
                token.cancelled().await;
                tokio::time::sleep(grace).await;
            });
            match race(handler, given_up).await {
                First::Left(outcome) => outcome.unwrap_or_else(Err),
                First::Right(()) => Err(Error::Cancelled),
            }
            // The handler is dropped here, which releases its terminals (TERM-05).
        }
    };
    // CANCEL-05, CANCEL-06, CANCEL-23: the token decides, not the result of the handler. PROMPT-20:
    // any other failure is an error, never an invented stop reason.
    let outcome = if token.is_cancelled() { Ok(StopReason::Cancelled) } else { outcome };
    drop(ending);
    tracing::debug!(parent: &span, ok = outcome.is_ok(), "turn ended");
    let outcome =
        outcome.map_err(|failed| errors.respond(PromptRequest::METHOD, Some(inner.session_id()), &failed));
    let later = inner.steering().map(Steering::take_responders).unwrap_or_default();
    running.finish(|| {
        // Prompts that the turn has taken end with it.
        later.into_iter().for_each(|responder| respond(&inner, responder, outcome.clone()));
        match responder {
            // V2-15: the prompt was cancelled before it was inserted.
            Some(responder) if in_v2 && outcome == Ok(StopReason::Cancelled) => {
                responder.err(ErrorObject::cancelled());
            }
            Some(responder) => respond(&inner, responder, outcome),
            // V2-09, V2-11, V2-12, V2-14
            None => {
                let idle = IdleStateUpdate::new(v2::stop_reason(outcome));
                #[cfg(feature = "unstable")]
                let idle = idle.usage(lock(&inner.response).usage.take());
                inner.shared().send_state(inner.client(), idle);
            }
        }
    });
}

fn respond(inner: &Arc<TurnState>, responder: Responder, outcome: Result<StopReason, ErrorObject>) {
    match outcome {
        Ok(stop_reason) => {
            let mut response = lock(&inner.response);
            response.stop_reason = stop_reason;
            responder.ok(&*response);
        }
        Err(error) => responder.err(error),
    }
}
