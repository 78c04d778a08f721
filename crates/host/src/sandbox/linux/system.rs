//! The parts of the system that programs need to run, for commands that see little else.

use std::io;
use std::path::Path;

use super::plan::{Node, Plan};
use super::resolve::Trail;
use crate::sandbox::{Confinement, Network};
use crate::sys::Kind;
use crate::sys::process::user_and_group;

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

/// Directories inside these that hold no programs.
pub(super) const NO_PROGRAMS: &[&str] = &["/usr/src", "/usr/local/src", "/usr/local/etc"];

/// Settings of the linker, locales, time zones and terminals, and links to alternative programs.
pub(super) const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/os-release",
    "/etc/terminfo",
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
        if path.is_dir() {
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

/// Adds a link as a link, and something else read-only. The target of a link is added only if it is inside another part.
fn add_as_it_is(plan: &mut Plan, path: &Path) -> io::Result<()> {
    let trail = Trail::follow(path)?;
    let Some(step) = trail.steps.iter().find(|step| step.path == path) else { return Ok(()) };
    let node = match step.kind {
        Kind::Link => Node::Link(step.target.clone()),
        Kind::File | Kind::Directory => Node::Bind {
            from: step.descriptor.try_clone()?,
            id: step.id()?,
            kind: step.kind,
            writable: false,
        },
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
