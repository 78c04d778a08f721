//! Every variant of a good program against the checker: what both sides' tests share.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_check::run::{Options, Report, Status};
use attache_check::{Level, Role, Scenario, Transport, Version, rules, scenarios};
use attache_mutants::Variant;

pub fn failures(reports: &[Report]) -> BTreeSet<&'static str> {
    with(reports, Status::Fail)
}

fn with(reports: &[Report], status: Status) -> BTreeSet<&'static str> {
    let all = reports.iter().flat_map(|report| &report.rules);
    all.filter(|outcome| outcome.status == status).map(|outcome| outcome.rule.id).collect()
}

/// The failures of these rules as text.
fn failure_text(reports: &[Report], of: &BTreeSet<&'static str>) -> String {
    let mut text = String::new();
    for report in reports {
        for outcome in report.rules.iter().filter(|outcome| of.contains(outcome.rule.id)) {
            for (scene, finding) in outcome.failures().take(3) {
                let name = &report.scenes[*scene].name;
                text.push_str(&format!("    {} in {name}: {}\n", outcome.rule.id, finding.why));
            }
        }
    }
    text
}

/// Nothing is held against the good program, each duty that can be seen was seen kept, and no
/// scenario stopped early but those in `stopping`.
#[track_caller]
pub fn assert_good(reports: &[Report], role: Role, version: Version, stopping: &[&str]) {
    let failed = failures(reports);
    assert!(failed.is_empty(), "\n{}", failure_text(reports, &failed));
    let kept = with(reports, Status::Pass);
    let mut unseen = String::new();
    for rule in duties(role, version).filter(|rule| !kept.contains(rule)) {
        unseen.push_str(&format!("    {rule}\n"));
    }
    for scene in reports.iter().flat_map(|report| &report.scenes) {
        if let Some(stop) = scene.stop.as_ref().filter(|_| !stopping.contains(&scene.name.as_str())) {
            unseen.push_str(&format!("    {} stopped: {stop}\n", scene.name));
        }
    }
    assert!(unseen.is_empty(), "rules that no scenario showed:\n{unseen}");
}

/// Nothing is held against the good server or client, and each rule of a scenario about a transport
/// was seen kept.
#[track_caller]
pub fn assert_kept(reports: &[Report], role: Role) {
    let failed = failures(reports);
    assert!(failed.is_empty(), "\n{}", failure_text(reports, &failed));
    let kept = with(reports, Status::Pass);
    let mut unseen = String::new();
    let about = scenarios(role).into_iter().filter(|scenario| scenario.transport().is_some());
    for rule in about.flat_map(|scenario| scenario.rules).filter(|rule| !kept.contains(*rule)) {
        unseen.push_str(&format!("    {rule}\n"));
    }
    for scene in reports.iter().flat_map(|report| &report.scenes) {
        if let Some(stop) = &scene.stop {
            unseen.push_str(&format!("    {} stopped: {stop}\n", scene.name));
        }
    }
    assert!(unseen.is_empty(), "rules that no scenario showed:\n{unseen}");
}

/// All failures as text.
pub fn failure_list(reports: &[Report]) -> String {
    failure_text(reports, &failures(reports))
}

/// The rules of a version over stdio that bind this side, must or should be kept, and can be seen
/// from outside.
fn duties(role: Role, version: Version) -> impl Iterator<Item = &'static str> {
    let binds = move |rule: &&attache_check::Rule| {
        let duty = !matches!(rule.level, Level::May | Level::Rec);
        rule.binds(role)
            && rule.is_over(&[Transport::Stdio])
            && rule.is_of(version)
            && duty
            && rule.observable
            && rule.why_not_of(role, version).is_none()
    };
    rules::all().iter().filter(binds).map(|rule| rule.id)
}

/// The differences between the failures of a variant and those expected; empty if there are none.
/// If only some scenarios ran (`whole` is false), rules of `also` may be missing.
pub fn wrong(variant: &Variant, reports: &[Report], whole: bool) -> String {
    let failed = failures(reports);
    let mut wrong = String::new();
    if !failed.contains(variant.rule()) {
        wrong.push_str(&format!("{}: not found\n", variant.name));
    }
    let known = |rule: &&&str| **rule == variant.rule() || variant.also.contains(*rule);
    let others: BTreeSet<&'static str> = failed.iter().filter(|rule| !known(rule)).copied().collect();
    if !others.is_empty() {
        wrong.push_str(&format!(
            "{}: found also {others:?}\n{}",
            variant.name,
            failure_text(reports, &others)
        ));
    }
    let missing: Vec<_> = variant.also.iter().filter(|rule| !failed.contains(**rule)).collect();
    if whole && !missing.is_empty() {
        wrong.push_str(&format!("{}: {missing:?} of its list are kept\n", variant.name));
    }
    wrong
}

/// Plays the sample of a variant, and all scenarios if the sample does not show its fault: some
/// faults show only in scenarios about other rules. Returns what is wrong.
pub async fn find_out<F: Future<Output = Vec<Report>>>(
    variant: &'static Variant,
    number: usize,
    check: impl Fn(Sample) -> F,
) -> String {
    let sample = Sample::of(variant, number);
    let reports = check(sample).await;
    if sample.is_whole() || failures(&reports).contains(variant.rule()) {
        return wrong(variant, &reports, sample.is_whole());
    }
    wrong(variant, &check(Sample::All).await, true)
}

/// The scenarios that a variant plays.
#[derive(Clone, Copy)]
pub enum Sample {
    /// Those that concern it, and every fifth of the others, by turns. Another variant plays the
    /// rest.
    Turns {
        variant: &'static Variant,
        number: usize,
    },
    All,
}

impl Sample {
    /// The sample of a variant: with `ATTACHE_MATRIX=whole`, as in `cargo xtask matrix`, all
    /// scenarios.
    fn of(variant: &'static Variant, number: usize) -> Sample {
        let is_whole = std::env::var("ATTACHE_MATRIX").is_ok_and(|matrix| matrix == "whole");
        if is_whole { Sample::All } else { Sample::Turns { variant, number } }
    }

    fn is_whole(self) -> bool {
        matches!(self, Sample::All)
    }

    /// The names of the scenarios of a version in this sample.
    pub fn scenarios(self, role: Role, version: Version) -> Vec<&'static str> {
        let mut all = scenarios(role);
        all.retain(|scenario| scenario.versions.contains(&version));
        let chosen = all.iter().enumerate().filter(|(place, scenario)| match self {
            Sample::All => true,
            // With ten megabytes in a line, faults are not the quickest.
            Sample::Turns { variant, number } => {
                concerns(variant, scenario) || !scenario.fault && (place + number).is_multiple_of(5)
            }
        });
        chosen.map(|(_, scenario)| scenario.name).collect()
    }
}

/// Options to run these scenarios and no others.
pub fn options(role: Role, names: &[&str]) -> Options {
    // An empty list would mean all of them.
    assert!(!names.is_empty(), "no scenario");
    Options { scenarios: names.iter().map(|&name| name.to_owned()).collect(), ..Options::new(role) }
}

/// Whether a scenario is about a rule that the variant breaks.
pub fn concerns(variant: &Variant, scenario: &Scenario) -> bool {
    scenario.rules.iter().any(|rule| *rule == variant.rule() || variant.also.contains(rule))
}

/// Plays every variant (with `ATTACHE_VARIANT` those whose name begins so) on all processors, each
/// on a clock that stands still.
#[track_caller]
pub fn assert_each<F: Future<Output = String>>(
    variants: &'static [Variant],
    look: impl Fn(usize, &'static Variant) -> F + Sync,
) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    play_each(variants, threads, true, look);
}

/// Every variant is found out in a version, when `check` plays a sample with it.
#[track_caller]
pub fn assert_found_out<F: Future<Output = Vec<Report>>>(
    variants: &'static [Variant],
    version: Version,
    check: impl Fn(Option<&'static str>, Version, Sample) -> F + Sync,
) {
    let check = &check;
    assert_each(variants, |number, variant| {
        find_out(variant, number, move |sample| check(Some(variant.name), version, sample))
    });
}

/// Plays every variant over sockets, in real time. Most of them wait, so there are many at once.
#[track_caller]
pub fn assert_each_remote<F: Future<Output = String>>(
    variants: &'static [Variant],
    look: impl Fn(usize, &'static Variant) -> F + Sync,
) {
    play_each(variants, 8, false, look);
}

#[track_caller]
fn play_each<F: Future<Output = String>>(
    variants: &'static [Variant],
    threads: usize,
    is_paused: bool,
    look: impl Fn(usize, &'static Variant) -> F + Sync,
) {
    let only = std::env::var("ATTACHE_VARIANT").unwrap_or_default();
    let chosen: Vec<_> = variants.iter().filter(|variant| variant.name.starts_with(&only)).collect();
    assert!(!chosen.is_empty(), "no variant begins with {only:?}");
    let next = AtomicUsize::new(0);
    let all = Mutex::new(String::new());
    let work = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(is_paused).build();
        let runtime = runtime.unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(variant) = chosen.get(number) else { break };
            let wrong = runtime.block_on(look(number, variant));
            all.lock().unwrap().push_str(&wrong);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let all = all.into_inner().unwrap();
    assert!(all.is_empty(), "\n{all}");
}

/// No duty is without a variant that breaks it.
#[track_caller]
pub fn assert_complete(variants: &[Variant], role: Role, version: Version) {
    let broken: BTreeSet<&str> = variants.iter().map(Variant::rule).collect();
    let missing: Vec<_> = duties(role, version).filter(|rule| !broken.contains(rule)).collect();
    assert!(missing.is_empty(), "no variant breaks {missing:?}");
}
