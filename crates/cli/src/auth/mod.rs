//! `attache auth`: login, logout and login status of agents.
//!
//! The agent says which ways there are. Some it carries out itself, asking for a page to be visited
//! perhaps; some run its program in the terminal; some want variables in its environment.
//! `login.rs` does them, `status.rs` shows the status, `store.rs` keeps variables and credentials
//! of agents where the user wants that, `adopt.rs` finds an agent for those that have none,
//! `ask.rs` and `question.rs` talk to the user.
//!
//! What never happens here: a credential is sent in a message, printed, written to a file without
//! consent, or given to another agent than the one that it was stored for; a method of an unknown
//! type is called; a page is opened unasked.

mod adopt;
pub(crate) mod ask;
mod login;
mod question;
mod status;
mod terminal;

use std::collections::BTreeMap;
use std::time::Duration;

use attache::client::{AgentHandle, Client};
use attache::wire::v1::AuthMethod;
use serde_json::{Value, json};

pub(crate) use login::login;
pub(crate) use status::{logout, status};

use crate::agents::AgentSpec;
use crate::connect::{ConnectOptions, client, connect};
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::forms::clean;
use crate::runtime::{Interrupts, runtime};

/// Runs a command of this kind until it is done or the user wants it to stop. While the agent's
/// program has the terminal, keys are meant for that.
fn until_stopped(work: impl Future<Output = Result<()>>) -> Result<()> {
    let stopped = async {
        let mut interrupts = Interrupts::new();
        loop {
            interrupts.next().await;
            if !terminal::is_taken() {
                break;
            }
        }
    };
    runtime(async {
        tokio::select! {
            done = work => done,
            () = stopped => Err(Failure::interrupted()),
        }
    })
}

/// The name of a login method, for people.
fn kind(method: &AuthMethod) -> &'static str {
    match method {
        AuthMethod::Agent(_) => "agent",
        AuthMethod::Terminal(_) => "terminal",
        AuthMethod::EnvVar(_) => "env_var",
        _ => "unknown",
    }
}

/// A way to log in, for scripts.
pub(crate) fn method_json(method: &AuthMethod) -> Value {
    let mut value = serde_json::to_value(method).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        // A method without a type is the agent's own (AUTH-07).
        object.entry("type").or_insert_with(|| json!(kind(method)));
    }
    value
}

/// A way to log in, in a line.
pub(crate) fn method_text(method: &AuthMethod) -> String {
    let (Some(id), Some(name)) = (method.id(), method.name()) else {
        return "a way that is not known here".to_owned();
    };
    let (how, description) = match method {
        AuthMethod::Terminal(method) => (" (in the terminal)".to_owned(), &method.description),
        AuthMethod::EnvVar(method) => {
            let names: Vec<&str> = method.vars.iter().map(|variable| variable.name.as_str()).collect();
            (format!(" (sets {})", names.join(", ")), &method.description)
        }
        AuthMethod::Agent(method) => (String::new(), &method.description),
        _ => (String::new(), &None),
    };
    let description = description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    clean(&format!("{id}  {name}{how}{description}"))
}

/// A client with the capabilities that a login needs.
fn login_client(cx: &Cx, spec: &AgentSpec) -> Client {
    let mut client = client(Duration::from_secs(10));
    if ask::can_ask() {
        client = client.elicitation_forms();
        // AUTH-09: only where its program can be run.
        if spec.program().is_some() {
            client = client.terminal_auth();
        }
    }
    if ask::can_ask() || cx.flags.auth.yes {
        client = client.elicitation_urls();
    }
    client
}

/// What is done with a line.
type OnLine = Box<dyn FnMut(&str) + Send>;

/// Connects. Nothing is authenticated unless there are credentials for it.
async fn reach(
    cx: &Cx,
    spec: &AgentSpec,
    client: Client,
    credentials: BTreeMap<String, String>,
) -> Result<AgentHandle> {
    let output = cx.output.clone();
    // Agents often print instructions for the login there.
    let wanted = !output.strict && cx.args.command().name == "login";
    let on_stderr =
        wanted.then(|| -> OnLine { Box::new(move |line| output.tell(format_args!("  | {}", clean(line)))) });
    let options = ConnectOptions {
        client,
        cwd: cx.cwd.clone(),
        wire: None,
        on_stderr,
        timeout: cx.config.settings.start_timeout,
        credentials,
        must_authenticate: false,
        protocol: cx.config.settings.protocol.clone(),
        versions: crate::versions::file(&cx.paths),
    };
    connect(spec, options).await
}

/// Whether the agent lets the user work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    LoggedIn,
    LoginNeeded,
    /// The agent needs no login.
    NotNeeded,
    /// Neither the agent nor a session can tell.
    Unknown,
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Standing::LoggedIn => "authenticated",
            Standing::LoginNeeded => "unauthenticated",
            Standing::NotNeeded => "not_required",
            Standing::Unknown => "unknown",
        }
    }
}

/// Finds out whether a session can be started, by starting one: the agent has no better way to
/// tell.
async fn probe(cx: &Cx, agent: &AgentHandle) -> Result<Standing> {
    match agent.new_session(&cx.cwd).await {
        Ok(session) => {
            let _ = session.close().await;
            Ok(if agent.auth_methods().is_empty() { Standing::NotNeeded } else { Standing::LoggedIn })
        }
        Err(error) if error.is_auth_required() => Ok(Standing::LoginNeeded),
        Err(error @ attache::Error::Closed(_)) => Err(error.into()),
        Err(_) => Ok(Standing::Unknown),
    }
}
