//! The second stage: it runs inside of the namespaces, starts the command and waits for its end.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::roots::Root;
use super::{bridge, explain, metadata, rules};
use crate::sandbox::supervise::{Extra, Setup, apply_limits, execute, watch};
use crate::sandbox::temporary::PrivateDirectory;
use crate::sandbox::{Network, environment};
use crate::sys::notify;
use crate::sys::process::{self, Fork};
use crate::sys::seccomp::{self, Metadata, Policy, Sockets};

/// Where private temporary directories are created, without namespaces.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The code that is left when the outermost process is gone: nobody reads it.
const ABANDONED: u8 = 128 + 9;

/// What surrounds the command.
pub(super) enum World {
    /// Namespaces of its own, in which these paths can be written to.
    Namespaces { writable: Vec<PathBuf> },
    /// The same system as everybody's.
    Shared,
}

/// Everything that the second stage needs.
pub(super) struct Inside {
    pub(super) setup: Setup,
    pub(super) world: World,
    /// The private temporary directory.
    pub(super) tmp: PathBuf,
    pub(super) current_dir: PathBuf,
    /// The place of the proxy's socket.
    pub(super) proxy: Option<OwnedFd>,
}

/// Ends this process when its parent ends, also if it has ended already.
pub(super) fn die_with_parent(control: &OwnedFd) -> io::Result<()> {
    process::die_with_parent()?;
    // The outermost process never writes before the command runs, so the pipe can be read only if it has been closed.
    let mut control = File::from(control.try_clone()?);
    if process::is_readable(control.as_fd()) && control.read(&mut [0]).is_ok_and(|count| count == 0) {
        process::exit(ABANDONED);
    }
    Ok(())
}

impl Inside {
    /// Starts the command as the first process of the namespaces. All others end with this one.
    pub(super) fn begin(mut self) -> ! {
        self.setup.report.begun();
        let code = self.start_and_wait();
        match code {
            Ok(code) => process::exit(code.unwrap_or(ABANDONED)),
            Err(error) => self.setup.report.fail_and_exit(&error),
        }
    }

    fn start_and_wait(&mut self) -> io::Result<Option<u8>> {
        process::hide_memory()?;
        process::drop_capabilities()?;
        process::wake_on_child();
        let port = match &self.proxy {
            Some(socket) => {
                Some(bridge::start(socket).map_err(explain("cannot start the bridge to the proxy"))?)
            }
            None => None,
        };
        match process::fork()? {
            Fork::Parent(command) => {
                self.proxy = None;
                Ok(watch(command, &self.setup.control, None))
            }
            Fork::Child => Err(self.become_command(port, None)),
        }
    }

    /// Gives up everything that the confinement does not allow and becomes the command. Returns only if that fails.
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
                let variables = environment::variables(confinement, std::env::vars_os(), &self.tmp, proxy);
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
            metadata: match (shared_system, listener) {
                (false, _) => Metadata::Allow,
                (true, None) => Metadata::Refuse,
                (true, Some(_)) => Metadata::Ask,
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

/// Starts the command without namespaces, and ends everything that it leaves behind.
pub(super) fn keep(mut setup: Setup) -> ! {
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
    let inside = Inside { setup, world: World::Shared, tmp: path, current_dir, proxy: None };
    let code = inside.keep_command();
    end_descendants();
    tmp.remove();
    match code {
        Ok(code) => process::exit(code.unwrap_or(ABANDONED)),
        Err(error) => inside.setup.report.fail_and_exit(&error),
    }
}

impl Inside {
    fn keep_command(&self) -> io::Result<Option<u8>> {
        process::hide_memory()?;
        process::drop_capabilities()?;
        process::wake_on_child();
        let confinement = &self.setup.confinement;
        // Where nothing but temporary files can be written, no command needs their permissions changed.
        let channel = if confinement.write.is_empty() { None } else { Some(UnixStream::pair()?) };
        let (ours, theirs) = match channel {
            Some((ours, theirs)) => (Some(ours), Some(theirs)),
            None => (None, None),
        };
        let command = match process::fork()? {
            Fork::Parent(command) => command,
            Fork::Child => {
                drop(ours);
                let error = self.become_command(None, theirs.as_ref());
                match self.setup.report.try_clone() {
                    Ok(report) => report.fail_and_exit(&error),
                    Err(_) => process::exit(ABANDONED),
                }
            }
        };
        drop(theirs);
        let questions = match ours {
            // The command has failed before it could send anything, and says why by itself.
            Some(ours) => notify::receive_descriptor(ours.as_fd())?,
            None => None,
        };
        let mut writable = vec![self.tmp.clone()];
        let roots = Root::all(confinement)?;
        writable.extend(roots.iter().filter(|root| root.writable).map(|root| root.path().to_owned()));
        let mut act = |questions: &OwnedFd| metadata::answer(questions.as_fd(), &writable);
        let extra = questions.map(|descriptor| Extra { descriptor, act: &mut act });
        Ok(watch(command, &self.setup.control, extra))
    }
}

/// Kills all descendants of this process, which adopts the orphans among them.
fn end_descendants() {
    loop {
        for child in children() {
            let _ = process::kill(child, libc::SIGKILL);
        }
        // The death of one may make others children of this process, so this goes on until there are none.
        match process::wait_any() {
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

fn children() -> Vec<libc::pid_t> {
    let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
