//! `attache auth login`

use std::collections::BTreeMap;

use attache::client::{AgentHandle, ConnectionEvent};
use attache::wire::v1::{AuthMethod, AuthMethodEnvVar, AuthMethodId};
use serde_json::json;

use super::{
    Standing, adopt, ask, clean, kind, login_client, method_text, probe, question, reach, terminal,
    until_stopped,
};
use crate::agents::AgentSpec;
use crate::credentials;
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};
use crate::output::Format;

/// Logs in.
pub(crate) fn login(cx: &Cx) -> Result<()> {
    let spec = cx.agent()?;
    until_stopped(run(cx, spec))
}

async fn run(cx: &Cx, spec: AgentSpec) -> Result<()> {
    if !cx.can_have_credentials(&spec) && cx.flags.auth.save {
        return Err(Failure::usage(
            "credentials are kept only for agents that have a name in your own settings",
        )
        .hint(format!(
            "give it one: attache config set agents.NAME.command {}",
            crate::agents::join([spec.identity().as_str()])
        )));
    }
    let agent = reach(cx, &spec, login_client(cx, &spec), BTreeMap::new()).await?;
    if agent.auth_methods().is_empty() {
        let failure = Failure::runtime(format_args!("`{}` offers no login method", spec.name));
        let standing = probe(cx, &agent).await.unwrap_or(Standing::Unknown);
        agent.shutdown().await;
        return match standing {
            Standing::NotNeeded => {
                tell(cx, &spec, None, standing);
                Ok(())
            }
            _ => Err(failure.hint("log in with the agent's own program")),
        };
    }
    let adopted = adopt::adopt(cx, &spec, agent.auth_methods())?;
    let named = cx.flags.auth.method.as_deref();
    if !adopted.is_empty() && named.is_none_or(|named| adopted.contains_key(named)) {
        agent.shutdown().await;
        return with_credentials(cx, &spec, adopted).await;
    }
    let method = choose(cx, &spec, &agent).await?;
    let standing = match &method {
        AuthMethod::Agent(method) => by_agent(cx, &spec, &agent, &method.id).await?,
        AuthMethod::Terminal(method) => {
            // Its program is about to be run a second time, and may keep its login in a file that
            // only one can hold.
            agent.shutdown().await;
            terminal::login(&spec, &cx.cwd, method).await?;
            again(cx, &spec).await?
        }
        AuthMethod::EnvVar(method) => {
            agent.shutdown().await;
            by_variables(cx, spec.clone(), method).await?
        }
        // AUTH-21: never chosen.
        _ => return Err(Failure::runtime("unknown login method")),
    };
    tell(cx, &spec, Some(&method), standing);
    if standing == Standing::LoginNeeded {
        let id = method.id().map(AuthMethodId::as_str).unwrap_or_default();
        return Err(Failure::runtime(format_args!("`{}` still requires a login after `{id}`", spec.name))
            .detail(DetailCode::AuthFailed));
    }
    Ok(())
}

/// The login is one that is there already, and only now belongs to this agent.
async fn with_credentials(cx: &Cx, spec: &AgentSpec, credentials: BTreeMap<String, String>) -> Result<()> {
    let agent = reach(cx, spec, login_client(cx, spec), credentials).await?;
    let standing = probe(cx, &agent).await?;
    agent.shutdown().await;
    tell(cx, spec, None, standing);
    match standing {
        Standing::LoginNeeded => {
            Err(Failure::runtime(format_args!("`{}` does not accept the credentials", spec.name))
                .detail(DetailCode::AuthFailed)
                .hint(format!(
                    "log in in another way: attache auth login {} --method METHOD",
                    spec.argument()
                )))
        }
        _ => Ok(()),
    }
}

/// The method that was named, the only one, or the one that the user picks.
async fn choose(cx: &Cx, spec: &AgentSpec, agent: &AgentHandle) -> Result<AuthMethod> {
    // AUTH-21: a method of an unknown type cannot be chosen.
    let methods: Vec<&AuthMethod> =
        agent.auth_methods().iter().filter(|method| method.id().is_some()).collect();
    let list = || methods.iter().map(|method| method_text(method)).collect::<Vec<_>>();
    if let Some(wanted) = cx.flags.auth.method.as_deref() {
        let found = methods.iter().find(|method| method.id().is_some_and(|id| id.as_str() == wanted));
        return found.map(|method| (*method).clone()).ok_or_else(|| {
            let mut failure =
                Failure::usage(format_args!("`{}` has no way to log in called `{wanted}`", spec.name));
            failure.hints.extend(list());
            if !ask::can_ask() {
                failure = failure.hint("ways that need a terminal are only there in one");
            }
            failure
        });
    }
    match methods.as_slice() {
        [] => {
            Err(Failure::runtime(format_args!("`{}` offers no login method that is known here", spec.name)))
        }
        [only] => Ok((*only).clone()),
        several if ask::can_ask() => {
            cx.output.tell(format_args!("Ways to log in to {}:", spec.name));
            for (at, method) in several.iter().enumerate() {
                cx.output.tell(format_args!("  {}  {}", at + 1, method_text(method)));
            }
            let chosen = ask::choice(several.len()).await?.and_then(|at| several.get(at));
            chosen.map(|method| (*method).clone()).ok_or_else(Failure::interrupted)
        }
        _ => {
            let mut failure = Failure::usage(format_args!(
                "`{}` has several ways to log in; say which with --method",
                spec.name
            ));
            failure.hints.extend(list());
            Err(failure)
        }
    }
}

/// The agent does it; meanwhile it may ask. No credential is passed.
// AUTH-20
async fn by_agent(cx: &Cx, spec: &AgentSpec, agent: &AgentHandle, id: &AuthMethodId) -> Result<Standing> {
    let mut events = agent.events();
    let mut done = std::pin::pin!(agent.authenticate(id.clone()));
    let limit = cx.config.settings.timeout;
    let mut late = std::pin::pin!(async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    });
    cx.output.note(format_args!("logging in to {} with `{id}`", spec.name));
    let outcome = loop {
        let event = async {
            match &mut events {
                Some(events) => events.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = &mut done => break outcome,
            event = event => match event {
                Some(ConnectionEvent::Elicitation(asked)) => {
                    // The question is left alone when the login ends without it.
                    tokio::select! {
                        outcome = &mut done => break outcome,
                        answered = question::answer(cx, &spec.name, asked) => answered?,
                    }
                }
                Some(ConnectionEvent::ElicitationComplete(_)) => cx.output.tell("that is done"),
                Some(_) => {}
                None => events = None,
            },
            () = &mut late => {
                return Err(Failure::new(crate::error::Kind::Timeout, "the login took too long"));
            }
        }
    };
    outcome.map_err(|error| {
        let required = error.is_auth_required();
        let failure = Failure::from(error).context(format_args!("`{}` does not accept the login", spec.name));
        if required { failure } else { failure.detail(DetailCode::AuthFailed) }
    })?;
    drop(events);
    let standing = probe(cx, agent).await?;
    agent.shutdown().await;
    Ok(standing)
}

/// A new connection, which finds the login that was just made.
// AUTH-13
async fn again(cx: &Cx, spec: &AgentSpec) -> Result<Standing> {
    let agent = reach(cx, spec, login_client(cx, spec), BTreeMap::new()).await?;
    let standing = probe(cx, &agent).await?;
    agent.shutdown().await;
    Ok(standing)
}

/// The agent is started with variables that the user gives.
async fn by_variables(cx: &Cx, mut spec: AgentSpec, method: &AuthMethodEnvVar) -> Result<Standing> {
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut missing = Vec::new();
    if let Some(link) = method.link.as_ref().filter(|_| ask::can_ask()) {
        cx.output.tell(format_args!("get it at {}", clean(link)));
    }
    for variable in &method.vars {
        let name = &variable.name;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Failure::runtime("the agent wants a variable that cannot be one"));
        }
        let there = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if there || spec.env.iter().any(|(known, _)| known == name) {
            continue;
        }
        if !ask::can_ask() {
            if !variable.optional {
                missing.push(name.as_str());
            }
            continue;
        }
        let label = variable.label.as_deref().unwrap_or(name);
        let optional = if variable.optional { " (optional)" } else { "" };
        let question = format!("{}{optional}: ", clean(label));
        let answer =
            if variable.is_secret() { ask::secret(&question).await? } else { ask::line(&question).await? };
        match answer.filter(|answer| !answer.is_empty()) {
            Some(value) => {
                given.insert(name.clone(), value);
            }
            None if variable.optional => {}
            None => return Err(Failure::interrupted()),
        }
    }
    if !missing.is_empty() {
        return Err(Failure::runtime(format_args!(
            "`{}` needs {} in its environment",
            spec.name,
            missing.join(", ")
        ))
        .detail(DetailCode::AuthRequired)
        .hint(format!("set them, or run `attache auth login {}` in a terminal", spec.argument())));
    }
    // With --save, variables of --env are saved as well.
    let wanted = |name: &str| method.vars.iter().any(|variable| variable.name == name);
    let named: Vec<(String, String)> = spec.env.iter().filter(|(name, _)| wanted(name)).cloned().collect();
    spec.env.extend(given.clone());
    let standing = again(cx, &spec).await?;
    if standing == Standing::LoginNeeded {
        return Ok(standing);
    }
    if cx.flags.auth.save {
        given.extend(named);
    }
    keep(cx, &spec, given).await?;
    Ok(standing)
}

/// Keeps the variables if the user agrees; they are in memory only otherwise.
async fn keep(cx: &Cx, spec: &AgentSpec, given: BTreeMap<String, String>) -> Result<()> {
    if given.is_empty() {
        return Ok(());
    }
    let file = credentials::credentials_file(&cx.paths);
    let agreed = cx.flags.auth.save
        || (cx.can_have_credentials(spec)
            && ask::can_ask()
            && ask::yes(&format!("Keep this in {}, which only you can read?", file.display())).await?);
    if !agreed {
        let names: Vec<String> = given.into_keys().collect();
        cx.output
            .note(format_args!("not kept: set {} in your environment to stay logged in", names.join(", ")));
        return Ok(());
    }
    let mut stored = credentials::load(&cx.paths)?;
    stored.agents.entry(spec.name.clone()).or_default().extend(given);
    credentials::save(&cx.paths, &stored)?;
    cx.output.note(format_args!("kept in {}; `attache auth logout` forgets it", file.display()));
    Ok(())
}

fn tell(cx: &Cx, spec: &AgentSpec, method: Option<&AuthMethod>, standing: Standing) {
    let id = method.and_then(AuthMethod::id).map(AuthMethodId::as_str);
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "auth_login",
            "agent": spec.name,
            "method": id,
            "type": method.map(kind),
            "state": standing.name(),
        })),
        Format::Quiet => {}
        Format::Text => match standing {
            Standing::LoggedIn => cx.output.line(format_args!("logged in to {}", spec.name)),
            Standing::NotNeeded => cx.output.line(format_args!("{} needs no login", spec.name)),
            Standing::Unknown => {
                cx.output
                    .line(format_args!("{} accepted the login; `attache doctor` shows the rest", spec.name));
            }
            Standing::LoginNeeded => {}
        },
    }
}
