//! Tasks: one text file each, with a scratch repository, checks and a reference solution.
//!
//! A file begins with fields, one per line: `kind`, `prompt`, `again` (the prompt after a crash),
//! `check` and `fill: PATH COUNT TEMPLATE` (a generated file). Sections follow: `-- repo PATH --`
//! is a file of the repository, `-- want PATH --` a file of the reference solution, `-- drop PATH
//! --` a file that the solution removes, `-- check PATH --` a file that only the checks see, and
//! `-- answer --` the solution's last message.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::check::Check;

/// File contents by path.
pub(super) type Files = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) prompt: String,
    /// The prompt after the agent was killed, in a task that begins with a crash.
    pub(super) again: Option<String>,
    pub(super) checks: Vec<Check>,
    pub(super) repo: Files,
    pub(super) wanted: Files,
    pub(super) dropped: Vec<String>,
    pub(super) hidden: Files,
    /// The last message of the reference solution.
    pub(super) answer: String,
}

/// All tasks, sorted by name.
pub(super) fn all() -> Result<Vec<Task>, String> {
    let dir = crate::repo::root().join("tests/agent-eval/tasks");
    let entries = fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path).map_err(|error| format!("{}: {error}", path.display()))).collect()
}

fn read(path: &Path) -> Result<Task, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Task, String> {
    let mut task = Task { name: name.to_owned(), ..Task::default() };
    let mut section: Option<(&str, String)> = None;
    let mut content = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("-- ").and_then(|line| line.strip_suffix(" --")) {
            if let Some((kind, path)) = section.take() {
                task.add(kind, path, std::mem::take(&mut content))?;
            }
            let (kind, path) = title.split_once(' ').unwrap_or((title, ""));
            section = Some((kind, path.to_owned()));
        } else if section.is_some() {
            content.push_str(line);
            content.push('\n');
        } else if !line.is_empty() {
            let (field, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            task.set(field, value)?;
        }
    }
    if let Some((kind, path)) = section {
        task.add(kind, path, content)?;
    }
    Ok(task)
}

impl Task {
    fn set(&mut self, field: &str, value: &str) -> Result<(), String> {
        match field {
            "kind" => value.clone_into(&mut self.kind),
            "prompt" => value.clone_into(&mut self.prompt),
            "again" => self.again = Some(value.to_owned()),
            "check" => self.checks.push(Check::parse(value)?),
            "fill" => {
                let (path, content) = fill(value).ok_or("`fill` is PATH COUNT TEMPLATE")?;
                self.repo.insert(path, content);
            }
            _ => return Err(format!("no field `{field}`")),
        }
        Ok(())
    }

    fn add(&mut self, kind: &str, path: String, content: String) -> Result<(), String> {
        match kind {
            "repo" => drop(self.repo.insert(path, content)),
            "want" => drop(self.wanted.insert(path, content)),
            "drop" => self.dropped.push(path),
            "check" => drop(self.hidden.insert(path, content)),
            "answer" => self.answer = content,
            _ => return Err(format!("no section `{kind}`")),
        }
        Ok(())
    }

    /// The repository with the reference solution applied.
    pub(super) fn solved(&self) -> Files {
        let mut files = self.repo.clone();
        files.extend(self.wanted.clone());
        files.retain(|path, _| !self.dropped.contains(path));
        files
    }
}

/// A generated file: `{n}` is the number of the line, `{8n}` eight times that.
fn fill(value: &str) -> Option<(String, String)> {
    let mut parts = value.splitn(3, ' ');
    let (path, count, template) = (parts.next()?, parts.next()?.parse::<u32>().ok()?, parts.next()?);
    let line = |n: u32| template.replace("{n}", &n.to_string()).replace("{8n}", &(8 * n).to_string()) + "\n";
    Some((path.to_owned(), (1..=count).map(line).collect()))
}

/// Writes files below a directory.
pub(super) fn write(dir: &Path, files: &Files) -> Result<(), String> {
    for (path, content) in files {
        let path = dir.join(path);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            fs::write(&path, content)
        };
        write().map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_task_is_read_from_one_text() {
        let text = "kind: fix\nprompt: Do: it.\ncheck: only\nfill: big.txt 2 {n} {8n}\n-- repo a/b.txt --\none\n\ntwo\n\
                    -- drop a/b.txt --\n-- want c --\n-- answer --\ndone\n";
        let task = parse("x", text).unwrap();
        assert_eq!((task.prompt.as_str(), task.answer.as_str()), ("Do: it.", "done\n"));
        assert_eq!(task.repo["a/b.txt"], "one\n\ntwo\n");
        assert_eq!(task.repo["big.txt"], "1 8\n2 16\n");
        assert_eq!(task.solved().keys().collect::<Vec<_>>(), ["big.txt", "c"]);
        for wrong in ["colour: red", "check: smell x", "-- other x --", "fill: a b c"] {
            assert!(parse("x", wrong).is_err(), "{wrong}");
        }
    }
}
