//! The places that a confinement gives access to.

use std::io;
use std::path::{Path, PathBuf};

use super::resolve::{Step, Trail};
use crate::sandbox::{Confinement, View};

/// A place that exists, with the way to it.
pub(super) struct Root {
    trail: Trail,
    pub(super) writable: bool,
}

impl Root {
    /// All places of a confinement. A path is left out if it does not exist, or if it leads through
    /// a link inside another place: the project or an earlier command decides where that link
    /// points to.
    pub(super) fn all(confinement: &Confinement) -> io::Result<Vec<Root>> {
        let read = match &confinement.view {
            View::Only(roots) => roots.as_slice(),
            View::Everything { .. } => &[],
        };
        let mut roots = Vec::new();
        for (paths, writable) in [(read, false), (&confinement.write, true)] {
            for path in paths {
                let trail = Trail::follow(path)?;
                if trail.found().is_some() {
                    roots.push(Root { trail, writable });
                }
            }
        }
        let real: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
        let is_foreign = |link: &Step| real.iter().any(|root| link.path.starts_with(root));
        roots.retain(|root| !root.links().any(is_foreign));
        roots.iter().try_for_each(|root| refuse_special(root.path()))?;
        Ok(roots)
    }

    pub(super) fn step(&self) -> &Step {
        self.trail.last()
    }

    /// The real path.
    pub(super) fn path(&self) -> &Path {
        &self.step().path
    }

    /// The links on the way.
    pub(super) fn links(&self) -> impl Iterator<Item = &Step> {
        self.trail.links()
    }
}

/// Refuses directories whose content is made by the kernel: what is shown of them is not up to the
/// caller.
fn refuse_special(path: &Path) -> io::Result<()> {
    let kernel = ["/proc", "/sys"].iter().any(|special| path.starts_with(special));
    let devices = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    if kernel || devices || path.parent().is_none() {
        return Err(io::Error::other(format!("`{}` cannot be a directory of a sandbox", path.display())));
    }
    Ok(())
}
