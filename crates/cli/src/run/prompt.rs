//! `attache prompt`: a prompt for a session of this directory.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::exec::{end, log};
use super::front::{Front, Local};
use super::input;
use super::permits::Permits;
use super::setup::Setup;
use super::signals::runtime;
use crate::cx::Cx;
use crate::error::{Failure, Kind, Result};
use crate::output::{Format, Mark, count};
use crate::session_store::{Record, Scope, Store, boundary};

/// The open session that is meant, in this directory or above it.
pub(crate) fn find(cx: &Cx, setup: &Setup) -> Result<Record> {
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
        format_args!("there is no session here (searched up to {})", boundary(&cx.cwd).display()),
    )
    .hint(format!("create one: attache{agent} sessions new{name}"));
    // Words without a command are a prompt; a command that was mistyped is one too.
    let mistyped = cx.args.word(0).filter(|_| cx.args.path().is_empty());
    let mistyped = mistyped.filter(|word| word.len() > 3).and_then(crate::args::nearest_command);
    Err(match mistyped {
        Some(command) => failure.hint(format!("or was the command `{command}` meant?")),
        None => failure,
    })
}

/// How long the owner stays when there is nothing to do.
pub(super) fn ttl(cx: &Cx) -> Duration {
    cx.config.seconds("ttl").unwrap_or(Duration::from_secs(300))
}

/// Sends a prompt to a session.
pub(crate) fn prompt(cx: &Cx) -> Result<()> {
    let setup = Setup::new(cx)?;
    let permits = Permits::new(cx)?;
    let blocks = input::prompt(cx)?;
    let record = find(cx, &setup)?;
    let setup = setup.with_record(&record);
    cx.warn();
    banner(cx, &record);
    runtime(async {
        let log = log(cx, &setup)?;
        let mut local = Local::new(&cx.output, log);
        let model = cx.config.text("model").filter(|_| cx.config.is_said("model")).map(str::to_owned);
        let message = json!({
            "do": "prompt",
            "prompt": blocks,
            "permits": permits.to_json(),
            "wait": !cx.flags.prompt.no_wait,
            "attended": local.is_attended(),
            "model": model,
        });
        let result = submit(cx, &record, &setup, &permits, message, &mut local).await;
        let mut front = Front::Local(Box::new(local));
        match result {
            Ok(Some(request)) => {
                queued(cx, &record, &request);
                Ok(())
            }
            shown => end(&mut front, shown).await,
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

/// Hands the prompt to the session's owner and shows what comes of it. Gives back the request's name if nobody waits for it.
#[cfg(unix)]
async fn submit(
    cx: &Cx,
    record: &Record,
    setup: &Setup,
    permits: &Permits,
    mut message: serde_json::Value,
    local: &mut Local,
) -> Result<Option<String>> {
    use super::ipc::{Heard, VERSION, failure_from_json};
    use super::reach::{needs_new_owner, reach_owner, replace_owner};

    if let Some(object) = message.as_object_mut() {
        object.insert("version".to_owned(), json!(VERSION));
        object.insert("session".to_owned(), json!(record.id));
        if cx.config.is_said("ttl") {
            object.insert("ttl".to_owned(), json!(ttl(cx).as_secs_f64()));
        }
    }
    let mut link = None;
    let mut request = None;
    // An owner that is about to leave lets go without a word; the next one is asked then. One that was started for less is
    // replaced.
    for attempt in 0..3 {
        let mut reached = reach_owner(&cx.paths, record, setup, permits, ttl(cx)).await?;
        if reached.send(&message).await.is_err() {
            continue;
        }
        match reached.hear().await {
            Ok(Heard::Own(value)) => {
                if let Some(failure) = value.get("failure").map(failure_from_json) {
                    if needs_new_owner(&failure) && attempt < 2 {
                        drop(reached);
                        replace_owner(&cx.paths, record, &failure).await?;
                        continue;
                    }
                    return Err(failure);
                }
                request = value.get("queued").and_then(|id| id.as_str()).map(str::to_owned);
                let ahead = value.get("ahead").and_then(serde_json::Value::as_u64).unwrap_or_default();
                if ahead > 0 {
                    let (ahead, come) = (count(ahead, "prompt"), if ahead == 1 { "comes" } else { "come" });
                    cx.output.note(format_args!("{ahead} {come} before this one"));
                }
                link = Some(reached);
                break;
            }
            _ => continue,
        }
    }
    let Some(link) = link else {
        return Err(Failure::runtime("the session's process does not take the prompt").detail("OWNER_GONE"));
    };
    if cx.flags.prompt.no_wait {
        return Ok(request);
    }
    follow(cx, record, link, local).await.map(|()| None)
}

/// Shows the lines of a prompt until it ends.
#[cfg(unix)]
async fn follow(cx: &Cx, record: &Record, mut link: super::ipc::Link, local: &mut Local) -> Result<()> {
    use super::ask::Ask;
    use super::ipc::{Heard, failure_from_json};
    use super::signals::interrupted;
    use attache::Flow;

    /// What was heard, free of the buffer it came in.
    enum Got {
        Lines,
        Own(serde_json::Value),
        End,
    }
    let mut signal = Box::pin(interrupted());
    let mut told = false;
    let mut question: Option<Question> = None;
    let mut consent = PageConsent::default();
    loop {
        let got = tokio::select! {
            biased;
            () = &mut signal => {
                if told {
                    return Err(Failure::interrupted());
                }
                told = true;
                signal = Box::pin(interrupted());
                let _ = link.send(&json!({ "cancel": true })).await;
                continue;
            }
            heard = link.hear() => match heard {
                Ok(Heard::Line(flow, line)) => {
                    local.line(if flow == Flow::In { Flow::In } else { Flow::Out }, line);
                    Got::Lines
                }
                Ok(Heard::Own(value)) => Got::Own(value),
                Ok(Heard::End) | Err(_) => Got::End,
            },
            // Whatever else comes takes the question back.
            answer = asking(local, question.as_ref()) => {
                if let Some(Question { id, kind }) = question.take() {
                    consent.answered(&kind, &answer);
                    let _ = link.send(&json!({ "answer": answer, "question": id })).await;
                }
                continue;
            }
        };
        question = None;
        match got {
            Got::Lines => {
                if let Err(error) = local.write().await {
                    return Err(Failure::unwritten(&error));
                }
            }
            Got::Own(value) => {
                let id = value.get("question").and_then(serde_json::Value::as_u64).unwrap_or_default();
                if let Some(ask) = value.get("ask").and_then(Ask::from_json) {
                    question = Some(Question { id, kind: QuestionKind::Choice(ask) });
                } else if let Some(line) = value.get("line").and_then(|line| line.as_str()) {
                    question = Some(Question { id, kind: QuestionKind::Line(line.to_owned()) });
                } else if let Some(text) = value.get("tell").and_then(|text| text.as_str()) {
                    consent.shown(text);
                    local.tell(text).await;
                } else if value.get("pause").is_some() {
                    local.pause().await;
                } else if let Some(url) = value.get("open").and_then(|url| url.as_str()) {
                    match consent.take(url) {
                        true => local.open(url).await,
                        false => local.tell("a page that you did not agree to was not opened").await,
                    }
                } else if let Some(notice) = value.get("permission").and_then(|notice| notice.as_str()) {
                    local.screen.permission(notice);
                    let _ = local.write().await;
                } else if let Some(note) = value.get("note").and_then(|note| note.as_str()) {
                    local.note(note).await;
                } else if let Some(failure) = value.get("failure") {
                    return Err(if told { Failure::interrupted() } else { failure_from_json(failure) });
                } else if value.get("end").is_some() {
                    return if told { Err(Failure::interrupted()) } else { Ok(()) };
                }
            }
            Got::End => {
                let log = super::reach::log_file(&cx.paths, &record.id);
                return Err(Failure::runtime("the session's process ended before the prompt did")
                    .detail("OWNER_GONE")
                    .hint(format!("its log: {}", log.display())));
            }
        }
    }
}

/// What the owner wants to be asked here.
#[cfg(unix)]
struct Question {
    /// Names it in the answer.
    id: u64,
    kind: QuestionKind,
}

#[cfg(unix)]
enum QuestionKind {
    Choice(super::ask::Ask),
    Line(String),
}

#[cfg(unix)]
async fn asking(local: &mut Local, question: Option<&Question>) -> serde_json::Value {
    match question.map(|question| &question.kind) {
        Some(QuestionKind::Choice(ask)) => json!(local.ask(ask).await),
        Some(QuestionKind::Line(text)) => json!(local.line_for(text).await),
        None => std::future::pending().await,
    }
}

/// Which page the user has agreed to visit: one whose address was shown just before the question that was answered with yes.
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

    fn answered(&mut self, question: &QuestionKind, answer: &serde_json::Value) {
        let yes = answer.as_str().is_some_and(|answer| answer.trim() == "y");
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

/// Without sockets there is no owner: the prompt runs here, and the session is restored for each.
#[cfg(not(unix))]
async fn submit(
    cx: &Cx,
    record: &Record,
    setup: &Setup,
    permits: &Permits,
    message: serde_json::Value,
    local: &mut Local,
) -> Result<Option<String>> {
    use super::exec::stoppable;
    use super::worker::{Work, Worker};

    let Some(_lock) = Store::new(&cx.paths).own(&record.id)? else {
        return Err(Failure::runtime("another prompt runs in this session; wait for it"));
    };
    let taken = std::mem::replace(local, Local::new(&cx.output, log(cx, setup)?));
    let mut front = Front::Local(Box::new(taken));
    let work = Work {
        blocks: serde_json::from_value(message.get("prompt").cloned().unwrap_or_default())
            .map_err(|error| Failure::runtime(error))?,
        permits: permits.clone(),
        model: message.get("model").and_then(|model| model.as_str()).map(str::to_owned),
        request: None,
    };
    let mut worker = Worker::new(&cx.paths, setup.clone(), record, cx.output.verbose);
    let result = stoppable(async |mut stop| worker.prompt(work, &mut front, &mut stop, |_| {}).await).await;
    worker.shutdown(false).await;
    if let Front::Local(shown) = front {
        *local = *shown;
    }
    result.map(|_| None)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn answer(consent: &mut PageConsent, answer: &str) {
        consent.answered(&QuestionKind::Line("Visit this page?".to_owned()), &json!(answer));
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
