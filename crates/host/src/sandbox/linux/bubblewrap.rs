//! A plan carried out by the program `bwrap`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use super::explain;
use super::inside::{Inside, World, die_with_parent};
use super::plan::{Node, Plan};
use super::resolve::Id;
use super::system;
use crate::sandbox::supervise::{Report, SandboxLaunch};
use crate::sandbox::{Backend, Network, WORD, environment, words};
use crate::sys::{Dir, mount, process};

/// Directories of the system with programs. `PATH` is not used, because the requester of the
/// command may have set it.
const DIRECTORIES: [&str; 5] =
    ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"];

/// The first argument of the second stage: the numbers of the descriptors that it gets.
const INSIDE: &str = "--inside=";

/// A command line of `bwrap`, with the descriptors that belong to it.
pub(super) struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
    descriptors: Vec<OwnedFd>,
}

impl Start {
    pub(super) fn new(
        setup: &SandboxLaunch,
        plan: &Plan,
        current_dir: &Path,
        proxy: Option<OwnedFd>,
    ) -> io::Result<Start> {
        let mut candidates = DIRECTORIES.iter().map(|directory| Path::new(directory).join("bwrap"));
        let program = candidates.find(|path| path.is_file());
        let program = program.ok_or_else(|| io::Error::other("bubblewrap is not installed"))?;
        let confinement = &setup.confinement;
        let mut start = Start { program, arguments: Vec::new(), descriptors: Vec::new() };
        let flags = [
            "--unshare-user-try",
            "--unshare-pid",
            "--unshare-ipc",
            "--die-with-parent",
            "--new-session",
            "--as-pid-1",
        ];
        start.arguments.extend(flags.map(OsString::from));
        if confinement.network != Network::Open {
            start.arguments.push("--unshare-net".into());
        }
        start.add_plan(plan)?;

        let own = File::options().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe")?;
        let own = start.keep(own.into());
        let control = start.keep(setup.control.try_clone()?);
        let report = start.keep(setup.report.0.try_clone()?.into());
        let notes = start.keep(process::anonymous_file(notes(setup, plan, current_dir).as_bytes())?);
        let proxy = proxy.map_or(-1, |proxy| start.keep(proxy));
        start.add(["--chdir", "/", "--"]);
        start.add([format!("/proc/self/fd/{own}").as_str(), WORD]);
        start.add([format!("{INSIDE}{control},{report},{notes},{proxy}")]);
        // The first word was our own program, which goes by its descriptor here, and the second one
        // is there already.
        let line = confinement.command(Backend::Bubblewrap, Path::new("/"), &setup.command);
        start.arguments.extend(line.into_iter().skip(2));
        Ok(start)
    }

    /// Becomes `bwrap`. Returns only if that fails.
    pub(super) fn execute(&self) -> io::Error {
        for descriptor in &self.descriptors {
            if let Err(error) = process::inherit(descriptor.as_fd()) {
                return error;
            }
        }
        let mut command = std::process::Command::new(&self.program);
        // Variables of the command, for example `LD_PRELOAD`, must not change programs that run
        // outside.
        command.args(&self.arguments).env_clear();
        explain(format!("cannot run `{}`", self.program.display()))(command.exec())
    }

    fn add<const N: usize>(&mut self, words: [impl AsRef<OsStr>; N]) {
        self.arguments.extend(words.iter().map(|word| word.as_ref().to_owned()));
    }

    fn keep(&mut self, descriptor: OwnedFd) -> RawFd {
        let number = descriptor.as_raw_fd();
        self.descriptors.push(descriptor);
        number
    }

    fn add_plan(&mut self, plan: &Plan) -> io::Result<()> {
        if plan.everything {
            self.add(["--ro-bind", "/", "/"]);
        }
        // Directories in memory are private, so Landlock alone keeps them read-only: each remount
        // takes time.
        let mut read_only = Vec::new();
        for (path, node) in &plan.nodes {
            let path = path.as_os_str();
            match node {
                Node::Bind { writable, .. } => {
                    let option = if *writable { "--bind" } else { "--ro-bind" };
                    self.add([OsStr::new(option), path, path]);
                }
                Node::Memory { writable } => {
                    self.add(["--perms", if *writable { "1777" } else { "0755" }]);
                    if let Some(bytes) = plan.tmp_bytes.filter(|_| *writable) {
                        self.add(["--size", &bytes.to_string()]);
                    }
                    self.add([OsStr::new("--tmpfs"), path]);
                }
                Node::Mask => self.add([OsStr::new("--ro-bind"), OsStr::new("/dev/null"), path]),
                Node::Link(target) => self.add([OsStr::new("--symlink"), target, path]),
                Node::File(content) => {
                    let file = self.keep(process::anonymous_file(content)?);
                    self.add([OsStr::new("--file"), OsStr::new(&file.to_string()), path]);
                }
                Node::Processes => {
                    self.add([OsStr::new("--proc"), path]);
                    read_only.push(path);
                }
                Node::Devices => self.add([OsStr::new("--dev"), path]),
            }
        }
        if !plan.everything {
            read_only.push(OsStr::new("/"));
        }
        for path in read_only {
            self.add([OsStr::new("--remount-ro"), path]);
        }
        Ok(())
    }
}

/// The parts of the plan that the second stage needs, as text.
fn notes(setup: &SandboxLaunch, plan: &Plan, current_dir: &Path) -> String {
    let encode = words::encode_path;
    let mut notes = format!("tmp {}\ncwd {}\n", encode(&plan.tmp), encode(current_dir));
    for path in plan.writable() {
        notes.push_str(&format!("write {}\n", encode(path)));
    }
    for (name, value) in environment::variables(&setup.confinement, std::env::vars_os(), &plan.tmp, None) {
        notes.push_str(&format!("env {}\t{}\n", encode(Path::new(&name)), encode(Path::new(&value))));
    }
    for (path, node) in &plan.nodes {
        // Updates replace files of the system at any time; commands cannot.
        if let Node::Bind { id, .. } = node
            && !system::is_part(path)
        {
            notes.push_str(&format!("same {} {} {}\n", id.device, id.inode, encode(path)));
        }
    }
    notes
}

/// Continues with the second stage if the arguments are those of it, and then does not return.
pub(in crate::sandbox) fn continue_inside(arguments: &[OsString]) -> io::Result<()> {
    let Some((first, rest)) = arguments.split_first() else { return Ok(()) };
    let Some(numbers) = first.to_str().and_then(|first| first.strip_prefix(INSIDE)) else { return Ok(()) };
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let numbers: Vec<RawFd> = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
    let [control, report, notes, proxy] = numbers[..] else { return Err(invalid()) };
    let (backend, confinement, command) = words::decode(rest).ok_or_else(invalid)?;
    process::close_descriptors(3, &[control, report, notes, proxy]);
    let report = Report(process::take_descriptor(report)?.into());
    let control = process::take_descriptor(control)?;
    let notes = process::take_descriptor(notes)?;
    let proxy = if proxy < 0 { None } else { Some(process::take_descriptor(proxy)?) };
    let setup = SandboxLaunch { backend, confinement, command: command.to_vec(), control, report };
    match die_with_parent(&setup.control).and_then(|()| read_notes(notes)) {
        Ok(Notes { tmp, current_dir, writable, variables }) => {
            let world = World::Namespaces { writable };
            Inside { setup, world, tmp, current_dir, variables, proxy }.begin()
        }
        Err(error) => setup.report.fail_and_exit(&error),
    }
}

struct Notes {
    tmp: PathBuf,
    current_dir: PathBuf,
    writable: Vec<PathBuf>,
    variables: Vec<(OsString, OsString)>,
}

/// Reads the notes and compares what is mounted with what was meant: `bwrap` follows paths a second
/// time.
fn read_notes(notes: OwnedFd) -> io::Result<Notes> {
    let mut text = String::new();
    File::from(notes).read_to_string(&mut text)?;
    let (tmp, current_dir) = (PathBuf::new(), PathBuf::new());
    let mut notes = Notes { tmp, current_dir, writable: Vec::new(), variables: Vec::new() };
    let root = Dir::open(Path::new("/"))?;
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let path = |text: &str| words::decode_path(text).ok_or(io::ErrorKind::InvalidData);
        match kind {
            "tmp" => notes.tmp = path(rest)?,
            "cwd" => notes.current_dir = path(rest)?,
            "write" => notes.writable.push(path(rest)?),
            "env" => {
                let (name, value) = rest.split_once('\t').ok_or(io::ErrorKind::InvalidData)?;
                notes.variables.push((path(name)?.into(), path(value)?.into()));
            }
            _ => {
                let mut parts = rest.splitn(3, ' ');
                let mut number =
                    || parts.next().and_then(|part| part.parse().ok()).ok_or(io::ErrorKind::InvalidData);
                let id = Id { device: number()?, inode: number()? };
                let path = path(parts.next().unwrap_or_default())?;
                let place = mount::open_place(root.descriptor(), &path);
                if !place.is_ok_and(|place| Id::of(place.as_fd()).is_ok_and(|found| found == id)) {
                    return Err(io::Error::other(format!("`{}` has been replaced", path.display())));
                }
            }
        }
    }
    Ok(notes)
}
