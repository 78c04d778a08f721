//! Attacks, their results and the counts.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::world::Suite;

/// Attacks that share a setting. They are independent of other groups and run beside them.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    /// What must not happen.
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Suite, &mut Report),
    /// Whether it runs after all others, when the machine is idle.
    pub(crate) quiet: bool,
}

/// The result of one attack: its name, how to repeat it, and what happened that must not.
pub(crate) type Attempt = (String, String, Option<String>);

/// Attacks of one thread, to be recorded later.
#[derive(Default)]
pub(crate) struct Attempts(pub(crate) Vec<Attempt>);

impl Attempts {
    pub(crate) fn attack(
        &mut self,
        name: impl Into<String>,
        reproduction: impl Into<String>,
        happened: Option<String>,
    ) {
        self.0.push((name.into(), reproduction.into(), happened));
    }
}

impl Group {
    pub(crate) const fn new(
        class: &'static str,
        name: &'static str,
        about: &'static str,
        run: fn(&Suite, &mut Report),
    ) -> Group {
        Group { class, name, about, run, quiet: false }
    }

    pub(crate) const fn quiet(mut self) -> Group {
        self.quiet = true;
        self
    }

    /// Whether one of the filters selects it. A filter can also select single attacks, whose names
    /// are known only after the group ran; such a filter is `GROUP/PART`.
    pub(crate) fn is_wanted(&self, only: &[String]) -> bool {
        let fits = |filter: &String| {
            let group = filter.split_once('/').map_or(filter.as_str(), |(group, _)| group);
            self.class == group || self.name.contains(group)
        };
        only.is_empty() || only.iter().any(fits)
    }
}

/// The result of a group, or of all of them.
#[derive(Default)]
pub(crate) struct Report {
    class: &'static str,
    group: &'static str,
    parts: Vec<String>,
    results: Vec<Entry>,
}

struct Entry {
    class: &'static str,
    group: &'static str,
    name: String,
    result: Outcome,
}

enum Outcome {
    Held,
    /// The attack succeeded: what happened, and how to repeat it.
    Succeeded {
        what: String,
        reproduction: String,
    },
    ControlFired,
    /// The trace was not found although the act was allowed, so the checks of this kind show
    /// nothing.
    ControlSilent(String),
    Skipped(String),
    /// The group did not run to its end.
    Broken(String),
}

impl Report {
    pub(crate) fn of(group: &Group, only: &[String]) -> Report {
        let parts = only.iter().filter_map(|filter| filter.split_once('/')).map(|(_, part)| part.to_owned());
        Report { class: group.class, group: group.name, parts: parts.collect(), results: Vec::new() }
    }

    /// Records an attack. `happened` is what must not have happened, if it did; `reproduction` says
    /// how to repeat it.
    pub(crate) fn attack(
        &mut self,
        name: impl Into<String>,
        reproduction: impl Into<String>,
        happened: Option<String>,
    ) {
        let name = name.into();
        if !self.parts.is_empty() && !self.parts.iter().any(|part| name.contains(part.as_str())) {
            return;
        }
        let result = match happened {
            None => Outcome::Held,
            Some(what) => Outcome::Succeeded { what, reproduction: reproduction.into() },
        };
        self.add(name, result);
    }

    /// Records several attacks.
    pub(crate) fn attacks(&mut self, attempts: impl IntoIterator<Item = Attempt>) {
        for (name, reproduction, happened) in attempts {
            self.attack(name, reproduction, happened);
        }
    }

    /// Records a control: `fired` says whether the trace was found where the act was allowed,
    /// `seen` what was there instead.
    pub(crate) fn control(&mut self, name: impl Into<String>, fired: bool, seen: impl Into<String>) {
        let result = if fired { Outcome::ControlFired } else { Outcome::ControlSilent(seen.into()) };
        self.add(name.into(), result);
    }

    /// Records attacks that cannot be tried here.
    pub(crate) fn skip(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.add(name.into(), Outcome::Skipped(why.into()));
    }

    pub(crate) fn broken(&mut self, why: &str) {
        self.add("(the group)".to_owned(), Outcome::Broken(why.to_owned()));
    }

    fn add(&mut self, name: String, result: Outcome) {
        self.results.push(Entry { class: self.class, group: self.group, name, result });
    }

    pub(crate) fn merge(&mut self, other: Report) {
        self.results.extend(other.results);
    }

    /// Prints every result of a group.
    pub(crate) fn print_lines(&self, time: Duration) {
        let mut text = format!("== {}/{} in {:.1} s\n", self.class, self.group, time.as_secs_f32());
        for entry in &self.results {
            let word = match &entry.result {
                Outcome::Held => "held".to_owned(),
                Outcome::Succeeded { what, .. } => format!("SUCCEEDED: {what}"),
                Outcome::ControlFired => "control".to_owned(),
                Outcome::ControlSilent(seen) => format!("CONTROL SILENT: {seen}"),
                Outcome::Skipped(why) => format!("skipped: {why}"),
                Outcome::Broken(why) => format!("BROKEN: {why}"),
            };
            let _ = writeln!(text, "   {}: {word}", entry.name);
        }
        print!("{text}");
    }

    /// Prints the counts, and every attack that succeeded. Returns whether all held and all
    /// controls fired.
    pub(crate) fn print(&self, root: &Path) -> bool {
        let mut classes: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        let (mut controls, mut skipped, mut failed) = (0, 0, 0);
        for entry in &self.results {
            let count = classes.entry(entry.class).or_default();
            match &entry.result {
                Outcome::Held => {
                    count[0] += 1;
                    count[1] += 1;
                }
                Outcome::Succeeded { .. } => count[0] += 1,
                Outcome::ControlFired => controls += 1,
                Outcome::Skipped(_) => skipped += 1,
                Outcome::ControlSilent(_) | Outcome::Broken(_) => failed += 1,
            }
        }
        for entry in &self.results {
            let name = format!("{}/{}/{}", entry.class, entry.group, entry.name);
            match &entry.result {
                Outcome::Succeeded { what, reproduction } => {
                    println!("\nSUCCEEDED {name}\n  what happened: {what}\n  reproduction: {reproduction}");
                }
                Outcome::ControlSilent(seen) => {
                    println!("\nCONTROL SILENT {name}\n  the trace was not found; seen: {seen}");
                }
                Outcome::Broken(why) => println!("\nBROKEN {name}\n  {why}"),
                Outcome::Skipped(why) => println!("skipped {name}: {why}"),
                Outcome::Held | Outcome::ControlFired => {}
            }
        }
        println!();
        for (class, [tried, held]) in &classes {
            println!("{class}: tried {tried}, held {held}");
        }
        let tried: usize = classes.values().map(|count| count[0]).sum();
        let held: usize = classes.values().map(|count| count[1]).sum();
        let more = if skipped > 0 { format!(", skipped {skipped}") } else { String::new() };
        println!("attacks: tried {tried}, held {held}, controls {controls}{more}");
        if held < tried || failed > 0 {
            println!(
                "with --keep, the directories of the attacks stay below {}",
                root.parent().unwrap().display()
            );
        }
        held == tried && failed == 0
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}
