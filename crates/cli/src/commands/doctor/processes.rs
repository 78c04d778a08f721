//! The processes that descend from this one.

use std::fs;

/// A process. Ids are reused, so the start time identifies it, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    id: u32,
    parent: u32,
    started: u64,
    pub(super) name: String,
    /// A zombie.
    ended: bool,
}

/// Returns the descendants of this process; none where the system does not list them.
pub(super) fn descendants() -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent && !process.ended) {
            parents.push(process.id);
            found.push(process.clone());
        }
    }
    found
}

/// Returns those that still run, with any parent.
pub(super) fn still_there(before: &[Process]) -> Vec<Process> {
    let same = |a: &Process, b: &Process| a.id == b.id && a.started == b.started;
    all().into_iter().filter(|now| !now.ended && before.iter().any(|then| same(then, now))).collect()
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            read(id, &fs::read_to_string(entry.path().join("stat")).ok()?)
        })
        .collect()
}

/// `12 (a name) S 1 …`: the name may hold anything, also brackets.
fn read(id: u32, stat: &str) -> Option<Process> {
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let name = stat.get(start + 1..end)?.to_owned();
    let fields: Vec<&str> = stat.get(end + 1..)?.split_whitespace().collect();
    Some(Process {
        id,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        name,
        ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_of_the_system() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1 1";
        let process = read(7, stat).unwrap();
        assert_eq!((process.parent, process.started, process.name.as_str()), (3, 12345, "a) b (c"));
        assert!(!process.ended);
    }
}
