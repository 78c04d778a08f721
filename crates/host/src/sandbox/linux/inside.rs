//! The second stage: it runs inside of the namespaces, starts the command and waits for its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::roots::Root;
use super::{bridge, explain, metadata, rules};
use crate::sandbox::supervise::{Extra, SandboxLaunch, apply_limits, execute, watch};
use crate::sandbox::temporary::PrivateDirectory;
use crate::sandbox::{Backend, Network, environment};
use crate::sys::notify;
use crate::sys::process::{self, Fork};
use crate::sys::seccomp::{self, Metadata, Policy, Sockets};

/// Where private temporary directories are created, without namespaces.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The exit code after the outermost process is gone. It is the one of `SIGKILL`.
const ABANDONED: u8 = 128 + 9;

/// The surroundings of the command.
pub(super) enum World {
    /// Namespaces of its own, in which these paths can be written to.
    Namespaces { writable: Vec<PathBuf> },
    /// The system that all other processes use.
    Shared,
}

/// Everything that the second stage needs.
pub(super) struct Inside {
    pub(super) setup: SandboxLaunch,
    pub(super) world: World,
    /// The private temporary directory.
    pub(super) tmp: PathBuf,
    pub(super) current_dir: PathBuf,
    /// The variables that the sandbox was started with.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// The place of the proxy's socket.
    pub(super) proxy: Option<OwnedFd>,
}

/// Ends this process when its parent ends, also if it has ended already.
pub(super) fn die_with_parent(control: &OwnedFd) -> io::Result<()> {
    process::die_with_parent()?;
    if process::is_abandoned(control.as_fd()) {
        process::exit(ABANDONED);
    }
    Ok(())
}

/// Protects this process from the command.
fn prepare() -> io::Result<()> {
    process::hide_memory()?;
    process::drop_capabilities()
}

impl Inside {
    /// Starts the command as the first process of the namespaces. All others end with this one.
    pub(super) fn begin(mut self) -> ! {
        self.setup.report.begun();
        let code = prepare().and_then(|()| self.start_and_wait());
        match code {
            Ok(code) => process::exit(code.unwrap_or(ABANDONED)),
            Err(error) => self.setup.report.fail_and_exit(&error),
        }
    }

    fn start_and_wait(&mut self) -> io::Result<Option<u8>> {
        let port = match &self.proxy {
            Some(socket) => {
                Some(bridge::start(socket).map_err(explain("cannot start the bridge to the proxy"))?)
            }
            None => None,
        };
        self.proxy = None;
        self.run_command(port)
    }

    /// Runs the command. `None` if the outermost process is gone.
    fn run_command(&self, port: Option<u16>) -> io::Result<Option<u8>> {
        process::wake_on_child();
        let supervised = self.supervised_paths()?;
        let (ours, theirs) = match &supervised {
            Some(_) => UnixStream::pair().map(|(ours, theirs)| (Some(ours), Some(theirs)))?,
            None => (None, None),
        };
        let command = match process::fork()? {
            Fork::Parent(command) => command,
            Fork::Child => {
                drop(ours);
                let error = self.become_command(port, theirs.as_ref());
                match self.setup.report.try_clone() {
                    Ok(report) => report.fail_and_exit(&error),
                    Err(_) => process::exit(ABANDONED),
                }
            }
        };
        drop(theirs);
        let questions = match ours {
            // A command that fails before it can send anything reports the reason.
            Some(ours) => notify::receive_descriptor(ours.as_fd())?,
            None => None,
        };
        let paths = supervised.unwrap_or_default();
        let mut act = |questions: &OwnedFd| metadata::answer(questions.as_fd(), &paths);
        let extra = questions.map(|descriptor| Extra { descriptor, act: &mut act });
        Ok(watch(command, &self.setup.control, extra))
    }

    /// Whether the kernel alone keeps the command from changing the metadata of files outside.
    fn has_guarded_metadata(&self) -> bool {
        match &self.world {
            // Bubblewrap leaves the devices on a writable mount, and they belong to root.
            World::Namespaces { .. } => {
                self.setup.backend == Backend::Namespaces || process::user_and_group().0 != 0
            }
            World::Shared => false,
        }
    }

    /// The paths whose metadata may be changed under supervision. Where nothing but temporary files
    /// can be written, no command needs that.
    fn supervised_paths(&self) -> io::Result<Option<Vec<PathBuf>>> {
        if self.has_guarded_metadata() || self.setup.confinement.write.is_empty() {
            return Ok(None);
        }
        let mut paths = vec![self.tmp.clone()];
        match &self.world {
            World::Namespaces { writable } => paths.extend(writable.iter().cloned()),
            World::Shared => {
                let roots = Root::all(&self.setup.confinement)?;
                paths.extend(roots.iter().filter(|root| root.writable).map(|root| root.path().to_owned()));
            }
        }
        Ok(Some(paths))
    }

    /// Gives up everything that the confinement does not allow and becomes the command. Returns
    /// only if that fails.
    fn become_command(&self, proxy: Option<u16>, listener: Option<&UnixStream>) -> io::Error {
        let prepare = || {
            process::new_session();
            process::reset_signals();
            std::env::set_current_dir(&self.current_dir).map_err(explain(format!(
                "the working directory `{}` is not visible in the sandbox",
                self.current_dir.display()
            )))?;
            apply_limits(&self.setup.confinement)?;
            process::drop_capabilities()?;
            process::no_new_privileges()?;
            self.restrict(listener)
        };
        match prepare() {
            Ok(()) => {
                let confinement = &self.setup.confinement;
                let variables = environment::variables(confinement, self.variables.clone(), &self.tmp, proxy);
                execute(&self.setup.command, variables)
            }
            Err(error) => error,
        }
    }

    fn restrict(&self, listener: Option<&UnixStream>) -> io::Result<()> {
        let confinement = &self.setup.confinement;
        let restricted = match &self.world {
            World::Namespaces { writable } => rules::restrict_inside(confinement, writable),
            World::Shared => rules::restrict_alone(confinement, &self.tmp),
        };
        restricted.map_err(explain("cannot apply Landlock"))?;
        let shared_system = matches!(self.world, World::Shared);
        let policy = Policy {
            sockets: match confinement.network {
                Network::Off => Sockets::None,
                Network::Proxy(_) => Sockets::Tcp,
                Network::Open => Sockets::Internet,
            },
            metadata: match listener {
                _ if self.has_guarded_metadata() => Metadata::Allow,
                Some(_) => Metadata::Ask,
                None => Metadata::Refuse,
            },
            shared_system,
        };
        let installed = seccomp::install(policy).or_else(|error| match error.raw_os_error() {
            // A sandbox around this one asks its own supervisor already, and there can be only one.
            Some(libc::EBUSY) => seccomp::install(Policy { metadata: Metadata::Refuse, ..policy }),
            _ => Err(error),
        });
        let questions = installed.map_err(explain("cannot apply seccomp"))?;
        if let (Some(questions), Some(listener)) = (questions, listener) {
            notify::send_descriptor(listener.as_fd(), questions.as_fd())?;
        }
        Ok(())
    }
}

/// Starts the command without namespaces, and ends all processes that it leaves.
pub(super) fn keep(mut setup: SandboxLaunch) -> ! {
    process::new_session();
    let prepared = process::adopt_orphans().and_then(|()| {
        let tmp = PrivateDirectory::create_in(&TEMPORARY.map(PathBuf::from))?;
        Ok((tmp, std::env::current_dir()?))
    });
    let (tmp, current_dir) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => setup.report.fail_and_exit(&error),
    };
    setup.report.begun();
    let path = tmp.path().to_owned();
    let variables = std::env::vars_os().collect();
    let inside = Inside { setup, world: World::Shared, tmp: path, current_dir, variables, proxy: None };
    let code = prepare().and_then(|()| inside.run_command(None));
    end_descendants();
    tmp.remove();
    match code {
        Ok(code) => process::exit(code.unwrap_or(ABANDONED)),
        Err(error) => inside.setup.report.fail_and_exit(&error),
    }
}

/// Kills all descendants of this process, which adopts the orphans among them.
fn end_descendants() {
    loop {
        for child in children() {
            let _ = process::kill(child, libc::SIGKILL);
        }
        // The death of one may make others children of this process, so this repeats until there
        // are none.
        match process::wait_any() {
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn children() -> Vec<libc::pid_t> {
    if let Ok(list) = std::fs::read_to_string("/proc/thread-self/children") {
        return list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    // Some kernels have no such list.
    let own = std::process::id().to_string();
    let is_child = |pid: &libc::pid_t| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split_ascii_whitespace().nth(1) == Some(&own))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}
