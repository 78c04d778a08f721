//! Every variant of a good program against the checker: what both sides' tests share.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_check::run::{Report, Status};
use attache_check::{Level, Role, Version, rules};
use attache_mutants::Variant;

pub fn failures(reports: &[Report]) -> BTreeSet<&'static str> {
    with(reports, Status::Fail)
}

fn with(reports: &[Report], status: Status) -> BTreeSet<&'static str> {
    let all = reports.iter().flat_map(|report| &report.rules);
    all.filter(|outcome| outcome.status == status).map(|outcome| outcome.rule.id).collect()
}

/// What was found, for people.
fn story(reports: &[Report], of: &BTreeSet<&'static str>) -> String {
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

/// Nothing is held against the good program, each duty that can be seen was seen kept, and no scenario stopped early but those in
/// `stopping`.
#[track_caller]
pub fn assert_good(reports: &[Report], role: Role, version: Version, stopping: &[&str]) {
    let failed = failures(reports);
    assert!(failed.is_empty(), "\n{}", story(reports, &failed));
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

/// The rules of a version that bind this side, must or should be kept, and can be seen from outside.
fn duties(role: Role, version: Version) -> impl Iterator<Item = &'static str> {
    let binds = move |rule: &&attache_check::Rule| {
        let duty = !matches!(rule.level, Level::May | Level::Rec);
        rule.binds(role) && rule.is_of(version) && duty && rule.observable && rule.why_not_of(role).is_none()
    };
    rules::all().iter().filter(binds).map(|rule| rule.id)
}

/// What is wrong with what was found of a variant; empty if nothing is. Of a variant that played only some scenarios not all that
/// it breaks can be known (`whole` is false).
pub fn wrong(variant: &Variant, reports: &[Report], whole: bool) -> String {
    let failed = failures(reports);
    let mut wrong = String::new();
    if !failed.contains(variant.rule()) {
        wrong.push_str(&format!("{}: not found\n", variant.name));
    }
    let known = |rule: &&&str| **rule == variant.rule() || variant.also.contains(*rule);
    let others: BTreeSet<&'static str> = failed.iter().filter(|rule| !known(rule)).copied().collect();
    if !others.is_empty() {
        wrong.push_str(&format!("{}: found also {others:?}\n{}", variant.name, story(reports, &others)));
    }
    let missing: Vec<_> = variant.also.iter().filter(|rule| !failed.contains(**rule)).collect();
    if whole && !missing.is_empty() {
        wrong.push_str(&format!("{}: {missing:?} of its list are kept\n", variant.name));
    }
    wrong
}

/// Plays every variant (with `ATTACHE_VARIANT` those whose name begins so) on all processors, each on a clock that stands still.
#[track_caller]
pub fn assert_each<F: Future<Output = String>>(
    variants: &'static [Variant],
    look: impl Fn(usize, &'static Variant) -> F + Sync,
) {
    let only = std::env::var("ATTACHE_VARIANT").unwrap_or_default();
    let chosen: Vec<_> = variants.iter().filter(|variant| variant.name.starts_with(&only)).collect();
    assert!(!chosen.is_empty(), "no variant begins with {only:?}");
    let next = AtomicUsize::new(0);
    let all = Mutex::new(String::new());
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(variant) = chosen.get(number) else { break };
            let wrong = runtime.block_on(look(number, variant));
            all.lock().unwrap().push_str(&wrong);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
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
