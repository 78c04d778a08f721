//! `attache prompt`: a prompt for a session of this directory.

use std::path::Path;

use serde_json::json;

#[cfg(unix)]
use super::ask::Answered;
use super::exec::{end, wire_log};
use super::input;
use super::permits::Permits;
#[cfg(unix)]
use super::protocol::Answer;
use super::protocol::PromptRequest;
use super::renderer::{Local, Renderer};
use super::setup::SessionSetup;
#[cfg(unix)]
use super::spinner::Spinner;
use crate::config::{Source, keys};
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Kind, Result};
use crate::output::{Format, Mark, count};
use crate::runtime::runtime;
use crate::session_store::{Record, Scope, Store, boundary};

/// The open session that is meant, in this directory or above it.
pub(crate) fn find(cx: &Cx, setup: &SessionSetup) -> Result<Record> {
    let name = cx.flags.prompt.session.as_deref();
    let scope = Scope::new(&setup.spec, &cx.cwd, name);
    if let Some(record) = Store::new(&cx.paths).route(&scope)? {
        return Ok(record);
    }
    let agent = match (&cx.args.agent, cx.flags.agent.as_deref()) {
        (Some(agent), _) => format!(" {agent}"),
        (None, Some(command)) => format!(" --agent {}", crate::agents::join([command])),
        (None, None) => String::new(),
    };
    let name = name.map(|name| format!(" --name {}", crate::agents::join([name]))).unwrap_or_default();
    let failure = Failure::new(
        Kind::NoSession,
        format_args!("no session in this directory yet (searched up to {})", boundary(&cx.cwd).display()),
    )
    .hint(format!("start chatting: attache{agent}"))
    .hint(format!("for scripts, start one: attache{agent} sessions new{name}"));
    // A chat is not continued by itself: it may be one that was ended on purpose.
    let chatted = |record: &Record| record.cwd == cx.cwd && record.turns > 0;
    let failure = match Store::new(&cx.paths).of_agent(&scope)?.iter().find(|record| chatted(record)) {
        Some(record) => failure.hint(format!(
            "continue the last chat here in a terminal: attache -c (it is {})",
            crate::session_store::short(&record.id)
        )),
        None => failure,
    };
    // Words without a command are a prompt; a command that was mistyped is one too.
    let mistyped = cx.args.word(0).filter(|_| cx.args.path().is_empty());
    let mistyped = mistyped.filter(|word| word.len() > 3).and_then(crate::args::nearest_command);
    Err(match mistyped {
        Some(command) => failure.hint(format!("did you mean the command `{command}`?")),
        None => failure,
    })
}

/// Sends a prompt to a session.
pub(crate) fn prompt(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let permits = Permits::new(cx)?;
    let blocks = input::prompt(cx)?;
    let record = find(cx, &setup)?;
    let setup = setup.with_record(&record);
    cx.warn();
    banner(cx, &record);
    runtime(async {
        let log = wire_log(cx.output.verbose, &setup);
        let mut local = Local::new(&cx.output, log);
        let model = cx.config.settings.model.clone();
        let prompt = PromptRequest {
            blocks,
            permits,
            model,
            wait: !cx.flags.prompt.no_wait,
            attended: local.is_attended(),
            ttl: (*cx.config.source(&keys::TTL) != Source::Default).then_some(cx.config.settings.ttl),
        };
        let result = submit(cx, &record, &setup, prompt, &mut local).await;
        let mut renderer = Renderer::Local(Box::new(local));
        match result {
            Ok(Some(request)) => {
                queued(cx, &record, &request);
                Ok(())
            }
            shown => end(&mut renderer, shown).await,
        }
    })
}

fn banner(cx: &Cx, record: &Record) {
    let state = if Store::new(&cx.paths).is_owned(&record.id) { "connected" } else { "starting" };
    let routed = match cx.cwd.strip_prefix(&record.cwd) {
        Ok(inner) if inner != Path::new("") => format!(" (routed from ./{})", inner.display()),
        _ => String::new(),
    };
    let (label, id, cwd) = (record.label(), &record.id, record.cwd.display());
    cx.output.note(format_args!("session {label} ({id}) · {cwd}{routed} · agent {state}"));
}

fn queued(cx: &Cx, record: &Record, request: &str) {
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "prompt_queued",
            "acpxRecordId": record.id,
            "requestId": request,
        })),
        Format::Text => cx.output.styled(&[Mark::Queued.then(request)]),
        Format::Quiet => {}
    }
}

/// Sends the prompt to the session's owner and shows its progress. Returns the request's name if
/// the command does not wait.
#[cfg(unix)]
async fn submit(
    cx: &Cx,
    record: &Record,
    setup: &SessionSetup,
    prompt: PromptRequest,
    local: &mut Local,
) -> Result<Option<String>> {
    use super::protocol::{Incoming, RemoteCommand, Reply, Request};
    use super::reach::{needs_new_owner, reach_owner, replace_owner};

    let permits = prompt.permits.clone();
    let request = Request::new(&record.id, RemoteCommand::Prompt(Box::new(prompt)));
    // An owner that is ending closes the connection without a reply; the next one is asked then. An
    // owner that was started with fewer permissions is replaced.
    for attempt in 0..3 {
        let mut owner = reach_owner(&cx.paths, record, setup, &permits, cx.config.settings.ttl).await?;
        if owner.request(&request).await.is_err() {
            continue;
        }
        match owner.next().await {
            Ok(Some(Incoming::Reply(Reply::Failure(failure)))) => {
                if !needs_new_owner(&failure) || attempt == 2 {
                    return Err(failure);
                }
                drop(owner);
                replace_owner(&cx.paths, record, &failure).await?;
            }
            Ok(Some(Incoming::Reply(Reply::Queued { request, ahead }))) => {
                if ahead > 0 {
                    cx.output.note(format_args!("queued after {}", count(ahead, "prompt")));
                }
                if cx.flags.prompt.no_wait {
                    return Ok(Some(request));
                }
                return follow(cx, record, owner, local).await.map(|()| None);
            }
            _ => {}
        }
    }
    Err(Failure::runtime("the session's process does not accept the prompt").detail(DetailCode::OwnerGone))
}

/// Shows a prompt until it ends.
#[cfg(unix)]
async fn follow(
    cx: &Cx,
    record: &Record,
    mut owner: super::socket::OwnerConnection,
    local: &mut Local,
) -> Result<()> {
    use super::protocol::{FollowUp, Incoming, Reply};
    use crate::runtime::Interrupts;

    local.wait_for(Spinner::new(&cx.output, "waiting for the agent".to_owned()));
    let mut interrupts = Interrupts::new();
    let mut cancelled = false;
    let mut question: Option<Question> = None;
    let mut consent = PageConsent::default();
    loop {
        let reply = tokio::select! {
            biased;
            () = interrupts.next() => {
                if cancelled {
                    return Err(Failure::interrupted());
                }
                cancelled = true;
                // The end of the turn answers it.
                question = None;
                let _ = owner.send(&FollowUp::Cancel).await;
                continue;
            }
            incoming = owner.next() => match incoming {
                Ok(Some(Incoming::Wire(flow, line))) => {
                    local.line(flow, line);
                    None
                }
                Ok(Some(Incoming::Reply(reply))) => Some(reply),
                Ok(None) | Err(_) => {
                    let log = super::reach::log_file(&cx.paths, &record.id);
                    return Err(Failure::runtime("the session's process ended before the prompt did")
                        .detail(DetailCode::OwnerGone)
                        .hint(format!("its log: {}", log.display())));
                }
            },
            // Any other message withdraws the question.
            answer = ask(local, question.as_ref()) => {
                if let Some(Question { id, kind }) = question.take() {
                    consent.answered(&kind, answer.as_ref());
                    let _ = owner.send(&FollowUp::Answer { question: id, answer }).await;
                }
                continue;
            }
        };
        question = None;
        let Some(reply) = reply else {
            local.write().await.map_err(|error| Failure::write_error(&error))?;
            continue;
        };
        match reply {
            Reply::Choose { question: id, ask } => {
                question = Some(Question { id, kind: QuestionKind::Choice(ask) });
            }
            Reply::ReadLine { question: id, text } => {
                question = Some(Question { id, kind: QuestionKind::Line(text) });
            }
            Reply::Tell(text) => {
                consent.shown(&text);
                local.tell(&text).await;
            }
            Reply::Pause => local.pause().await,
            Reply::Open(url) => match consent.take(&url) {
                true => local.open(&url).await,
                false => local.tell("a page that you did not agree to was not opened").await,
            },
            Reply::Permission(notice) => {
                local.screen.permission(&notice);
                let _ = local.write().await;
            }
            Reply::Note(note) => local.note(&note).await,
            Reply::Failure(_) | Reply::Ended if cancelled => return Err(Failure::interrupted()),
            Reply::Failure(failure) => return Err(failure),
            Reply::Ended => return Ok(()),
            Reply::Queued { .. } | Reply::Cancelled(_) | Reply::Set(_) | Reply::Status(_) => {}
        }
    }
}

/// A question of the owner.
#[cfg(unix)]
struct Question {
    id: u64,
    kind: QuestionKind,
}

#[cfg(unix)]
enum QuestionKind {
    Choice(super::ask::Ask),
    Line(String),
}

#[cfg(unix)]
async fn ask(local: &mut Local, question: Option<&Question>) -> Option<Answer> {
    match question.map(|question| &question.kind) {
        Some(QuestionKind::Choice(ask)) => local.ask(ask).await.map(|answered| match answered {
            Answered::Choice(choice) => Answer::Choice(choice),
            Answered::Instead(prompt) => Answer::Instead(prompt),
        }),
        Some(QuestionKind::Line(text)) => local.line_for(text).await.map(Answer::Line),
        None => loop {
            local.turn().await;
        },
    }
}

/// Which page the user has agreed to visit: one whose address was shown just before the question
/// that was answered with yes.
#[cfg(unix)]
#[derive(Default)]
struct PageConsent {
    lines: Vec<String>,
    agreed: bool,
}

#[cfg(unix)]
impl PageConsent {
    /// The lines that are remembered between two questions; an address is among the first.
    const MOST: usize = 64;

    fn shown(&mut self, text: &str) {
        if std::mem::take(&mut self.agreed) {
            self.lines.clear();
        }
        if self.lines.len() < Self::MOST {
            self.lines.push(text.to_owned());
        }
    }

    fn answered(&mut self, question: &QuestionKind, answer: Option<&Answer>) {
        let yes = matches!(answer, Some(Answer::Line(line)) if line.trim() == "y");
        self.agreed = yes && matches!(question, QuestionKind::Line(_));
        if !self.agreed {
            self.lines.clear();
        }
    }

    /// Whether this page may be opened; the consent is used up.
    fn take(&mut self, url: &str) -> bool {
        let lines = std::mem::take(&mut self.lines);
        let agreed = std::mem::take(&mut self.agreed);
        agreed
            && crate::forms::is_web(url)
            && lines.iter().any(|line| line.split_whitespace().any(|word| word == url))
    }
}

/// Without sockets there is no owner: each prompt restores the session in this process.
#[cfg(not(unix))]
async fn submit(
    cx: &Cx,
    record: &Record,
    setup: &SessionSetup,
    prompt: PromptRequest,
    local: &mut Local,
) -> Result<Option<String>> {
    use super::exec::stoppable;
    use super::worker::{PromptJob, Worker};

    let Some(_lock) = Store::new(&cx.paths).own(&record.id)? else {
        return Err(Failure::runtime("another prompt runs in this session; wait for it"));
    };
    let taken = std::mem::replace(local, Local::new(&cx.output, wire_log(cx.output.verbose, setup)));
    let mut renderer = Renderer::Local(Box::new(taken));
    let work =
        PromptJob { blocks: prompt.blocks, permits: prompt.permits, model: prompt.model, request: None };
    let mut worker = Worker::new(&cx.paths, setup.clone(), record, cx.output.verbose);
    let result =
        stoppable(async |mut stop| worker.prompt(work, &mut renderer, &mut stop, |_| {}).await).await;
    worker.shutdown(false).await;
    if let Renderer::Local(shown) = renderer {
        *local = *shown;
    }
    result.map(|_| None)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn answer(consent: &mut PageConsent, answer: &str) {
        let answer = Answer::Line(answer.to_owned());
        consent.answered(&QuestionKind::Line("Visit this page?".to_owned()), Some(&answer));
    }

    #[test]
    fn only_a_page_that_was_shown_and_agreed_to_is_opened() {
        const PAGE: &str = "https://example.org/login";
        let mut consent = PageConsent::default();
        assert!(!consent.take(PAGE), "nothing was asked");
        consent.shown(PAGE);
        assert!(!consent.take(PAGE), "nothing was answered");
        consent.shown("  https://example.org/login");
        consent.shown("  the host is example.org");
        answer(&mut consent, "n");
        assert!(!consent.take(PAGE), "it was declined");
        for page in ["https://example.org/other", "file:///etc/passwd", "https://example.org/login?x"] {
            consent.shown(PAGE);
            answer(&mut consent, "y");
            assert!(!consent.take(page), "{page}");
            assert!(!consent.take(PAGE), "a refusal uses the consent up");
        }
        for page in ["file:///etc/passwd", "javascript:alert(1)"] {
            consent.shown(page);
            answer(&mut consent, "y");
            assert!(!consent.take(page), "{page}");
        }
        consent.shown(PAGE);
        answer(&mut consent, " y ");
        assert!(consent.take(PAGE));
        assert!(!consent.take(PAGE), "once is once");
        // A yes to an earlier question is not one to a page that came later.
        answer(&mut consent, "y");
        consent.shown(PAGE);
        assert!(!consent.take(PAGE));
    }
}
