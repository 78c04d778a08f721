//! Where neovim and CodeCompanion come from.
//!
//! A neovim on the path is used if it is new enough. Else it is Debian's, of a suite that is newer
//! than most machines: its packages, and everything they need down to the C library, are unpacked
//! into the cache, and it is started with that library's own loader. Nothing of the system is
//! changed. Plenary, which CodeCompanion stands on, comes with it. CodeCompanion is in no registry:
//! a checkout is named, or made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::super::install::{ok, once};

const SUITE: &str = "forky";
const PACKAGES: [&str; 2] = ["neovim", "neovim-plenary"];
/// What the settings in our guide were written for.
const CODECOMPANION: &str = "v19.22.0";
const SOURCE: &str = "https://github.com/olimorris/codecompanion.nvim";
/// Names a checkout of CodeCompanion.
const VARIABLE: &str = "ATTACHE_CODECOMPANION";
/// The oldest minor version of neovim 0 that CodeCompanion runs on.
const OLDEST: u32 = 11;

/// A neovim that can be started, with what it loads.
pub(super) struct Editor {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// Directories for its runtime path.
    pub(super) plugins: Vec<PathBuf>,
}

impl Editor {
    /// The error says why there is none.
    pub(super) fn find(cache: &Path) -> Result<Editor, String> {
        let plugin = codecompanion(cache)?;
        let unpacked = debian(cache);
        let mut editor = match (minor_version(&["nvim".to_owned()], &[]), &unpacked) {
            (Some(minor), Ok(root)) if minor >= OLDEST => {
                Editor { command: vec!["nvim".to_owned()], env: Vec::new(), plugins: vec![plenary(root)] }
            }
            (_, Ok(root)) => from(root)?,
            (_, Err(why)) => return Err(why.clone()),
        };
        editor.plugins.push(plugin);
        match minor_version(&editor.command, &editor.env) {
            Some(minor) if minor >= OLDEST => Ok(editor),
            Some(minor) => Err(format!("CodeCompanion needs neovim 0.{OLDEST}, and this is 0.{minor}")),
            None => Err(format!("{:?} does not start", editor.command)),
        }
    }
}

/// Unpacks Debian's packages and returns the directory that is their root.
fn debian(cache: &Path) -> Result<PathBuf, String> {
    let dir = cache.join("neovim");
    let what = format!("{SUITE} {PACKAGES:?}");
    once(&dir, &what, || {
        let mirror = mirror()?;
        println!("install neovim: Debian's packages of {SUITE}, into the cache");
        let conf = settings(&dir, &mirror)?;
        let apt = |args: &[&str]| ok(Command::new("apt-get").args(args).env("APT_CONFIG", &conf));
        apt(&["update", "-qq"])?;
        apt(&[&["install", "-qq", "--yes", "--download-only", "--no-install-recommends"], &PACKAGES[..]]
            .concat())?;
        let entries = fs::read_dir(dir.join("cache/archives")).map_err(|error| error.to_string())?;
        for package in entries.flatten().map(|entry| entry.path()) {
            if package.extension().is_some_and(|extension| extension == "deb") {
                ok(Command::new("dpkg-deb").arg("-x").arg(package).arg(dir.join("root")))?;
            }
        }
        Ok(())
    })
    .map_err(|why| format!("no neovim 0.{OLDEST} on PATH, and none from Debian's packages: {why}"))?;
    Ok(dir.join("root"))
}

/// Where this machine gets Debian's packages from.
fn mirror() -> Result<String, String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let output = apt.stderr(Stdio::null()).output().map_err(|error| format!("apt-get: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find(|uri| uri.trim_end_matches('/').ends_with("/debian"));
    found.map(str::to_owned).ok_or("this machine's packages do not come from Debian".to_owned())
}

/// An apt that knows one suite and no installed package, so that it fetches everything, and that
/// keeps it all in `dir`.
fn settings(dir: &Path, mirror: &str) -> Result<PathBuf, String> {
    let at = |name: &str| dir.join(name).display().to_string();
    let make = || {
        for sub in ["lists/partial", "cache/archives/partial", "root"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        fs::write(dir.join("status"), "")?;
        fs::write(dir.join("sources.list"), format!("deb {mirror} {SUITE} main\n"))?;
        let options = [
            ("Dir::Etc::sourcelist", at("sources.list")),
            ("Dir::Etc::sourceparts", "-".to_owned()),
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("Acquire::Languages", "none".to_owned()),
            // apt's own user may not be able to read this user's cache.
            ("APT::Sandbox::User", "root".to_owned()),
        ];
        let text: String = options.iter().map(|(name, value)| format!("{name} \"{value}\";\n")).collect();
        fs::write(dir.join("apt.conf"), text)
    };
    make().map_err(|error: std::io::Error| format!("{}: {error}", dir.display()))?;
    Ok(dir.join("apt.conf"))
}

/// The neovim that was unpacked there.
fn from(root: &Path) -> Result<Editor, String> {
    let library = below(&root.join("usr/lib"), &|path| path.join("libc.so.6").exists())?;
    let loader = below(&library, &|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"))
    })?;
    let text = |path: &Path| path.display().to_string();
    let command =
        vec![text(&loader), "--library-path".to_owned(), text(&library), text(&root.join("usr/bin/nvim"))];
    let env = vec![("VIMRUNTIME".to_owned(), text(&root.join("usr/share/nvim/runtime")))];
    // The parsers are not where it looks for them from there.
    Ok(Editor { command, env, plugins: vec![root.join("usr/lib/nvim"), plenary(root)] })
}

fn plenary(root: &Path) -> PathBuf {
    root.join("usr/share/neovim-plenary")
}

fn below(dir: &Path, is_it: &dyn Fn(&Path) -> bool) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| is_it(path)).ok_or_else(|| format!("{}: not what was expected there", dir.display()))
}

fn codecompanion(cache: &Path) -> Result<PathBuf, String> {
    let is_it = |dir: &Path| dir.join("lua/codecompanion/acp/init.lua").exists();
    if let Some(dir) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        let dir = dir.canonicalize().unwrap_or(dir);
        return if is_it(&dir) { Ok(dir) } else { Err(format!("{VARIABLE} names no CodeCompanion")) };
    }
    let dir = cache.join("codecompanion");
    once(&dir, CODECOMPANION, || {
        println!("install CodeCompanion {CODECOMPANION}");
        let _ = fs::remove_dir_all(&dir);
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--depth", "1", "--branch", CODECOMPANION, SOURCE]).arg(&dir);
        ok(git.env("GIT_TERMINAL_PROMPT", "0"))
    })
    .map_err(|_| format!("{SOURCE} cannot be reached; name a checkout of {CODECOMPANION} in {VARIABLE}"))?;
    Ok(dir)
}

/// N of the neovim 0.N that this starts, `None` if it does not; far beyond what is needed for later
/// ones.
fn minor_version(command: &[String], env: &[(String, String)]) -> Option<u32> {
    let [program, args @ ..] = command else { return None };
    let mut nvim = Command::new(program);
    nvim.args(args).arg("--version").envs(env.iter().cloned()).stdin(Stdio::null());
    let output = nvim.output().ok()?;
    version(&String::from_utf8_lossy(&output.stdout))
}

fn version(text: &str) -> Option<u32> {
    let (_, version) = text.lines().next()?.split_once("NVIM v")?;
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next()?.ok()?, numbers.next()?.ok()?) {
        (0, minor) => Some(minor),
        _ => Some(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("NVIM v0.12.4\nBuild type: Release\n"), Some(12));
        assert_eq!(version("NVIM v0.13.0-dev-12\n"), Some(13));
        assert_eq!(version("NVIM v1.0.0\n"), Some(u32::MAX));
        assert_eq!(version("VIM - Vi IMproved 9.0\n"), None);
        assert_eq!(version(""), None);
    }
}
