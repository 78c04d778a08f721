//! The sandbox on Linux.
//!
//! Processes, from the outside in: the outermost one (`supervise.rs`); one that removes
//! placeholders, if there are any; `bwrap`, if it is used; the first process of the namespaces, or
//! the one that replaces it without namespaces (`inside.rs`); the bridge to the proxy, if there is
//! one (`bridge.rs`); the command.

mod bridge;
mod bubblewrap;
mod inside;
mod metadata;
mod namespaces;
mod placeholder;
mod plan;
mod resolve;
mod roots;
mod rules;
mod system;

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use libc::pid_t;

use self::inside::{Inside, World};
use self::placeholder::Placeholder;
use self::plan::Plan;
use super::supervise::{SandboxLaunch, close_in_child};
use super::{Backend, Network};
use crate::sys::process::{self, Fork, user_and_group};

pub(super) use self::bubblewrap::continue_inside;

/// Adds the failed operation to an error.
fn explain(what: impl Into<String>) -> impl FnOnce(io::Error) -> io::Error {
    let what = what.into();
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Starts the inner processes. `orders` is the end of the pipe that only this process may have.
pub(super) fn start(setup: SandboxLaunch, orders: &PipeWriter) -> io::Result<pid_t> {
    if setup.backend == Backend::Landlock {
        return match process::fork()? {
            Fork::Parent(child) => Ok(child),
            Fork::Child => {
                close_in_child(orders);
                inside::keep(setup)
            }
        };
    }
    let placeholders = match setup.confinement.read_only.is_empty() {
        true => Vec::new(),
        false => placeholder::create_all(&setup.confinement)?,
    };
    if placeholders.is_empty() {
        return start_in_namespaces(setup, Some(orders));
    }
    match process::fork() {
        Ok(Fork::Parent(child)) => Ok(child),
        Ok(Fork::Child) => {
            close_in_child(orders);
            keep_placeholders(setup, placeholders)
        }
        Err(error) => {
            placeholders.into_iter().for_each(Placeholder::release);
            Err(error)
        }
    }
}

/// Waits for the end of the sandbox and removes the placeholders. It outlives the outermost process
/// for that.
fn keep_placeholders(setup: SandboxLaunch, placeholders: Vec<Placeholder>) -> ! {
    process::new_session();
    let report = match setup.report.try_clone() {
        Ok(report) => report,
        Err(error) => setup.report.fail_and_exit(&error),
    };
    let ended = start_in_namespaces(setup, None).and_then(process::wait);
    placeholders.into_iter().for_each(Placeholder::release);
    match ended {
        Ok(ended) => process::exit(ended.code()),
        Err(error) => report.fail_and_exit(&error),
    }
}

/// Starts the process that enters namespaces, by bubblewrap or directly.
fn start_in_namespaces(setup: SandboxLaunch, orders: Option<&PipeWriter>) -> io::Result<pid_t> {
    let ids = user_and_group();
    let current_dir = std::env::current_dir().map_err(explain("cannot find the working directory"))?;
    let proxy = open_proxy(&setup)?;
    if setup.backend == Backend::Bubblewrap {
        let plan = Plan::new(&setup.confinement)?;
        // Bubblewrap cannot keep a link in its place. The native namespaces can, and are no weaker
        // otherwise.
        if !plan.pins_links() {
            let start = bubblewrap::Start::new(&setup, &plan, &current_dir, proxy)?;
            return match process::fork()? {
                Fork::Parent(child) => Ok(child),
                Fork::Child => {
                    orders.into_iter().for_each(close_in_child);
                    process::new_session();
                    let error = start.execute();
                    setup.report.fail_and_exit(&error)
                }
            };
        }
    }
    let mut namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if setup.confinement.network != Network::Open {
        namespaces |= libc::CLONE_NEWNET;
    }
    match process::fork_into(namespaces).map_err(explain("cannot create namespaces"))? {
        Fork::Parent(child) => Ok(child),
        Fork::Child => {
            orders.into_iter().for_each(close_in_child);
            process::new_session();
            match enter(&setup, ids) {
                Ok((tmp, writable)) => {
                    let world = World::Namespaces { writable };
                    let variables = std::env::vars_os().collect();
                    Inside { setup, world, tmp, current_dir, variables, proxy }.begin()
                }
                Err(error) => setup.report.fail_and_exit(&error),
            }
        }
    }
}

/// Sets up the namespaces that this process is the first one of. Returns the temporary directory
/// and the writable paths.
fn enter(setup: &SandboxLaunch, ids: (u32, u32)) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    inside::die_with_parent(&setup.control)?;
    namespaces::map_user(ids).map_err(explain("cannot map the user"))?;
    let plan = Plan::new(&setup.confinement)?;
    namespaces::mount_all(&plan)?;
    if matches!(setup.confinement.network, Network::Proxy(_)) {
        process::raise_loopback().map_err(explain("cannot use the loopback interface"))?;
    }
    Ok((plan.tmp.clone(), plan.writable().map(PathBuf::from).collect()))
}

/// Opens the place of the proxy's socket, which is not visible inside.
fn open_proxy(setup: &SandboxLaunch) -> io::Result<Option<OwnedFd>> {
    let Network::Proxy(socket) = &setup.confinement.network else { return Ok(None) };
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    let place = File::options().read(true).custom_flags(flags).open(socket);
    place.map(|place| Some(place.into())).map_err(explain("cannot find the socket of the proxy"))
}
