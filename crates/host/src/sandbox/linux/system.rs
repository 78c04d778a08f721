//! The parts of the system that programs need to run, for commands that see little else.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::plan::{Node, Plan};
use super::resolve::Id;
use crate::sandbox::{Confinement, Network};
use crate::sys::process::user_and_group;
use crate::sys::{self, FileStat, Kind};

/// Directories with programs and libraries.
pub(super) const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// Directories inside these that hold projects and settings of the machine, which may be
/// confidential.
pub(super) const NO_PROGRAMS: &[&str] = &["/usr/local/src", "/usr/local/etc"];

/// Settings of the linker, locales and time zones, and links to alternative programs.
pub(super) const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/os-release",
    "/etc/timezone",
];

/// Settings of encrypted connections: certificates of authorities, never private keys.
pub(super) const CERTIFICATES: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
];

/// Settings of name lookups.
pub(super) const NAME_LOOKUP: &[&str] = &["/etc/hosts", "/etc/resolv.conf"];

/// Files up to this size are copied, which is faster than a mount.
const COPIED_BYTES: u64 = 256 * 1024;

/// Whether a path is one of those that are always shown.
pub(super) fn is_part(path: &Path) -> bool {
    [PROGRAMS, SETTINGS, CERTIFICATES].concat().iter().any(|part| Path::new(part) == path)
}

/// Adds these parts of the system to a view that has nothing yet.
pub(super) fn add(plan: &mut Plan, confinement: &Confinement) -> io::Result<()> {
    let certificates: &[&str] = if confinement.network == Network::Off { &[] } else { CERTIFICATES };
    for path in PROGRAMS.iter().chain(SETTINGS).chain(certificates) {
        add_as_it_is(plan, Path::new(path))?;
    }
    for path in NO_PROGRAMS.iter().map(Path::new) {
        // An empty directory needs no mask, and each mask takes time.
        if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            plan.nodes.insert(path.into(), Node::Memory { writable: false });
        }
    }
    let (user, group) = user_and_group();
    let mut add_file = |path: &str, text: String| {
        plan.nodes.insert(path.into(), Node::File(text.into_bytes()));
    };
    let name = name_of(Path::new("/etc/passwd"), user);
    let mut users = "root:x:0:0:root:/root:/bin/sh\n".to_owned();
    if user != 0 {
        users.push_str(&format!("{name}:x:{user}:{group}::/tmp:/bin/sh\n"));
    }
    add_file("/etc/passwd", users);
    let name = name_of(Path::new("/etc/group"), group);
    let mut groups = "root:x:0:\n".to_owned();
    if group != 0 {
        groups.push_str(&format!("{name}:x:{group}:\n"));
    }
    add_file("/etc/group", groups);
    add_file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned());
    if confinement.network == Network::Open {
        for path in NAME_LOOKUP {
            add_file(path, std::fs::read_to_string(path).unwrap_or_default());
        }
    } else {
        add_file("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned());
    }
    Ok(())
}

/// Adds a link as a link, a small file as a copy and something else read-only. The target of a link
/// is added only if it is inside another part.
fn add_as_it_is(plan: &mut Plan, path: &Path) -> io::Result<()> {
    // The directories above belong to the administrator.
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let Ok(place) = File::options().read(true).custom_flags(flags).open(path) else { return Ok(()) };
    let FileStat { kind, device, inode, .. } = sys::stat(place.as_fd())?;
    let node = match kind {
        Kind::Link => Node::Link(sys::target_of(place.as_fd())?),
        Kind::File if place.metadata()?.len() <= COPIED_BYTES => match std::fs::read(path) {
            Ok(content) => Node::File(content),
            Err(_) => return Ok(()),
        },
        Kind::File | Kind::Directory => {
            Node::Bind { from: place.into(), id: Id { device, inode }, kind, writable: false }
        }
        Kind::Fifo | Kind::Socket | Kind::Device => return Ok(()),
    };
    plan.nodes.insert(path.into(), node);
    Ok(())
}

/// The name of a user or group by its number, in a file of the form of `/etc/passwd`.
fn name_of(file: &Path, id: u32) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| "user".to_owned())
}
