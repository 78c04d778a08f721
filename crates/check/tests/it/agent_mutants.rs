//! The checker against the good agent, which it must praise, and against each of its variants, of which it must find what is wrong and
//! nothing else. In memory and with a paused clock: no deadline takes real time.

use std::collections::BTreeSet;
use std::io;

use attache_check::run::{Options, Report, Status, run};
use attache_check::target::Memory;
use attache_check::{BoxFuture, Fresh, Opened, Party, Target, rules};
use attache_conn::Link;
use attache_mutants::Variant;
use attache_mutants::agent::{agent, locked_agent, variants};

/// Scenarios about files that are really there.
const ON_DISK: [&str; 2] = ["outside", "mcp-stdio"];

/// An agent in this process. On disk its scenarios have a directory, elsewhere only the name of one.
struct Mutant {
    memory: Memory,
    on_disk: bool,
}

impl Mutant {
    fn new(variant: Option<&'static str>, on_disk: bool) -> Mutant {
        let serve = move |link: Link, fresh: &Fresh| {
            let locked = fresh.scenario == "auth";
            async move {
                if locked {
                    locked_agent(link, variant).await;
                } else {
                    agent(link, variant).await;
                }
            }
        };
        Mutant { memory: Memory::new(serve), on_disk }
    }
}

impl Target for Mutant {
    fn open<'a>(&'a self, fresh: &'a Fresh) -> BoxFuture<'a, io::Result<Opened>> {
        self.memory.open(fresh)
    }

    fn is_real(&self) -> bool {
        self.on_disk
    }
}

/// Both ways, one after the other.
async fn check(variant: Option<&'static str>) -> [Report; 2] {
    let options = Options { faults: true, ..Options::new(Party::Agent) };
    let real = Options { scenarios: ON_DISK.map(str::to_owned).to_vec(), ..options.clone() };
    [
        run(&Mutant::new(variant, false), &options, &mut |_| {}).await,
        run(&Mutant::new(variant, true), &real, &mut |_| {}).await,
    ]
}

fn failures(reports: &[Report; 2]) -> BTreeSet<&'static str> {
    let all = reports.iter().flat_map(|report| &report.rules);
    all.filter(|outcome| outcome.failed()).map(|outcome| outcome.rule.id).collect()
}

fn passes(reports: &[Report; 2]) -> BTreeSet<&'static str> {
    let all = reports.iter().flat_map(|report| &report.rules);
    all.filter(|outcome| outcome.status == Status::Pass).map(|outcome| outcome.rule.id).collect()
}

/// What was found, for people.
fn story(reports: &[Report; 2], of: &BTreeSet<&'static str>) -> String {
    let mut story = String::new();
    for report in reports {
        for outcome in report.rules.iter().filter(|outcome| of.contains(outcome.rule.id)) {
            for (scene, finding) in outcome.failures().take(3) {
                let name = &report.scenes[*scene].name;
                story.push_str(&format!("    {} in {name}: {}\n", outcome.rule.id, finding.why));
            }
        }
    }
    story
}

#[tokio::test(start_paused = true)]
async fn the_good_agent_keeps_every_rule() {
    let reports = check(None).await;
    let failed = failures(&reports);
    assert!(failed.is_empty(), "\n{}", story(&reports, &failed));
    let passed = passes(&reports);
    let mut unseen = String::new();
    for outcome in &reports[0].rules {
        let rule = outcome.rule;
        let wanted = rule.level.is_must() && rule.observable && rule.why_not_of(Party::Agent).is_none();
        if wanted && !passed.contains(rule.id) {
            unseen.push_str(&format!("    {}: {:?}\n", rule.id, outcome.status));
        }
    }
    for scene in reports.iter().flat_map(|report| &report.scenes) {
        if let Some(stop) = scene.stop.as_ref().filter(|_| !ON_DISK.contains(&scene.name.as_str())) {
            unseen.push_str(&format!("    {} stopped: {stop}\n", scene.name));
        }
    }
    assert!(unseen.is_empty(), "rules that no scenario showed:\n{unseen}");
}

/// What is wrong with what was found of a variant; empty if nothing is.
async fn look(variant: &Variant) -> String {
    let reports = check(Some(variant.name)).await;
    let failed = failures(&reports);
    let mut wrong = String::new();
    if !failed.contains(variant.rule()) {
        wrong.push_str(&format!("{}: not found\n", variant.name));
    }
    let known = |rule: &&&str| **rule == variant.rule() || variant.also.contains(*rule);
    let others: BTreeSet<&'static str> = failed.iter().filter(|rule| !known(rule)).copied().collect();
    let missing: Vec<_> = variant.also.iter().filter(|rule| !failed.contains(**rule)).collect();
    if !others.is_empty() {
        wrong.push_str(&format!("{}: found also {others:?}\n{}", variant.name, story(&reports, &others)));
    }
    if !missing.is_empty() {
        wrong.push_str(&format!("{}: {missing:?} of its list are kept\n", variant.name));
    }
    wrong
}

#[test]
fn each_variant_is_found_out() {
    let only = std::env::var("ATTACHE_VARIANT").ok();
    let chosen =
        variants().iter().filter(|variant| only.as_ref().is_none_or(|only| variant.name.starts_with(only)));
    let chosen: Vec<&Variant> = chosen.collect();
    // One runtime per thread: each has a clock of its own that stands still.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: String = std::thread::scope(|scope| {
        let share = |first: usize| {
            let mine: Vec<&Variant> = chosen.iter().skip(first).step_by(threads).copied().collect();
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
                let runtime = runtime.unwrap();
                mine.into_iter().map(|variant| runtime.block_on(look(variant))).collect::<String>()
            })
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_duty_has_a_variant() {
    let broken: BTreeSet<&str> = variants().iter().map(attache_mutants::Variant::rule).collect();
    let must = |rule: &&attache_check::Rule| {
        rule.side.binds(Party::Agent)
            && rule.level.is_must()
            && rule.observable
            && rule.why_not_of(Party::Agent).is_none()
    };
    let alone: Vec<&str> =
        rules::all().iter().filter(must).map(|rule| rule.id).filter(|id| !broken.contains(id)).collect();
    assert!(alone.is_empty(), "no variant breaks {alone:?}");
}
