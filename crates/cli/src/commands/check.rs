//! `attache check`: judges an agent, a server, a client or a recording by the rules of the
//! protocol.
//!
//! The judging is in the crate `attache-check`; here the command line becomes its options and its
//! report is printed or written.

mod bridge;
mod progress;
mod repeat;
mod server;

pub(crate) use bridge::{bridge, login};
pub(crate) use server::server;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use attache_check::model::{self, FakeModel, KnownAgent};
use attache_check::prompts::PromptKind;
use attache_check::report::{self, Emphasis, Look};
use attache_check::run::{self, Conclusion, Options, Report};
use attache_check::target::{Action, Listening, Process, Program};
use attache_check::{Baseline, Role, Target, Tier, Trace, Transport, Version, rules};
use attache_conn::private;
use attache_host::secrets::{Mask, is_secret_name};

use crate::agents::Address;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Kind, Result};
use crate::runtime::{Interrupts, runtime};
use attache_term::render::style::{Colour, Line, Style};
use progress::Progress;

/// The transport of programs.
const STDIO: [Transport; 1] = [Transport::Stdio];

/// `attache check agent -- CMD…`
pub(crate) fn agent(cx: &Cx) -> Result<()> {
    let mut options = options(cx, Role::Agent, &STDIO)?;
    if asked_something_else(cx, &options)? {
        return Ok(());
    }
    let command = agent_command(cx)?;
    // Lives as long as the run.
    let model = cx.flags.check.fake_model.then(|| FakeModel::start(None)).transpose();
    let model = model.context("the scripted model")?;
    let settings = model.as_ref().map(|model| model.environment(&command.words)).transpose();
    let settings = settings.context("the settings for the scripted model")?.unwrap_or_default();
    if model.is_some() && cx.flags.check.jobs.is_none() {
        let is_alone = KnownAgent::of_command(&command.words).is_some_and(|agent| agent.alone);
        options.jobs = if is_alone { 1 } else { options.jobs };
    }
    let target = Process::new(command.words).envs(command.env).envs(settings).envs(environment(cx)?);
    judge(cx, &target, &options)
}

/// `attache check client -- CMD… {agent} …`, or with `--listen` `-- CMD… {url} …`
pub(crate) fn client(cx: &Cx) -> Result<()> {
    let transport = match cx.flags.check.listen.as_deref() {
        Some("ws") => Transport::WebSocket,
        Some(_) => Transport::Http,
        None => Transport::Stdio,
    };
    let options = options(cx, Role::Client, &[transport])?;
    if asked_something_else(cx, &options)? {
        return Ok(());
    }
    let command = from_here(cx, cx.args.words.clone());
    let mut actions = BTreeMap::new();
    for action in &cx.flags.check.actions {
        let (name, how) = pair("action", "NAME=COMMAND", action)?;
        let action = match self::action(how)? {
            Action::Command(words) => Action::Command(from_here(cx, words)),
            signal => signal,
        };
        actions.insert(name.to_owned(), action);
    }
    if transport != Transport::Stdio {
        if command.is_empty() {
            return Err(Failure::usage("`attache check client` needs a command")
                .hint("attache check client --listen ws -- my-client --agent {url} {prompt}"));
        }
        return judge(cx, &Listening { command, actions, transport }, &options);
    }
    let has_hole = |words: &[String]| words.iter().any(|word| word.contains("{agent"));
    if !has_hole(&command) {
        return Err(Failure::usage("the client's command has no {agent} to start the checker with")
            .hint("attache check client -- my-client --agent {agent} {prompt}"));
    }
    let program = std::env::current_exe().context("the path of this program")?;
    let target = Program {
        command,
        bridge: vec![program.to_string_lossy().into_owned(), "check-bridge".to_owned()],
        actions,
        patience: options.startup(),
    };
    judge(cx, &target, &options)
}

/// `attache check trace FILE`
pub(crate) fn trace(cx: &Cx) -> Result<()> {
    let role = cx.flags.check.party.as_deref().and_then(Role::of);
    let options = options(cx, role.unwrap_or(Role::Agent), &STDIO)?;
    if asked_something_else(cx, &options)? {
        return Ok(());
    }
    let Some(path) = cx.args.word(0) else {
        return Err(Failure::usage(
            "`attache check trace` needs a recording; create one with `attache record`",
        ));
    };
    let file = File::open(path).map_err(|error| Failure::usage(format_args!("{path}: {error}")))?;
    let trace =
        Trace::read(BufReader::new(file)).map_err(|error| Failure::usage(format_args!("{path}: {error}")))?;
    finish(cx, run::judge_trace(trace, role, &options))
}

/// `--explain` and `--list` say something and run nothing.
fn asked_something_else(cx: &Cx, options: &Options) -> Result<bool> {
    if let Some(id) = &cx.flags.check.explain {
        let id = id.to_uppercase();
        let Some(rule) = rules::get(&id) else { return Err(no_rule(&id)) };
        print(cx, &report::explain(rule, look(cx)));
        return Ok(true);
    }
    if cx.flags.check.list {
        print(cx, &report::list(options.role, options.version, &options.transports, look(cx)));
        return Ok(true);
    }
    Ok(false)
}

/// The version of the protocol that is tested.
fn version(cx: &Cx) -> Version {
    let number = cx.flags.check.protocol.as_deref().and_then(|text| text.parse().ok());
    number.and_then(Version::of).unwrap_or_default()
}

fn no_rule(id: &str) -> Failure {
    let near = crate::args::nearest(id, rules::all().iter().map(|rule| rule.id));
    let failure = Failure::usage(format_args!("no rule `{id}`"));
    match near {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("rule ids look like CANCEL-05; reports list them"),
    }
}

fn judge(cx: &Cx, target: &dyn Target, options: &Options) -> Result<()> {
    if run::choose(options).is_empty() {
        return Err(Failure::usage("no scenario was chosen; `--list` lists them"));
    }
    let mut line = Progress::new(cx);
    let mut show = |progress: run::Progress<'_>| line.show(&progress);
    let report = runtime(async {
        let mut interrupts = Interrupts::new();
        Ok(run::run_until(target, options, interrupts.next(), &mut show).await)
    });
    line.clear();
    finish(cx, report?)
}

/// Writes what was asked for; the exit code is 0 if all is well, 1 if not, 2 if there was nothing
/// to judge.
fn finish(cx: &Cx, mut report: Report) -> Result<()> {
    let fixed = baseline(cx)?.map(|baseline| baseline.apply(&mut report)).unwrap_or_default();
    let report = &report;
    let mask = mask(cx)?;
    let file = |format: &str| {
        let text = rendered(report, format, look(cx))?;
        Ok::<_, Failure>(match format {
            "json" => mask.frame_tokens(&text).into_owned(),
            _ => mask.tokens(&text).into_owned(),
        })
    };
    for (format, path) in wanted_reports(cx)? {
        written(path, &file(format)?)?;
    }
    if let Some(dir) = &cx.flags.check.traces {
        write_traces(report, Path::new(dir), &mask)?;
    }
    let format = cx.flags.check.format.as_deref().or(cx.flags.format.as_deref()).unwrap_or("text");
    match &cx.flags.check.out {
        Some(path) => {
            written(path, &file(format)?)?;
        }
        None if format == "text" => print(cx, &report::terminal(report, look(cx))),
        None if format == "json" => cx.output.json_line(&report::json(report).to_string()),
        None => cx.output.print(&rendered(report, format, look(cx))?),
    }
    let kind = match &report.conclusion {
        _ if report.interrupted.is_some() => Kind::Interrupted,
        Conclusion::CouldNotRun(_) => Kind::Usage,
        _ if report.broken().any(|outcome| !outcome.known) => Kind::Runtime,
        _ => return content(cx, report, &fixed),
    };
    let mut failure = Failure::new(kind, "see the report");
    failure.shown = true;
    Err(failure)
}

/// What else the user wants of a run in which nothing unknown was broken.
fn content(cx: &Cx, report: &Report, fixed: &[&str]) -> Result<()> {
    if !fixed.is_empty() {
        let list = fixed.join(", ");
        return Err(Failure::runtime(format_args!("the baseline lists rules that are kept: {list}"))
            .hint("delete their lines"));
    }
    let mandatory = report.mandatory();
    match cx.flags.check.require_coverage {
        Some(wanted) if mandatory.percent() < wanted => Err(Failure::runtime(format_args!(
            "{} % of the mandatory rules were seen, and --require-coverage asks for {wanted} %",
            mandatory.percent()
        ))
        .hint("-v says of each rule why it was not seen; --prompt and --action help")),
        _ => Ok(()),
    }
}

/// The failures that are known.
fn baseline(cx: &Cx) -> Result<Option<Baseline>> {
    let Some(path) = &cx.flags.check.baseline else { return Ok(None) };
    let failed = |why: &dyn std::fmt::Display| {
        Failure::usage(format_args!("the baseline {path} cannot be used: {why}"))
    };
    let text = std::fs::read_to_string(cx.cwd.join(path)).map_err(|error| failed(&error))?;
    Baseline::parse(&text).map(Some).map_err(|why| failed(&why))
}

/// The reports that are wanted, each a format and a file.
fn wanted_reports(cx: &Cx) -> Result<Vec<(&str, &str)>> {
    let formats = ["text", "json", "junit", "html", "badge", "baseline"];
    let mut wanted = Vec::new();
    for text in &cx.flags.check.reports {
        let (format, path) = pair("report", "FORMAT=FILE", text)?;
        if !formats.contains(&format) {
            let formats = formats.join(", ");
            return Err(Failure::usage(format_args!("a report is one of {formats}, not `{format}`")));
        }
        wanted.push((format, path));
    }
    Ok(wanted)
}

/// A report that cannot be written is no verdict, so it must not look like one to scripts.
fn written(path: &str, text: &str) -> Result<()> {
    private::write(Path::new(path), text.as_bytes())
        .map_err(|error| Failure::usage(format_args!("the report cannot be written: {error}")))
}

/// Keys that the agent under test may repeat do not belong into files.
fn mask(cx: &Cx) -> Result<Mask> {
    let given = environment(cx)?.into_iter().filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value);
    let token = server::token(cx)?;
    Ok(Mask::from_env().with(given).with(token).with(crate::credentials::secrets(&cx.paths)))
}

fn write_traces(report: &Report, dir: &Path, mask: &Mask) -> Result<()> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::usage(format_args!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    for scene in &report.scenes {
        let path = dir.join(format!("{}.jsonl", scene.name));
        let mut trace = Vec::new();
        scene.trace.write(&mut trace).map_err(|error| failed(&path, error))?;
        let text: String = String::from_utf8_lossy(&trace)
            .lines()
            .flat_map(|line| [mask.frame_tokens(line).into_owned(), "\n".to_owned()])
            .collect();
        private::write(&path, text.as_bytes()).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn rendered(report: &Report, format: &str, look: Look) -> Result<String> {
    Ok(match format {
        "text" => report::plain(&report::terminal(report, Look { whole: true, ..look })),
        "json" => format!("{}\n", report::json(report)),
        "junit" => report::junit(report),
        "html" => report::html(report),
        "badge" => report::badge(report),
        "baseline" => Baseline::text(report),
        other => {
            return Err(Failure::usage(format_args!("a report is text, json, junit or html, not `{other}`")));
        }
    })
}

fn look(cx: &Cx) -> Look {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Look { width: columns.unwrap_or(110).max(60), all: cx.flags.verbose, whole: false }
}

fn print(cx: &Cx, lines: &[report::Line]) {
    let styled = |line: &report::Line| {
        let style = match line.emphasis {
            Emphasis::Strong => Style::BOLD,
            Emphasis::Weak => Style::DIM,
            Emphasis::Good => Style::of(Colour::Green),
            Emphasis::Bad => Style::of(Colour::Red),
            Emphasis::Doubtful => Style::of(Colour::Yellow),
            _ => Style::PLAIN,
        };
        Line::styled(&*line.text, style)
    };
    cx.output.rows(&lines.iter().map(styled).collect::<Vec<_>>());
}

fn options(cx: &Cx, role: Role, transports: &[Transport]) -> Result<Options> {
    // Checked before a run that takes minutes.
    wanted_reports(cx)?;
    let baseline = baseline(cx)?;
    let mut options = Options::new(role);
    options.known = baseline.iter().flat_map(Baseline::rules).map(str::to_owned).collect();
    options.version = version(cx);
    options.transports = transports.to_vec();
    for list in &cx.flags.check.only {
        for id in list.split(',').map(str::trim).filter(|id| !id.is_empty()) {
            let id = id.to_uppercase();
            rules::get(&id).ok_or_else(|| no_rule(&id))?;
            options.only.push(id);
        }
    }
    let scenarios = attache_check::scenarios(role);
    let of_version = scenarios
        .iter()
        .filter(|scenario| scenario.versions.contains(&options.version) && scenario.is_over(transports));
    let known: Vec<&str> = of_version.map(|scenario| scenario.name).collect();
    for name in &cx.flags.check.scenarios {
        if !known.contains(&name.as_str()) {
            let failure = Failure::usage(format_args!("no scenario `{name}`"));
            return Err(match crate::args::nearest(name, known.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("`--list` lists them"),
            });
        }
        options.scenarios.push(name.to_owned());
    }
    for name in &cx.flags.check.tiers {
        let tier = Tier::of(name).ok_or_else(|| Failure::usage(format_args!("no tier `{name}`")))?;
        options.tiers.push(tier);
    }
    if cx.flags.check.fake_model {
        model::prompts(&mut options.prompts);
    }
    for prompt in &cx.flags.check.prompts {
        let (kind, text) = pair("prompt", "KIND=TEXT", prompt)?;
        let Some(kind) = PromptKind::of(kind) else {
            let kinds: Vec<&str> = PromptKind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(Failure::usage(format_args!("--prompt is for {}, not `{kind}`", kinds.join(", "))));
        };
        options.prompts.set(kind, text);
    }
    options.login = cx.flags.check.login.clone();
    options.sessions = cx.flags.check.sessions.unwrap_or(options.sessions);
    options.session_dir = cx.flags.check.session_dir.clone().map(Into::into);
    // A scenario that was named is wanted, also if it is an unkind one.
    options.faults = cx.flags.check.faults || !options.scenarios.is_empty();
    options.deadline = cx.flags.check.deadline.unwrap_or(options.deadline);
    options.startup_deadline = cx.flags.check.startup_deadline;
    options.repeat = repeat::of(std::env::args());
    options.jobs = cx.flags.check.jobs.unwrap_or(options.jobs);
    Ok(options)
}

fn pair<'a>(flag: &str, form: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    let found = text.split_once('=').filter(|(name, _)| !name.is_empty());
    found.ok_or_else(|| Failure::usage(format_args!("--{flag} is {form}, not `{text}`")))
}

/// How an agent is started.
struct AgentCommand {
    words: Vec<String>,
    env: Vec<(String, String)>,
}

/// The agent to start: the words after `--`, or an agent that is known here.
fn agent_command(cx: &Cx) -> Result<AgentCommand> {
    let words = &cx.args.words;
    let spec = match words.as_slice() {
        [] if cx.args.agent.is_none() && cx.flags.agent.is_none() => {
            return Err(Failure::usage("`attache check agent` needs an agent")
                .hint("attache check agent -- my-agent --acp"));
        }
        [] => cx.agent()?,
        [name] => cx.config.resolve_agent(name)?,
        words => return Ok(AgentCommand { words: words.to_vec(), env: Vec::new() }),
    };
    let Address::Command { command, args } = &spec.address else {
        return Err(Failure::usage("only agents that run as a program can be checked"));
    };
    let command: Vec<String> = [command].into_iter().chain(args).cloned().collect();
    Ok(AgentCommand { words: command, env: spec.env.clone() })
}

/// A client runs in a directory of its scenario. A program that is named by a path is the one that
/// the user sees from here.
fn from_here(cx: &Cx, mut words: Vec<String>) -> Vec<String> {
    if let Some(program) = words.first_mut()
        && program.contains('/')
    {
        *program = cx.cwd.join(&*program).to_string_lossy().into_owned();
    }
    words
}

fn environment(cx: &Cx) -> Result<Vec<(String, String)>> {
    let assignments = cx.flags.env.iter();
    assignments
        .map(|text| pair("env", "NAME=VALUE", text).map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

/// How a client is made to do something: a signal's name, or a command line.
fn action(how: &str) -> Result<Action> {
    if let Some(signal) = how.strip_prefix("SIG") {
        return Ok(Action::Signal(signal.to_owned()));
    }
    match Address::parse(how)? {
        Address::Command { command, args } => {
            Ok(Action::Command([command].into_iter().chain(args).collect()))
        }
        _ => Err(Failure::usage(format_args!("--action is a signal or a command, not `{how}`"))),
    }
}
