//! The environment variables of a confined command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Confinement, Environment, Network, View};
use crate::secrets::is_secret_name;

/// Variables that [`Environment::Minimal`] keeps as they are, besides `PATH` and `LC_*`.
const KEPT: &[&str] = &["LANG", "TERM", "TZ", "COLUMNS", "LINES", "USER"];

/// Fallback search path if no entry of the caller's is usable.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that keep git quiet, local and from running programs.
const GIT_VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ALLOW_PROTOCOL", ""),
];

/// Settings of git that take precedence over those of a repository.
///
/// The attributes come from the empty tree, so that filters, text conversions and merge drivers
/// have no files to work on. What remains is `diff.external`, which cannot be unset from outside,
/// and filters by the attributes in `.git/info`, in repositories with SHA-256 names, and with git
/// before 2.43. Such programs run in the same sandbox as git itself.
const GIT_SETTINGS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    // Owners look foreign in a user namespace, and the sandbox is the guard here.
    ("safe.directory", "*"),
    ("attr.tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
    ("core.attributesFile", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", "false"),
    ("core.askPass", "false"),
    ("core.editor", "false"),
    ("core.pager", "cat"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
];

const PROXY_VARIABLES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Computes the environment of the command from the one of this process.
///
/// `tmp` is the private temporary directory. `proxy` is the port of the bridge; it is known only
/// inside.
pub(super) fn variables(
    confinement: &Confinement,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    tmp: &Path,
    proxy: Option<u16>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = match confinement.environment {
        Environment::Keep => inherited.into_iter().filter(|(name, _)| !is_credential(name)).collect(),
        Environment::Minimal => minimal(confinement, inherited),
    };
    set(&mut variables, "TMPDIR", tmp);
    if confinement.environment == Environment::Minimal {
        set(&mut variables, "HOME", tmp);
    }
    if let Some(port) = proxy {
        for name in PROXY_VARIABLES {
            let value = match *name {
                "NO_PROXY" => String::new(),
                "ALL_PROXY" => format!("socks5h://127.0.0.1:{port}"),
                _ => format!("http://127.0.0.1:{port}"),
            };
            set(&mut variables, name, &value);
            set(&mut variables, &name.to_ascii_lowercase(), &value);
        }
    } else if matches!(confinement.network, Network::Off | Network::Proxy(_)) {
        // A proxy of the caller cannot be reached, and its address may hold a password.
        variables.retain(|(name, _)| !is_proxy(name));
    }
    variables
}

fn minimal(
    confinement: &Confinement,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut variables = Vec::new();
    let mut path = OsString::new();
    for (name, value) in inherited {
        match name.to_str() {
            Some("PATH") => path = search_path(&value, confinement),
            Some(text) if KEPT.contains(&text) || text.starts_with("LC_") => variables.push((name, value)),
            _ => {}
        }
    }
    if path.is_empty() {
        path = DEFAULT_PATH.into();
    }
    set(&mut variables, "PATH", path);
    set(&mut variables, "PAGER", "cat");
    for (name, value) in GIT_VARIABLES {
        set(&mut variables, name, value);
    }
    set(&mut variables, "GIT_CONFIG_COUNT", GIT_SETTINGS.len().to_string());
    for (index, (key, value)) in GIT_SETTINGS.iter().enumerate() {
        set(&mut variables, &format!("GIT_CONFIG_KEY_{index}"), key);
        set(&mut variables, &format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    variables
}

/// The absolute entries of a search path that are not inside the project, where a repository could
/// place programs.
fn search_path(path: &OsStr, confinement: &Confinement) -> OsString {
    let roots = match &confinement.view {
        View::Only(roots) => roots.as_slice(),
        View::Everything { .. } => &[],
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let project: Vec<PathBuf> = roots.iter().chain(&confinement.write).map(|root| real(root)).collect();
    let is_outside = |entry: &PathBuf| {
        let real = real(entry);
        entry.is_absolute()
            && !project
                .iter()
                .chain(roots)
                .chain(&confinement.write)
                .any(|root| real.starts_with(root) || entry.starts_with(root))
    };
    std::env::join_paths(std::env::split_paths(path).filter(is_outside)).unwrap_or_default()
}

/// Whether a variable holds a credential, by its name. Variables of this program may name stored
/// credentials and weaken what it does when a command starts it again.
fn is_credential(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("ATTACHE_") || is_secret_name(&name)
}

fn is_proxy(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PROXY_VARIABLES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy)))
}

fn set(variables: &mut Vec<(OsString, OsString)>, name: &str, value: impl AsRef<OsStr>) {
    variables.retain(|(old, _)| old != name);
    variables.push((name.into(), value.as_ref().to_owned()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(
        confinement: &Confinement,
        inherited: &[(&str, &str)],
        proxy: Option<u16>,
    ) -> Vec<(String, String)> {
        let inherited = inherited.iter().map(|(name, value)| (name.into(), value.into()));
        variables(confinement, inherited, Path::new("/tmp"), proxy)
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn value<'a>(variables: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let mut found = variables.iter().filter(|(other, _)| other == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert_eq!(found.next(), None, "{name} is set twice");
        value
    }

    const CALLER: &[(&str, &str)] = &[
        ("PATH", "bin::/usr/bin:/p/node_modules/.bin:/p:/opt/x/bin:."),
        ("HOME", "/home/u"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C"),
        ("OPENAI_API_KEY", "k"),
        ("GITHUB_TOKEN", "t"),
        ("ATTACHE_HOME", "/h"),
        ("LD_PRELOAD", "/p/x.so"),
        ("BASH_ENV", "/p/x"),
        ("GIT_DIR", "/p/evil"),
        ("https_proxy", "http://user:pass@proxy:1"),
        ("TMPDIR", "/elsewhere"),
        ("CARGO_HOME", "/home/u/.cargo"),
    ];

    #[test]
    fn keep_drops_credentials_only() {
        let kept = of(&Confinement::writable(["/p"]), CALLER, None);
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "ATTACHE_HOME", "https_proxy"] {
            assert_eq!(value(&kept, name), None, "{name}");
        }
        assert_eq!(value(&kept, "LD_PRELOAD"), Some("/p/x.so"));
        assert_eq!(value(&kept, "HOME"), Some("/home/u"));
        assert_eq!(value(&kept, "CARGO_HOME"), Some("/home/u/.cargo"));
        assert_eq!(value(&kept, "TMPDIR"), Some("/tmp"));
    }

    #[test]
    fn an_open_network_keeps_the_callers_proxy() {
        let open = Confinement { network: Network::Open, ..Confinement::writable(["/p"]) };
        assert!(value(&of(&open, CALLER, None), "https_proxy").is_some());
    }

    #[test]
    fn minimal_keeps_a_list() {
        let kept = of(&Confinement::read_only(["/p"]), CALLER, None);
        assert_eq!(value(&kept, "PATH"), Some("/usr/bin:/opt/x/bin"));
        assert_eq!(value(&kept, "HOME"), Some("/tmp"));
        assert_eq!(value(&kept, "LANG"), Some("C.UTF-8"));
        assert_eq!(value(&kept, "LC_ALL"), Some("C"));
        let git = kept.iter().filter(|(name, _)| name.starts_with("GIT_")).count();
        let known = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PAGER"];
        assert!(known.iter().all(|name| value(&kept, name).is_some()));
        assert_eq!(kept.len(), known.len() + git, "{kept:?}");
        assert_eq!(value(&kept, "GIT_CONFIG_COUNT"), Some(GIT_SETTINGS.len().to_string().as_str()));
    }

    #[test]
    fn nothing_left_of_the_search_path_gives_the_usual_one() {
        let kept = of(&Confinement::read_only(["/"]), CALLER, None);
        assert_eq!(value(&kept, "PATH"), Some(DEFAULT_PATH));
    }

    #[test]
    fn the_bridge_is_set_in_both_spellings() {
        let proxied = Confinement { network: Network::Proxy("/s".into()), ..Confinement::writable(["/p"]) };
        let kept = of(&proxied, CALLER, Some(81));
        for (name, expected) in [
            ("HTTP_PROXY", "http://127.0.0.1:81"),
            ("HTTPS_PROXY", "http://127.0.0.1:81"),
            ("ALL_PROXY", "socks5h://127.0.0.1:81"),
            ("NO_PROXY", ""),
        ] {
            assert_eq!(value(&kept, name), Some(expected));
            assert_eq!(value(&kept, &name.to_lowercase()), Some(expected));
        }
    }
}
