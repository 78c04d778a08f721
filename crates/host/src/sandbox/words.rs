//! A confinement as the arguments of a command line, and back.
//!
//! Paths are percent-encoded, because a command line may have to travel as JSON text.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Backend, Confinement, Environment, Launch, Limits, Network, View, WORD};

/// Separates the confinement from the command.
const END: &str = "--";

pub(super) fn command_line(
    backend: Backend,
    confinement: &Confinement,
    own_program: &Path,
    argv: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Vec<OsString> {
    let mut line = vec![own_program.as_os_str().to_owned(), WORD.into()];
    line.extend(encode(backend, confinement).into_iter().map(OsString::from));
    line.push(END.into());
    line.extend(argv.into_iter().map(|word| word.as_ref().to_owned()));
    line
}

pub(super) fn parse(argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Option<Launch> {
    let argv: Vec<OsString> = argv.into_iter().map(|word| word.as_ref().to_owned()).collect();
    let (program, rest) = argv.split_first()?;
    let (word, rest) = rest.split_first()?;
    if word != WORD {
        return None;
    }
    let (backend, confinement, command) = decode(rest)?;
    let launch = Launch { program: program.into(), backend, confinement, command: command.to_vec() };
    (!launch.command.is_empty()).then_some(launch)
}

fn encode(backend: Backend, confinement: &Confinement) -> Vec<String> {
    let mut words = vec![format!("--backend={}", backend.name())];
    let (view, option, paths) = match &confinement.view {
        View::Everything { hidden } => ("everything", "--hide", hidden),
        View::Only(roots) => ("only", "--read", roots),
    };
    words.push(format!("--view={view}"));
    let lists = [
        (option, paths),
        ("--write", &confinement.write),
        ("--read-only", &confinement.read_only),
        ("--deny-exec", &confinement.deny_exec),
    ];
    for (option, paths) in lists {
        words.extend(paths.iter().map(|path| format!("{option}={}", encode_path(path))));
    }
    words.push(match &confinement.network {
        Network::Off => "--network=off".to_owned(),
        Network::Open => "--network=open".to_owned(),
        Network::Proxy(socket) => format!("--network=proxy:{}", encode_path(socket)),
    });
    words.push(match confinement.environment {
        Environment::Keep => "--environment=keep".to_owned(),
        Environment::Minimal => "--environment=minimal".to_owned(),
    });
    let Limits { cpu_seconds, file_bytes, tmp_bytes } = confinement.limits;
    let limits = [("--cpu-seconds", cpu_seconds), ("--file-bytes", file_bytes), ("--tmp-bytes", tmp_bytes)];
    words.extend(limits.iter().filter_map(|(option, limit)| limit.map(|limit| format!("{option}={limit}"))));
    words
}

/// Reads the words after [`WORD`]. Only the one spelling that [`encode`] writes is accepted.
pub(super) fn decode(words: &[OsString]) -> Option<(Backend, Confinement, &[OsString])> {
    let end = words.iter().position(|word| word == END)?;
    let (words, command) = (&words[..end], &words[end + 1..]);
    let mut backend = None;
    let mut confinement = Confinement::writable(std::iter::empty::<PathBuf>());
    for word in words {
        let (option, value) = word.to_str()?.split_once('=')?;
        match option {
            "--backend" => backend = Some(Backend::from_name(value)?),
            "--view" => {
                confinement.view = match value {
                    "everything" => View::Everything { hidden: Vec::new() },
                    "only" => View::Only(Vec::new()),
                    _ => return None,
                }
            }
            "--hide" | "--read" => match &mut confinement.view {
                View::Everything { hidden: paths } | View::Only(paths) => paths.push(decode_path(value)?),
            },
            "--write" => confinement.write.push(decode_path(value)?),
            "--read-only" => confinement.read_only.push(decode_path(value)?),
            "--deny-exec" => confinement.deny_exec.push(decode_path(value)?),
            "--network" => {
                confinement.network = match (value, value.strip_prefix("proxy:")) {
                    ("off", _) => Network::Off,
                    ("open", _) => Network::Open,
                    (_, Some(socket)) => Network::Proxy(decode_path(socket)?),
                    _ => return None,
                }
            }
            "--environment" => {
                confinement.environment = match value {
                    "keep" => Environment::Keep,
                    "minimal" => Environment::Minimal,
                    _ => return None,
                }
            }
            "--cpu-seconds" => confinement.limits.cpu_seconds = Some(value.parse().ok()?),
            "--file-bytes" => confinement.limits.file_bytes = Some(value.parse().ok()?),
            "--tmp-bytes" => confinement.limits.tmp_bytes = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    let backend = backend?;
    // One confinement has one spelling, so nothing can hide in a repeated or reordered option.
    let same = encode(backend, &confinement).iter().eq(words.iter().filter_map(|word| word.to_str()));
    same.then_some((backend, confinement, command))
}

/// Writes a path as printable ASCII.
pub(super) fn encode_path(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if (byte == b' ' || byte.is_ascii_graphic()) && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02x}"));
        }
    }
    text
}

/// Reads what [`encode_path`] wrote.
pub(super) fn decode_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    os_string(bytes).map(PathBuf::from)
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn full() -> Confinement {
        Confinement {
            view: View::Only(vec!["/a b".into(), "/c:d\n%25".into()]),
            write: vec!["/w=1".into(), "--".into()],
            read_only: vec!["/w/.git/hooks/".into()],
            network: Network::Proxy("/run/ü/s".into()),
            environment: Environment::Minimal,
            limits: Limits { cpu_seconds: Some(1), file_bytes: Some(2), tmp_bytes: Some(u64::MAX) },
            deny_exec: vec!["/usr/bin/rm".into()],
        }
    }

    #[test]
    fn a_command_line_is_read_back() {
        let plain = Confinement::writable(["/p"]);
        let hidden = Confinement { view: View::Everything { hidden: vec!["/home".into()] }, ..plain.clone() };
        for confinement in [full(), plain, hidden, Confinement::read_only(["/p"])] {
            let command = ["sh", "-c", "--write=/x", "--", "ü"];
            let line = confinement.command(Backend::Landlock, Path::new("/bin/attache"), command);
            let launch = Confinement::parse(&line).unwrap();
            assert_eq!(launch.program, Path::new("/bin/attache"));
            assert_eq!(launch.backend, Backend::Landlock);
            assert_eq!(launch.confinement, confinement);
            assert_eq!(launch.command, command.map(OsString::from));
            let end = line.iter().position(|word| word == "--").unwrap();
            for word in &line[..end] {
                let text = word.to_str().unwrap();
                assert!(text.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{text}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_of_any_bytes_survive() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = PathBuf::from(OsString::from_vec((1..=255).collect()));
        assert_eq!(decode_path(&encode_path(&path)).unwrap(), path);
    }

    #[test]
    fn other_command_lines_are_not_recognised() {
        let line = full().command(Backend::Landlock, Path::new("/bin/attache"), ["true"]);
        let line: Vec<&str> = line.iter().map(|word| word.to_str().unwrap()).collect();
        let at = |option: &str| line.iter().position(|word| word.starts_with(option)).unwrap();
        let changed = |change: &dyn Fn(&mut Vec<String>)| {
            let mut words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            change(&mut words);
            Confinement::parse(words)
        };
        assert!(changed(&|_| ()).is_some());
        assert_eq!(changed(&|words| words.truncate(words.len() - 1)), None, "no command");
        assert_eq!(changed(&|words| words.truncate(words.len() - 2)), None, "no end");
        assert_eq!(changed(&|words| words[1] = "sandbox".into()), None);
        assert_eq!(changed(&|words| words.swap(at("--view"), at("--network"))), None, "another order");
        assert_eq!(changed(&|words| words.insert(2, "--network=open".into())), None, "said twice");
        assert_eq!(changed(&|words| words.insert(2, "--inside=3,4".into())), None);
        assert_eq!(changed(&|words| words[2] = "--backend=none".into()), None);
        assert_eq!(changed(&|words| words[at("--cpu")] = "--cpu-seconds=+1".into()), None);
        assert_eq!(changed(&|words| words[at("--write")] = "--write=%2F".into()), None, "another spelling");
        assert_eq!(changed(&|words| words[at("--write")] = "--write=/%é".into()), None);
        assert_eq!(changed(&|words| words[at("--write")] = "--write".into()), None);
    }
}
