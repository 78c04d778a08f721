//! What needs a question. The decision rests on the mode, on what is to be done and on what the user allowed before, and on
//! nothing that a model, a file or a command's output says: such text never gets here.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use attache::wire::v1::{PermissionOption, PermissionOptionKind};

use crate::ground::Place;
use crate::modes::Mode;
use crate::shell;

/// What a tool is about to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Nothing outside of the conversation.
    Nothing,
    /// Look at these places.
    Look(Vec<Place>),
    /// Write to this file.
    Edit(Place),
    /// Take these files away, or move them.
    Displace(Vec<Place>),
    /// Run a command line.
    Run {
        /// As a shell reads it.
        line: String,
        /// Where.
        cwd: Place,
    },
    /// Fetch something from a host.
    Fetch {
        /// Its name, with the port.
        host: String,
        /// Whether it is this machine or one near it, which may trust whoever is here.
        near: bool,
    },
    /// Call a tool of somebody else, who says what it does.
    Foreign(String),
    /// Leave a mode that allows less.
    LeaveMode,
}

/// What the user allows for the rest of the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Grant {
    /// Every edit of a file inside of the roots.
    Edits,
    /// Just this command line.
    Line(String),
    /// This host.
    Host(String),
    /// Looking at everything below this directory.
    LookBelow(PathBuf),
    /// This tool.
    Tool(String),
}

/// Whether something may be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Yes.
    Go,
    /// If the user says so; with what "always" would mean.
    Ask(Option<Grant>),
    /// No, in words for the model.
    No(&'static str),
}

/// What was granted in this session. It is not kept beyond: another client is asked again.
pub(crate) type Grants = HashSet<Grant>;

const PLAN_ONLY: &str = "not possible in plan mode, which only reads; describe it in the plan instead, or call `leave_plan_mode` \
                         to ask the user for another mode";

/// Decides. `roots` are the session's directories.
pub(crate) fn judge(mode: Mode, action: &Action, granted: &Grants, roots: &[PathBuf]) -> Verdict {
    let asked = |grant: Grant| match granted.contains(&grant) {
        true => Verdict::Go,
        false => Verdict::Ask(Some(grant)),
    };
    match action {
        Action::Nothing => Verdict::Go,
        Action::Look(places) => match places.iter().find(|place| !place.inside) {
            None => Verdict::Go,
            Some(outside) if granted_below(granted, &outside.real) => Verdict::Go,
            Some(outside) => Verdict::Ask(outside.real.parent().map(|dir| Grant::LookBelow(dir.to_owned()))),
        },
        Action::Edit(_) | Action::Displace(_) if mode == Mode::Plan => Verdict::No(PLAN_ONLY),
        Action::Edit(place) if !place.inside => Verdict::Ask(None),
        Action::Edit(place) if is_delicate(&place.real) => Verdict::Ask(None),
        Action::Edit(_) => match mode {
            Mode::Code | Mode::Auto => Verdict::Go,
            _ => asked(Grant::Edits),
        },
        Action::Displace(places) => match mode {
            Mode::Auto if places.iter().all(|place| place.inside && !is_delicate(&place.real)) => Verdict::Go,
            _ => Verdict::Ask(None),
        },
        Action::Run { line, cwd } => {
            if cwd.inside && shell::harmless(line, &cwd.real, roots) {
                return Verdict::Go;
            }
            match mode {
                Mode::Plan => Verdict::No(PLAN_ONLY),
                Mode::Auto if cwd.inside => Verdict::Go,
                _ if !cwd.inside => Verdict::Ask(None),
                _ => asked(Grant::Line(line.clone())),
            }
        }
        Action::Fetch { host, near } => match mode {
            Mode::Auto if !near => Verdict::Go,
            _ => asked(Grant::Host(host.clone())),
        },
        Action::Foreign(tool) => match mode {
            Mode::Auto => Verdict::Go,
            _ => asked(Grant::Tool(tool.clone())),
        },
        // MODE-08
        Action::LeaveMode => Verdict::Ask(None),
    }
}

fn granted_below(granted: &Grants, path: &Path) -> bool {
    path.ancestors().any(|dir| granted.contains(&Grant::LookBelow(dir.to_owned())))
}

/// Files that make programs run, or tell this agent what to do, are not edited in passing.
fn is_delicate(path: &Path) -> bool {
    path.components().any(|name| matches!(name.as_os_str().to_str(), Some(".git" | ".attache")))
}

/// PERM-03: what the user may answer.
pub(crate) fn options(grant: Option<&Grant>) -> Vec<PermissionOption> {
    let always = grant.map(|grant| match grant {
        Grant::Edits => "Allow all edits of the project in this session".to_owned(),
        Grant::Line(_) => "Always allow this command in this session".to_owned(),
        Grant::Host(host) => format!("Always allow {host} in this session"),
        Grant::LookBelow(dir) => format!("Always allow reading below {} in this session", dir.display()),
        Grant::Tool(tool) => format!("Always allow {tool} in this session"),
    });
    let mut options = vec![PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce)];
    options.extend(
        always.map(|name| PermissionOption::new("allow-always", name, PermissionOptionKind::AllowAlways)),
    );
    options.push(PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        let inside = path.starts_with("/project");
        Place { named: path.into(), real: path.into(), inside }
    }

    fn run(line: &str) -> Action {
        Action::Run { line: line.to_owned(), cwd: place("/project") }
    }

    fn verdict(mode: Mode, action: Action, granted: &[Grant]) -> Verdict {
        judge(mode, &action, &granted.iter().cloned().collect(), &["/project".into()])
    }

    #[test]
    fn looking_inside_is_free_and_outside_is_asked_in_every_mode() {
        for mode in Mode::ALL {
            assert_eq!(verdict(mode, Action::Look(vec![place("/project/a")]), &[]), Verdict::Go);
            let outside = Action::Look(vec![place("/project/a"), place("/etc/passwd")]);
            let below = Grant::LookBelow("/etc".into());
            assert_eq!(verdict(mode, outside.clone(), &[]), Verdict::Ask(Some(below.clone())), "{mode}");
            assert_eq!(verdict(mode, outside, &[below]), Verdict::Go);
            assert!(
                !matches!(verdict(mode, Action::Edit(place("/etc/passwd")), &[Grant::Edits]), Verdict::Go),
                "{mode}"
            );
        }
    }

    #[test]
    fn each_mode_has_its_rules() {
        let edit = || Action::Edit(place("/project/a"));
        assert_eq!(verdict(Mode::Ask, edit(), &[]), Verdict::Ask(Some(Grant::Edits)));
        assert_eq!(verdict(Mode::Ask, edit(), &[Grant::Edits]), Verdict::Go);
        assert_eq!(verdict(Mode::Plan, edit(), &[Grant::Edits]), Verdict::No(PLAN_ONLY));
        assert_eq!(verdict(Mode::Code, edit(), &[]), Verdict::Go);
        assert_eq!(verdict(Mode::Auto, edit(), &[]), Verdict::Go);
        let hook = || Action::Edit(place("/project/.git/hooks/pre-commit"));
        assert_eq!(verdict(Mode::Auto, hook(), &[Grant::Edits]), Verdict::Ask(None));
        let delete = || Action::Displace(vec![place("/project/a")]);
        assert_eq!(verdict(Mode::Code, delete(), &[Grant::Edits]), Verdict::Ask(None));
        assert_eq!(verdict(Mode::Auto, delete(), &[]), Verdict::Go);
        for mode in Mode::ALL {
            assert_eq!(verdict(mode, Action::LeaveMode, &[]), Verdict::Ask(None));
            assert_eq!(verdict(mode, run("ls -l"), &[]), Verdict::Go, "{mode}");
        }
        assert_eq!(verdict(Mode::Plan, run("make"), &[]), Verdict::No(PLAN_ONLY));
        assert_eq!(verdict(Mode::Auto, run("make"), &[]), Verdict::Go);
        let make = Grant::Line("make".into());
        assert_eq!(verdict(Mode::Code, run("make"), &[]), Verdict::Ask(Some(make.clone())));
        assert_eq!(verdict(Mode::Code, run("make"), std::slice::from_ref(&make)), Verdict::Go);
        assert_ne!(verdict(Mode::Code, run("make && rm -rf ."), &[make]), Verdict::Go);
    }
}
