//! A plan carried out by this process, in namespaces that it has just entered.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::explain;
use super::plan::{Node, Plan};
use super::resolve::Id;
use crate::sys::mount::{self, attribute};
use crate::sys::process::user_and_group;
use crate::sys::{Dir, Kind};

/// Attributes of every mount in the namespace.
const SAFE: u64 = attribute::NO_SETUID | attribute::NO_DEVICES;

/// Devices that are harmless to read and write.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Maps the user and group of this process to themselves in a user namespace that it is the first
/// process of.
pub(super) fn map_user((user, group): (u32, u32)) -> io::Result<()> {
    // Without this the kernel lets no unprivileged process map a group.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    debug_assert_eq!(user_and_group(), (user, group));
    Ok(())
}

fn write(path: &str, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

/// Mounts everything that is in the plan and makes it the root of this process.
pub(super) fn mount_all(plan: &Plan) -> io::Result<()> {
    let root = Dir::open(Path::new("/"))?;
    mount::make_private_below(root.descriptor()).map_err(explain("cannot separate the mounts"))?;
    // All copies are made before anything changes, so that they have the attributes of the
    // originals.
    let mut copies = Vec::new();
    for (path, node) in &plan.nodes {
        let from = match node {
            Node::Bind { from, .. } => from.try_clone()?,
            Node::Mask => device("null")?,
            _ => continue,
        };
        let copy = mount::copy(from.as_fd()).map_err(explain(format!("cannot bind `{}`", path.display())))?;
        let writable = matches!(node, Node::Bind { writable: true, .. });
        let attributes = if writable { SAFE } else { SAFE | attribute::READ_ONLY };
        mount::set_attributes_below(copy.as_fd(), attributes)?;
        copies.push(copy);
    }
    let devices = Devices::new()?;
    let processes = mount::new_file_system(c"proc", &[], SAFE | attribute::READ_ONLY | attribute::NO_EXEC)
        .map_err(explain("cannot mount a new /proc"))?;

    let root = if plan.everything {
        mount::set_attributes_below(root.descriptor(), SAFE | attribute::READ_ONLY)
            .map_err(explain("cannot make the file system read-only"))?;
        root
    } else {
        let new_root = mount::new_file_system(c"tmpfs", &[(c"mode", Some("755"))], SAFE)?;
        // A place that surely exists; it is left together with the former root.
        let place = Dir::open(Path::new("/proc"))?;
        mount::place(new_root.as_fd(), place.descriptor())?;
        Dir::from(new_root)
    };

    let mut copies = copies.iter();
    let mut in_memory = Vec::new();
    for (path, node) in &plan.nodes {
        let failed = || explain(format!("cannot mount `{}`", path.display()));
        match node {
            Node::Bind { id, kind, .. } => {
                let copy = copies.next().ok_or(io::ErrorKind::InvalidData)?;
                let place = place_for(&root, path, *kind == Kind::Directory).map_err(failed())?;
                // An existing place is the same file as outside, unless it has been moved
                // meanwhile.
                if place.existed && Id::of(place.descriptor.as_fd())? != *id {
                    return Err(io::Error::other(format!("`{}` has been replaced", path.display())));
                }
                mount::place(copy.as_fd(), place.descriptor.as_fd()).map_err(failed())?;
            }
            Node::Mask => {
                let copy = copies.next().ok_or(io::ErrorKind::InvalidData)?;
                let place = place_for(&root, path, false).map_err(failed())?;
                mount::place(copy.as_fd(), place.descriptor.as_fd()).map_err(failed())?;
            }
            Node::Memory { writable } => {
                let memory = memory(plan.tmp_bytes.filter(|_| *writable), *writable).map_err(failed())?;
                let place = place_for(&root, path, true).map_err(failed())?;
                mount::place(memory.as_fd(), place.descriptor.as_fd()).map_err(failed())?;
                if !*writable {
                    in_memory.push(memory);
                }
            }
            Node::Link(target) => {
                let directory = directory_for(&root, parent(path)).map_err(failed())?;
                directory.make_link(name(path), target).map_err(failed())?;
            }
            Node::File(content) => {
                let directory = directory_for(&root, parent(path)).map_err(failed())?;
                directory
                    .create(name(path), 0o444)
                    .and_then(|mut file| file.write_all(content))
                    .map_err(failed())?;
            }
            Node::Processes => {
                let place = place_for(&root, path, true).map_err(failed())?;
                mount::place(processes.as_fd(), place.descriptor.as_fd()).map_err(failed())?;
            }
            Node::Devices => in_memory.push(devices.mount(&root, path).map_err(failed())?),
        }
    }
    // Now that everything has its place, nothing else may be created there.
    for memory in in_memory {
        mount::set_attributes(memory.as_fd(), attribute::READ_ONLY)?;
    }
    if !plan.everything {
        mount::set_attributes(root.descriptor(), attribute::READ_ONLY)?;
        mount::change_root(root.descriptor()).map_err(explain("cannot change the root"))?;
    }
    Ok(())
}

fn memory(bytes: Option<u64>, shared: bool) -> io::Result<OwnedFd> {
    let size = bytes.map(|bytes| bytes.to_string());
    // Empty files take memory too, which the size does not count.
    let files = bytes.map(|bytes| (bytes / 4096).max(1024).to_string());
    let mut options = vec![(c"mode", Some(if shared { "1777" } else { "755" }))];
    options.extend(size.as_deref().map(|size| (c"size", Some(size))));
    options.extend(files.as_deref().map(|files| (c"nr_inodes", Some(files))));
    mount::new_file_system(c"tmpfs", &options, SAFE)
}

fn device(name: &str) -> io::Result<OwnedFd> {
    Dir::open(Path::new("/dev"))?.open_path(OsStr::new(name))
}

/// A new `/dev`, made of some of the devices outside.
struct Devices {
    copies: Vec<(&'static str, OwnedFd)>,
}

impl Devices {
    fn new() -> io::Result<Devices> {
        let mut copies = Vec::new();
        for name in DEVICES {
            match device(name) {
                Ok(device) => copies.push((name, mount::copy(device.as_fd())?)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Devices { copies })
    }

    fn mount(&self, root: &Dir, path: &Path) -> io::Result<OwnedFd> {
        let memory = memory(None, false)?;
        let place = place_for(root, path, true)?;
        mount::place(memory.as_fd(), place.descriptor.as_fd())?;
        let directory = Dir::from(memory.try_clone()?);
        for (name, copy) in &self.copies {
            directory.create(OsStr::new(name), 0o666)?;
            // Devices can be written to all the same, but their owner and permissions are those of
            // everyone.
            let attributes = attribute::NO_SETUID | attribute::NO_EXEC | attribute::READ_ONLY;
            mount::set_attributes(copy.as_fd(), attributes)?;
            mount::place(copy.as_fd(), directory.open_path(OsStr::new(name))?.as_fd())?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            directory.make_link(OsStr::new(name), OsStr::new(target))?;
        }
        directory.make_dir(OsStr::new("shm"))?;
        directory.make_dir(OsStr::new("pts"))?;
        let options = [(c"ptmxmode", Some("0666")), (c"mode", Some("620"))];
        let attributes = attribute::NO_SETUID | attribute::NO_EXEC;
        let terminals = mount::new_file_system(c"devpts", &options, attributes)?;
        mount::place(terminals.as_fd(), directory.open_path(OsStr::new("pts"))?.as_fd())?;
        Ok(memory)
    }
}

/// An open path to mount something on.
struct MountPoint {
    descriptor: OwnedFd,
    /// Whether it existed before.
    existed: bool,
}

/// Opens a mount point. A missing one is created, which works in memory only.
fn place_for(root: &Dir, path: &Path, is_directory: bool) -> io::Result<MountPoint> {
    match mount::open_place(root.descriptor(), path) {
        Ok(descriptor) => return Ok(MountPoint { descriptor, existed: true }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let directory = directory_for(root, parent(path))?;
    if is_directory {
        directory.make_dir(name(path))?;
    } else {
        directory.create(name(path), 0o444)?;
    }
    Ok(MountPoint { descriptor: directory.open_path(name(path))?, existed: false })
}

/// A directory, with all directories above it.
fn directory_for(root: &Dir, path: &Path) -> io::Result<Dir> {
    let mut directory = Dir::from(mount::open_place(root.descriptor(), Path::new("/"))?);
    for name in path.strip_prefix("/").unwrap_or(path).iter() {
        let next = match directory.child(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                directory.make_dir(name)?;
                directory.child(name)?
            }
            next => next?,
        };
        directory = next;
    }
    Ok(directory)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(OsStr::from_bytes(b"/"))
}
