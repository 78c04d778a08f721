//! The checker against the good client, which it must praise, and against each of its variants, of which it must find what is wrong and
//! nothing else. In memory and with a paused clock: no deadline takes real time.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use attache_check::run::{Options, Report, Status, run};
use attache_check::target::{Launch, Life};
use attache_check::{BoxFuture, Fresh, Opened, Party, Rule, Scenario, Target, client, rules, scenarios};
use attache_conn::Link;
use attache_mutants::Variant;
use attache_mutants::client::{Relaunch, Setup, variants};
use tokio::sync::{mpsc, oneshot};

/// A client in this process. On disk its scenarios have a directory, elsewhere only the name of one; its commands are pretended.
struct Mutant {
    variant: Option<&'static str>,
    on_disk: bool,
}

impl Target for Mutant {
    fn open<'a>(&'a self, fresh: &'a Fresh) -> BoxFuture<'a, io::Result<Opened>> {
        Box::pin(async move {
            let (our_writer, their_reader) = tokio::io::duplex(64 << 10);
            let (their_writer, our_reader) = tokio::io::duplex(64 << 10);
            let (cue, cues) = mpsc::channel(4);
            let (launch, launches) = mpsc::channel(4);
            let setup = Setup {
                variant: self.variant.map(str::to_owned),
                act: fresh.act.to_owned(),
                prompt: fresh.prompt.clone(),
                cwd: fresh.cwd.clone(),
                session: Some(client::SESSION.to_owned()),
                // The last is there to be left out (ROOT-19).
                roots: client::roots(&fresh.cwd).into_iter().chain([fresh.cwd.clone()]).collect(),
                cues: Some(cues),
                relaunch: Some(relaunch(launch)),
                processes: false,
            };
            tokio::spawn(attache_mutants::client(Link::from_io(their_reader, their_writer), setup));
            let opened = Opened::from_io(our_reader, our_writer);
            Ok(Opened { life: Box::new(User { cue, launches }), ..opened })
        })
    }

    fn is_real(&self) -> bool {
        self.on_disk
    }
}

/// A start of the agent's program, which waits to be told how it ends.
type Started = (Launch, oneshot::Sender<u8>);

fn relaunch(launches: mpsc::Sender<Started>) -> Relaunch {
    Arc::new(move |args, env| {
        let launches = launches.clone();
        Box::pin(async move {
            let (end, ended) = oneshot::channel();
            let _ = launches.send((Launch { args, env }, end)).await;
            ended.await == Ok(0)
        })
    })
}

/// The person before the client, and what they see of it.
struct User {
    cue: mpsc::Sender<String>,
    launches: mpsc::Receiver<Started>,
}

impl Life for User {
    fn act(&mut self, act: &str) -> io::Result<()> {
        self.cue.try_send(act.to_owned()).map_err(io::Error::other)
    }

    fn relaunched(&mut self, code: u8) -> BoxFuture<'_, Option<Launch>> {
        Box::pin(async move {
            let (launch, end) = self.launches.recv().await?;
            end.send(code).ok()?;
            Some(launch)
        })
    }
}

/// Scenarios about files that are really there.
const ON_DISK: [&str; 14] = [
    "one-answer",
    "error-codes",
    "bad-params",
    "outside",
    "links",
    "read-lines",
    "read-odd",
    "write-new",
    "write-read",
    "relative-path",
    "not-lent",
    "meta",
    "unknown-members",
    "fault-deaf",
];

/// Plays the scenarios that `wanted` says, those about files in a directory, the others without one.
async fn check(variant: Option<&'static str>, wanted: impl Fn(usize, &Scenario) -> bool) -> [Report; 2] {
    let all = scenarios(Party::Client);
    let wanted: Vec<&Scenario> = all
        .iter()
        .enumerate()
        .filter(|(place, scenario)| wanted(*place, scenario))
        .map(|(_, scenario)| scenario)
        .collect();
    let options = |on_disk: bool| {
        let here = wanted.iter().filter(|scenario| ON_DISK.contains(&scenario.name) == on_disk);
        Options {
            faults: true,
            scenarios: here.map(|scenario| scenario.name.to_owned()).collect(),
            ..Options::new(Party::Client)
        }
    };
    let nothing = |_: attache_check::run::Progress<'_>| {};
    [
        run(&Mutant { variant, on_disk: false }, &options(false), &mut { nothing }).await,
        run(&Mutant { variant, on_disk: true }, &options(true), &mut { nothing }).await,
    ]
}

fn failures(reports: &[Report; 2]) -> BTreeSet<&'static str> {
    let all = reports.iter().flat_map(|report| &report.rules);
    all.filter(|outcome| outcome.failed()).map(|outcome| outcome.rule.id).collect()
}

/// What was found, for people.
fn story(reports: &[Report; 2], of: &BTreeSet<&'static str>) -> String {
    let mut story = String::new();
    for report in reports {
        for outcome in report.rules.iter().filter(|outcome| of.contains(outcome.rule.id)) {
            if let Some((scene, finding)) = outcome.failures().next() {
                let name = &report.scenes[*scene].name;
                story.push_str(&format!("    {} in {name}: {}\n", outcome.rule.id, finding.why));
            }
        }
    }
    story
}

#[tokio::test(start_paused = true)]
async fn the_good_client_keeps_every_rule() {
    let reports = check(None, |_, _| true).await;
    let failed = failures(&reports);
    assert!(failed.is_empty(), "\n{}", story(&reports, &failed));
    let kept = |id: &str| {
        reports
            .iter()
            .flat_map(|report| &report.rules)
            .any(|outcome| outcome.rule.id == id && outcome.status == Status::Pass)
    };
    let mut unseen = String::new();
    let wanted = |rule: &&Rule| {
        rule.side.binds(Party::Client)
            && rule.level.is_must()
            && rule.observable
            && rule.why_not_of(Party::Client).is_none()
    };
    for rule in rules::all().iter().filter(wanted).filter(|rule| !kept(rule.id)) {
        unseen.push_str(&format!("    {}\n", rule.id));
    }
    for scene in reports.iter().flat_map(|report| &report.scenes) {
        if let Some(stop) = &scene.stop {
            unseen.push_str(&format!("    {} stopped: {stop}\n", scene.name));
        }
    }
    assert!(unseen.is_empty(), "rules that no scenario showed:\n{unseen}");
}

/// What the checker says about a variant that it should not, or does not and should. Each variant plays the scenarios that concern it and
/// every fifth of the others, by turns; with `ATTACHE_MATRIX=whole` all.
fn wrong(number: usize, variant: &'static Variant, whole: bool) -> String {
    let concerns = |scenario: &Scenario| {
        scenario.rules.iter().any(|rule| *rule == variant.rule() || variant.also.contains(rule))
    };
    // With ten megabytes in a line, faults are not the quickest.
    let turn = |place: usize, scenario: &Scenario| !scenario.fault && (place + number).is_multiple_of(5);
    let wanted = |place: usize, scenario: &Scenario| whole || concerns(scenario) || turn(place, scenario);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let report = runtime.block_on(check(Some(variant.name), wanted));
    let failed = failures(&report);
    let mut wrong = String::new();
    if !failed.contains(variant.rule()) {
        wrong.push_str(&format!("{}: not found\n", variant.name));
    }
    let known = |rule: &&&str| **rule == variant.rule() || variant.also.contains(*rule);
    let others: BTreeSet<&'static str> = failed.iter().filter(|rule| !known(rule)).copied().collect();
    let missing: Vec<_> = variant.also.iter().filter(|rule| !failed.contains(**rule)).collect();
    if !others.is_empty() {
        wrong.push_str(&format!("{}: found also {others:?}\n{}", variant.name, story(&report, &others)));
    }
    if whole && !missing.is_empty() {
        wrong.push_str(&format!("{}: {missing:?} of its list are kept\n", variant.name));
    }
    wrong
}

#[test]
fn each_variant_is_found_out() {
    let only = std::env::var("ATTACHE_VARIANT").ok();
    let chosen: Vec<&'static Variant> = variants()
        .iter()
        .filter(|variant| only.as_ref().is_none_or(|only| variant.name.starts_with(only)))
        .collect();
    let whole = std::env::var("ATTACHE_MATRIX").is_ok_and(|matrix| matrix == "whole");
    let next = AtomicUsize::new(0);
    let all = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(variant) = chosen.get(number) else { break };
                    let wrong = wrong(number, variant, whole);
                    all.lock().unwrap().push_str(&wrong);
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    assert!(all.is_empty(), "\n{all}");
}
