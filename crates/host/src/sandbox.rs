//! A command that can write only where it may, also if it lies about what it does.
//!
//! The program starts itself again with a hidden word ([`WORD`]); that process gives up its rights for good (Landlock) and
//! becomes the command. So nothing has to happen between fork and exec, and a client that runs our terminals starts the same
//! thing. Where the kernel has no Landlock, bubblewrap does it if it is installed.
//!
//! Reading is not restricted: a compiler needs half of the system. What must not be read is guarded by permissions.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The hidden word of a program that uses this: `PROGRAM __sandbox [--write DIR]… [--no-network] -- COMMAND ARG…`.
pub const WORD: &str = "__sandbox";

/// Devices that programs write to without changing anything.
#[cfg(target_os = "linux")]
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Where it may write, besides terminals and `/dev/null`.
    pub writable: Vec<PathBuf>,
    /// Whether it may reach the network (TCP; name lookups by UDP are beyond what Landlock restricts).
    pub network: bool,
}

/// What this machine offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The kernel does it.
    Landlock,
    /// The program `bwrap` does it.
    Bubblewrap,
}

impl Kind {
    /// What there is here.
    pub fn here() -> Option<Kind> {
        if has_landlock() {
            return Some(Kind::Landlock);
        }
        let path = std::env::var_os("PATH")?;
        let found = cfg!(target_os = "linux")
            && std::env::split_paths(&path).any(|directory| directory.join("bwrap").is_file());
        found.then_some(Kind::Bubblewrap)
    }
}

impl Sandbox {
    /// The command line that runs `program` inside. `own` is a program that passes [`WORD`] on to [`become_command`].
    pub fn wrap<S: AsRef<OsStr>>(
        &self,
        kind: Kind,
        own: &Path,
        program: &OsStr,
        args: &[S],
    ) -> (OsString, Vec<OsString>) {
        let (first, mut line) = match kind {
            Kind::Landlock => (own.as_os_str().to_owned(), self.words()),
            Kind::Bubblewrap => (OsString::from("bwrap"), self.bubblewrap()),
        };
        line.push("--".into());
        line.push(program.to_owned());
        line.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        (first, line)
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from(WORD)];
        for path in &self.writable {
            words.extend([OsString::from("--write"), path.into()]);
        }
        if !self.network {
            words.push("--no-network".into());
        }
        words
    }

    fn bubblewrap(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
                .into_iter()
                .map(OsString::from)
                .collect();
        for path in &self.writable {
            words.extend([OsString::from("--bind-try"), path.into(), path.into()]);
        }
        if !self.network {
            words.push("--unshare-net".into());
        }
        words
    }

    /// Reads what [`Sandbox::wrap`] made, after [`WORD`]: the sandbox and the command.
    fn read(words: impl IntoIterator<Item = OsString>) -> Option<(Sandbox, Vec<OsString>)> {
        let mut sandbox = Sandbox { writable: Vec::new(), network: true };
        let mut words = words.into_iter();
        loop {
            match words.next()?.to_str()? {
                "--write" => sandbox.writable.push(words.next()?.into()),
                "--no-network" => sandbox.network = false,
                "--" => return Some((sandbox, words.collect())),
                _ => return None,
            }
        }
    }
}

/// Gives up what the words after [`WORD`] do not allow and becomes the command. Comes back only if that fails.
pub fn become_command(words: impl IntoIterator<Item = OsString>) -> io::Error {
    match Sandbox::read(words) {
        Some((sandbox, command)) if !command.is_empty() => enter_and_exec(&sandbox, &command),
        _ => io::Error::new(io::ErrorKind::InvalidInput, "not what a sandbox is called with"),
    }
}

#[cfg(target_os = "linux")]
fn has_landlock() -> bool {
    crate::sys::landlock::version().is_some()
}

#[cfg(not(target_os = "linux"))]
fn has_landlock() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn enter_and_exec(sandbox: &Sandbox, command: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt as _;
    let writable = sandbox.writable.iter().map(PathBuf::as_path).chain(DEVICES.iter().map(Path::new));
    match crate::sys::landlock::restrict(writable, sandbox.network) {
        Ok(()) => std::process::Command::new(&command[0]).args(&command[1..]).exec(),
        Err(error) => error,
    }
}

#[cfg(not(target_os = "linux"))]
fn enter_and_exec(_: &Sandbox, _: &[OsString]) -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_is_read_again() {
        let sandbox = Sandbox { writable: vec!["/a b".into(), "--".into()], network: false };
        let (own, words) =
            sandbox.wrap(Kind::Landlock, Path::new("/bin/attache"), OsStr::new("sh"), &["-c", "--write x"]);
        assert_eq!(own, "/bin/attache");
        assert_eq!(words[0], WORD);
        let (read, command) = Sandbox::read(words.into_iter().skip(1)).unwrap_or_default();
        assert_eq!(read, sandbox);
        assert_eq!(command, ["sh", "-c", "--write x"].map(OsString::from));
    }

    #[test]
    fn other_words_are_refused() {
        for words in [&["--"][..], &[], &["--write"], &["--all", "--", "sh"], &["sh"]] {
            assert_eq!(
                become_command(words.iter().map(OsString::from)).kind(),
                io::ErrorKind::InvalidInput,
                "{words:?}"
            );
        }
    }
}
