//! A confinement as a profile for `sandbox-exec` of macOS.
//!
//! The text is made on all systems, so that it is tested on all of them. In a profile the last rule
//! that matches decides.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Confinement, Network, View};

/// Rights that every program needs to start, and harmless ones.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero") (regex #"^/dev/ttys[0-9]+$"))
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.logd"))
"#;

/// Directories with programs and libraries, and the few files that those read.
const SYSTEM: &[&str] = &[
    "/System",
    "/usr",
    "/bin",
    "/sbin",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/Applications/Xcode.app/Contents/Developer",
    "/opt/homebrew",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/etc/localtime",
];

/// Devices that change nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// The profile of a confinement. `tmp` is the private temporary directory.
pub fn profile(confinement: &Confinement, tmp: &Path) -> String {
    let mut text = BASE.to_owned();
    match &confinement.view {
        View::Everything { hidden } => {
            rule(&mut text, "allow", "file-read*", "subpath", [Path::new("/")]);
            rule(&mut text, "deny", "file-read*", "subpath", hidden);
        }
        View::Only(roots) => {
            rule(&mut text, "allow", "file-read*", "literal", [Path::new("/")]);
            rule(&mut text, "allow", "file-read*", "subpath", SYSTEM);
            rule(&mut text, "allow", "file-read*", "subpath", roots);
        }
    }
    rule(&mut text, "allow", "file-read* file-write-data", "literal", DEVICES);
    // Terminals that the command already has open; it cannot open others.
    text.push_str("(allow file-read* file-write-data file-ioctl (literal \"/dev/tty\"))\n");
    let writable = confinement.write.iter().map(PathBuf::as_path).chain([tmp]);
    rule(&mut text, "allow", "file-read* file-write*", "subpath", writable);
    // The directories above must stay in their place too, or another one could take it.
    let protected = &confinement.read_only;
    rule(&mut text, "deny", "file-write*", "subpath", protected);
    let above =
        protected.iter().flat_map(|path| path.ancestors().skip(1)).filter(|path| path.parent().is_some());
    rule(&mut text, "deny", "file-write-unlink", "literal", above);
    rule(&mut text, "deny", "process-exec file-read*", "literal", &confinement.deny_exec);
    if confinement.network == Network::Open {
        text.push_str("(allow network* (remote ip) (local ip))\n(allow system-socket)\n");
        text.push_str("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))\n");
    }
    text
}

/// Adds a rule about paths, if there are any.
fn rule(
    text: &mut String,
    verdict: &str,
    operations: &str,
    filter: &str,
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
) {
    let mut paths = paths.into_iter().peekable();
    if paths.peek().is_none() {
        return;
    }
    let _ = write!(text, "({verdict} {operations}");
    for path in paths {
        let _ = write!(text, "\n  ({filter} {})", quoted(path.as_ref()));
    }
    text.push_str(")\n");
}

/// A path as a string of the profile language. Nothing in it can end the string.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    // A rule about a directory does not match a path with a slash at the end.
    let path: PathBuf = path.components().collect();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('"');
    text
}

/// Waits next to the command, which runs under `sandbox-exec`.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn keep(mut setup: super::supervise::SandboxLaunch) -> ! {
    use super::supervise::{apply_limits, execute, watch};
    use super::temporary::PrivateDirectory;
    use crate::sys::process::{self, Fork};

    const PROGRAM: &str = "/usr/bin/sandbox-exec";
    process::new_session();
    let tmp = match PrivateDirectory::create_in(&[std::env::temp_dir(), "/tmp".into()]) {
        Ok(tmp) => tmp,
        Err(error) => setup.report.fail_and_exit(&error),
    };
    setup.report.begun();
    process::wake_on_child();
    let command = match process::fork() {
        Ok(Fork::Parent(command)) => Ok(command),
        Ok(Fork::Child) => {
            process::new_session();
            process::reset_signals();
            let real = resolved(&setup.confinement);
            let mut line = vec![PROGRAM.into(), "-p".into(), profile(&real, tmp.path()).into(), "--".into()];
            match setup.command.as_slice() {
                [] => {
                    line.extend(["/usr/bin/printf".into(), "%s".into(), super::backend::PROBE_ANSWER.into()])
                }
                command => line.extend(command.iter().cloned()),
            }
            let confinement = &setup.confinement;
            let variables = super::environment::variables(confinement, std::env::vars_os(), tmp.path(), None);
            let error = apply_limits(confinement).err().unwrap_or_else(|| execute(&line, variables));
            setup.report.fail_and_exit(&error)
        }
        Err(error) => Err(error),
    };
    let code = command.map(|command| {
        let code = watch(command, &setup.control, None);
        // There is no way to find those that have begun a session of their own.
        let _ = process::kill(-command, libc::SIGKILL);
        code
    });
    tmp.remove();
    match code {
        Ok(code) => process::exit(code.unwrap_or(u8::MAX)),
        Err(error) => setup.report.fail_and_exit(&error),
    }
}

/// The same confinement with real paths: profiles know no others.
#[cfg(all(unix, not(target_os = "linux")))]
fn resolved(confinement: &Confinement) -> Confinement {
    let real = |paths: &Vec<PathBuf>| -> Vec<PathBuf> {
        paths.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect()
    };
    Confinement {
        view: match &confinement.view {
            View::Everything { hidden } => View::Everything { hidden: real(hidden) },
            View::Only(roots) => View::Only(real(roots)),
        },
        write: real(&confinement.write),
        read_only: real(&confinement.read_only),
        deny_exec: real(&confinement.deny_exec),
        ..confinement.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Environment, Limits};

    fn tmp() -> &'static Path {
        Path::new("/private/tmp/t")
    }

    #[test]
    fn a_read_only_view_names_its_roots_and_nothing_else() {
        let text = profile(&Confinement::read_only(["/Users/u/p"]), tmp());
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(text.contains("(allow file-read*\n  (subpath \"/Users/u/p\"))\n"), "{text}");
        assert!(!text.contains("(subpath \"/\")"));
        assert!(!text.contains("network"));
        assert!(text.contains("(allow file-read* file-write*\n  (subpath \"/private/tmp/t\"))\n"));
    }

    #[test]
    fn later_rules_take_back_what_earlier_ones_allow() {
        let confinement = Confinement {
            view: View::Everything { hidden: vec!["/Users/u/.ssh".into()] },
            write: vec!["/Users/u/p".into()],
            read_only: vec!["/Users/u/p/.git/hooks/".into()],
            network: Network::Open,
            environment: Environment::Keep,
            limits: Limits::default(),
            deny_exec: vec!["/bin/rm".into()],
        };
        let text = profile(&confinement, tmp());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part} in\n{text}"));
        assert!(
            at("(allow file-read*\n  (subpath \"/\"))")
                < at("(deny file-read*\n  (subpath \"/Users/u/.ssh\"))")
        );
        let write = at("(allow file-read* file-write*\n  (subpath \"/Users/u/p\")");
        assert!(write < at("(deny file-write*\n  (subpath \"/Users/u/p/.git/hooks\"))"));
        at("(deny file-write-unlink\n  (literal \"/Users/u/p/.git\")\n  (literal \"/Users/u/p\")");
        at("(deny process-exec file-read*\n  (literal \"/bin/rm\"))");
        at("(allow network* (remote ip) (local ip))");
    }

    #[test]
    fn no_path_can_end_its_string() {
        let path = "/p\")(allow default)(deny default (literal \"\\\n\té";
        let text = profile(&Confinement::read_only([path]), tmp());
        let expected = r#"(subpath "/p\")(allow default)(deny default (literal \"\\\x0a\x09\xc3\xa9")"#;
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.matches("(allow default)").count(), 1);
    }

    #[test]
    fn every_parenthesis_is_closed() {
        let text = profile(&Confinement::writable(["/a"]), tmp());
        let depth = text.chars().fold(0, |depth, c| depth + i32::from(c == '(') - i32::from(c == ')'));
        assert_eq!(depth, 0, "{text}");
    }
}
