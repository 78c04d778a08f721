//! The guardians among the ancestors of a process.

use std::io;

/// The guardians above a process, the nearest first: a process that has one is a guarded child or
/// was started by one, directly or not. Empty on systems that do not list processes below `/proc`,
/// and where that is not mounted.
///
/// # Errors
/// When the process is gone, cannot be looked at, or changes its parents faster than they can be
/// read.
///
/// ```
/// let is_guarded = !attache_conn::process::guardians(std::process::id())?.is_empty();
/// # let _ = is_guarded;
/// # std::io::Result::Ok(())
/// ```
#[cfg(target_os = "linux")]
pub fn guardians(pid: u32) -> io::Result<Vec<u32>> {
    if Process::read(std::process::id()).is_err() {
        return Ok(Vec::new());
    }
    'walk: for _ in 0..ATTEMPTS {
        let mut found = Vec::new();
        let mut at = Process::read(pid)?;
        while at.parent != 0 {
            match Process::read(at.parent) {
                Ok(parent) => {
                    if parent.name == GUARDIAN {
                        found.push(parent.pid);
                    }
                    at = parent;
                }
                // The parents of another user can be hidden, and so can those outside of a
                // container. But one that has just ended has given its children to a guardian.
                Err(_) => match Process::read(at.pid) {
                    Ok(again) if again.parent == at.parent => return Ok(found),
                    _ => continue 'walk,
                },
            }
        }
        return Ok(found);
    }
    Err(io::Error::other("the parents of the process cannot be found out"))
}

#[cfg(not(target_os = "linux"))]
#[expect(missing_docs, reason = "the same function as above")]
pub fn guardians(_pid: u32) -> io::Result<Vec<u32>> {
    Ok(Vec::new())
}

/// The name that a guardian gives itself.
#[cfg(target_os = "linux")]
const GUARDIAN: &str = "attache-guard";
#[cfg(target_os = "linux")]
const ATTEMPTS: usize = 16;

#[cfg(target_os = "linux")]
struct Process {
    pid: u32,
    parent: u32,
    name: String,
}

#[cfg(target_os = "linux")]
impl Process {
    fn read(pid: u32) -> io::Result<Process> {
        let stat = std::fs::read(format!("/proc/{pid}/stat"))?;
        let stat = String::from_utf8_lossy(&stat);
        // The name stands in parentheses and may hold any character, parentheses too.
        let fields = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        let parent = fields.and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        match (fields, parent) {
            (Some((name, _)), Some(parent)) => Ok(Process { pid, parent, name: name.to_owned() }),
            _ => Err(io::Error::other("/proc has an unknown form")),
        }
    }
}
