//! The mount namespace of a command, as data. `bubblewrap.rs` and `namespaces.rs` create it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use super::placeholder;
use super::resolve::{End, Id, Step, Trail, hard_links};
use super::roots::Root;
use super::system;
use crate::sandbox::{Confinement, View};
use crate::sys::{self, Kind};

/// The private directories for temporary files. The first that is not visible for another reason is
/// `TMPDIR`.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The content of a path in the namespace.
#[derive(Debug)]
pub(super) enum Node {
    /// The same file, directory or link as outside, with everything below it. A link is bound only
    /// to keep it in its place.
    Bind { from: OwnedFd, id: Id, kind: Kind, writable: bool },
    /// An empty directory in memory.
    Memory { writable: bool },
    /// A file that can be neither read nor executed.
    Mask,
    /// A new link.
    Link(OsString),
    /// A new file.
    File(Vec<u8>),
    /// A new `/proc`.
    Processes,
    /// A new `/dev`.
    Devices,
}

/// The mount namespace of a command.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether everything outside is there, read-only, where no node says otherwise.
    pub(super) everything: bool,
    /// In the order of their paths, so that a directory comes before what is in it.
    pub(super) nodes: BTreeMap<PathBuf, Node>,
    /// The private temporary directory.
    pub(super) tmp: PathBuf,
    /// The size of a directory in memory.
    pub(super) tmp_bytes: Option<u64>,
}

impl Plan {
    /// Looks at all paths of a confinement, as they are seen by this process.
    pub(super) fn new(confinement: &Confinement) -> io::Result<Plan> {
        let everything = matches!(confinement.view, View::Everything { .. });
        let tmp_bytes = confinement.limits.tmp_bytes;
        let mut plan = Plan { everything, nodes: BTreeMap::new(), tmp: PathBuf::new(), tmp_bytes };
        plan.nodes.insert("/proc".into(), Node::Processes);
        plan.nodes.insert("/dev".into(), Node::Devices);
        plan.nodes.insert("/dev/shm".into(), Node::Memory { writable: true });
        if everything {
            for directory in ["/tmp", "/var/tmp"].map(Path::new) {
                if std::fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir()) {
                    plan.nodes.insert(directory.into(), Node::Memory { writable: true });
                }
            }
        } else {
            plan.nodes.insert("/tmp".into(), Node::Memory { writable: true });
            plan.nodes.insert("/var/tmp".into(), Node::Link("/tmp".into()));
            system::add(&mut plan, confinement)?;
        }
        for root in Root::all(confinement)? {
            plan.add_root(&root)?;
        }
        for path in &confinement.read_only {
            plan.keep_read_only(&Trail::follow(path)?)?;
        }
        if let View::Everything { hidden } = &confinement.view {
            for path in hidden {
                plan.hide(&Trail::follow(path)?)?;
            }
        }
        for path in &confinement.deny_exec {
            plan.hide_program(&Trail::follow(path)?)?;
        }
        let is_private =
            |path: &&Path| matches!(plan.nodes.get(*path), Some(Node::Memory { writable: true }));
        plan.tmp =
            TEMPORARY.map(Path::new).iter().copied().find(is_private).unwrap_or(Path::new("/")).to_owned();
        Ok(plan)
    }

    /// The paths that can be written to, besides devices.
    pub(super) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::Bind { writable: true, kind: Kind::File | Kind::Directory, .. }
            | Node::Memory { writable: true } => Some(path.as_path()),
            _ => None,
        })
    }

    /// Whether a link has to be kept in its place.
    pub(super) fn pins_links(&self) -> bool {
        self.nodes.values().any(|node| matches!(node, Node::Bind { kind: Kind::Link, .. }))
    }

    /// Adds a place that can be read or written.
    fn add_root(&mut self, root: &Root) -> io::Result<()> {
        self.bind(root.step(), root.writable)?;
        for link in root.links() {
            if !self.everything && !self.is_visible(&link.path) {
                self.nodes.insert(link.path.clone(), Node::Link(link.target.clone()));
            }
        }
        Ok(())
    }

    /// Keeps a path and the way to it from being changed.
    fn keep_read_only(&mut self, trail: &Trail) -> io::Result<()> {
        self.pin(trail)?;
        let last = trail.last();
        let protects_last = match &trail.end {
            End::Found | End::Blocked => true,
            // A placeholder was made for the first missing name unless the user may not write
            // there.
            End::Missing { .. } => placeholder::is_placeholder(last),
            End::Lost => false,
        };
        if protects_last && self.can_be_changed(last) {
            self.bind(last, false)?;
        }
        Ok(())
    }

    /// Makes something look empty.
    fn hide(&mut self, trail: &Trail) -> io::Result<()> {
        let Some(step) = trail.found() else { return Ok(()) };
        if step.path.parent().is_none() {
            return Err(io::Error::other("the whole file system cannot be hidden"));
        }
        self.pin(trail)?;
        let is_bound = matches!(self.nodes.get(&step.path), Some(Node::Bind { .. }));
        if is_bound || self.is_visible(&step.path) {
            let node = match step.kind {
                Kind::Directory => Node::Memory { writable: false },
                _ => Node::Mask,
            };
            self.nodes.insert(step.path.clone(), node);
        }
        Ok(())
    }

    /// Makes a program unusable, by all names that it has in its directory.
    fn hide_program(&mut self, trail: &Trail) -> io::Result<()> {
        let Some(step) = trail.found() else { return Ok(()) };
        if step.kind == Kind::File && sys::stat(step.descriptor.as_fd())?.names > 1 {
            for path in hard_links(step)? {
                self.hide(&Trail::follow(&path)?)?;
            }
        }
        self.hide(trail)
    }

    /// Keeps the directories and links that lead to a path in their place: something that is
    /// mounted cannot be renamed.
    fn pin(&mut self, trail: &Trail) -> io::Result<()> {
        let last = trail.last().path.clone();
        for step in &trail.steps {
            let is_on_the_way =
                step.kind == Kind::Link || (step.kind == Kind::Directory && step.path != last);
            let is_pinned = self.nodes.contains_key(&step.path);
            if is_on_the_way
                && !is_pinned
                && step.path.parent().is_some_and(|parent| self.is_writable(parent))
            {
                self.bind(step, true)?;
            }
        }
        Ok(())
    }

    fn bind(&mut self, step: &Step, writable: bool) -> io::Result<()> {
        let node =
            Node::Bind { from: step.descriptor.try_clone()?, id: step.id()?, kind: step.kind, writable };
        self.nodes.insert(step.path.clone(), node);
        Ok(())
    }

    /// The node that applies to a path: its own, or that of the nearest directory above it.
    fn node_above(&self, path: &Path) -> Option<&Node> {
        path.ancestors().find_map(|path| self.nodes.get(path))
    }

    fn is_writable(&self, path: &Path) -> bool {
        matches!(self.node_above(path), Some(Node::Bind { writable: true, .. }))
    }

    /// Whether a command could write to something, or replace it.
    fn can_be_changed(&self, step: &Step) -> bool {
        self.is_writable(&step.path) || step.path.parent().is_some_and(|parent| self.is_writable(parent))
    }

    /// Whether the file outside is visible at its path inside.
    fn is_visible(&self, path: &Path) -> bool {
        match self.node_above(path) {
            Some(node) => matches!(node, Node::Bind { .. }),
            None => self.everything,
        }
    }
}
