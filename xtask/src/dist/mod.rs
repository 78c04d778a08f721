//! `cargo xtask dist`: the program as people install it.
//!
//! One build becomes an archive, a Debian package, an npm package, a wheel, a container and an
//! entry of the ACP registry, with checksums. The same binary gives the same bytes. `--check`
//! installs each file in a clean place and runs `attache demo` from there.

mod archive;
mod check;
mod deb;
mod licences;
mod npm;
mod registry;
mod target;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::archive::{Entry, sha256_hex, tar_gz};
use self::target::Target;
use crate::repo;

const HELP: &str = "usage: cargo xtask dist [OPTIONS]
  --check          install every package in a clean place and run `attache demo` from it
  --target TRIPLE  the system to build for (this one)
  --profile NAME   the profile of the build (dist); only dist is held to the size limit
  --program FILE   pack this program in place of building one
  --url ADDRESS    where the files will be downloaded from (the releases of the repository)
  --out DIR        where the files go (target/packages)";

/// The size that the program may have.
const LIMIT: usize = 25_000_000;

const REPOSITORY: &str = "https://github.com/attache-acp/attache";
const SUMMARY: &str =
    "Drive any ACP agent from a terminal: chat, scripts, a coding agent, a conformance checker";
const LICENCE: &str = "MIT OR Apache-2.0";
const AUTHORS: &str = "The Attaché authors";
const VERSION: &str = env!("CARGO_PKG_VERSION");

struct Options {
    check: bool,
    target: Target,
    profile: String,
    program: Option<PathBuf>,
    url: String,
    out: PathBuf,
}

/// Everything that packages are made of.
struct Contents {
    target: Target,
    program: Vec<u8>,
    man: Vec<u8>,
    /// The shell and its completions.
    completions: Vec<(&'static str, Vec<u8>)>,
    readme: String,
    changelog: String,
    /// The file name and the text of each licence, those of the crates in the program included.
    licences: Vec<(&'static str, String)>,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let Some(options) = read(args)? else {
        println!("{HELP}");
        return Ok(());
    };
    let program = options.program.clone().map_or_else(|| build(&options), Ok)?;
    let contents = Contents::gather(options.target.clone(), &program)?;
    let size = contents.program.len();
    println!("program {:.1} MB ({})", mega(size), options.target.triple);
    let packages = Packages::write(&contents, &options)?;
    if options.check {
        check::run(&packages, &options.out)?;
    }
    if options.program.is_none() && options.profile == "dist" && size > LIMIT {
        let message = format!("the program has {:.1} MB, the goal is {:.0} MB", mega(size), mega(LIMIT));
        if options.check {
            return Err(message);
        }
        println!("note: {message}");
    }
    Ok(())
}

fn read(args: &[String]) -> Result<Option<Options>, String> {
    let mut args = args.iter().map(String::as_str);
    let (mut check, mut triple, mut profile, mut program, mut out) = (false, None, "dist", None, None);
    let mut url = format!("{REPOSITORY}/releases/download/v{VERSION}");
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{HELP}"));
        match arg {
            "--help" | "-h" => return Ok(None),
            "--check" => check = true,
            "--target" => triple = Some(value()?),
            "--profile" => profile = value()?,
            "--program" => program = Some(PathBuf::from(value()?)),
            "--url" => url = value()?.trim_end_matches('/').to_owned(),
            "--out" => out = Some(PathBuf::from(value()?)),
            other => return Err(format!("unknown option {other}\n{HELP}")),
        }
    }
    let target = Target::find(triple)?;
    let out = out.unwrap_or_else(|| repo::root().join("target/packages"));
    Ok(Some(Options { check, target, profile: profile.to_owned(), program, url, out }))
}

/// Builds the program and returns its path.
fn build(options: &Options) -> Result<PathBuf, String> {
    let root = repo::root();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--package", "attache-cli", "--bin", "attache", "--profile"]);
    cargo.arg(&options.profile).current_dir(&root);
    // Paths of this machine do not belong into the program; they would also make two builds differ.
    let mut flags = vec![format!("--remap-path-prefix={}=attache", root.display())];
    for (variable, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(default));
        if let Some(path) = std::env::var_os(variable).map(PathBuf::from).or(home) {
            flags.push(format!("--remap-path-prefix={}={}", path.display(), &default[1..]));
        }
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("RUSTFLAGS");
    // A directory of its own: other flags would make the programs of the usual one be built again.
    let target = root.join("target/dist-build");
    cargo.env("CARGO_TARGET_DIR", &target);
    let mut built = target;
    if options.target.chosen {
        cargo.args(["--target", &options.target.triple]);
        built.push(&options.target.triple);
    }
    succeed(&mut cargo)?;
    let directory = if options.profile == "dev" { "debug" } else { &options.profile };
    Ok(built.join(directory).join("attache"))
}

impl Contents {
    fn gather(target: Target, program: &Path) -> Result<Contents, String> {
        let print = |words: &[&str]| output(Command::new(program).args(words));
        let licence = |name: &'static str| Ok::<_, String>((name, repo::read(name)?));
        let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(Contents {
            man: print(&["man"])?,
            completions: ["bash", "zsh", "fish"]
                .into_iter()
                .map(|shell| Ok((shell, print(&["completions", shell])?)))
                .collect::<Result<_, String>>()?,
            readme: repo::read("crates/cli/README.md")?,
            changelog: repo::read("CHANGELOG.md")?,
            licences: vec![
                licence("LICENSE-MIT")?,
                licence("LICENSE-APACHE")?,
                ("LICENSES-OF-CRATES", licences::of_crates(&target)?),
            ],
            target: target.with_libc(&bytes),
            program: bytes,
        })
    }

    /// The licences as files below `directory`.
    fn licence_entries<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = Entry> + 'a {
        self.licences.iter().map(move |(name, text)| Entry::text(format!("{directory}{name}"), text.as_str()))
    }
}

/// The files of a release.
struct Packages {
    target: Target,
    archive: PathBuf,
    deb: Option<PathBuf>,
    npm: [PathBuf; 2],
    wheel: PathBuf,
    container: PathBuf,
    registry: PathBuf,
    checksums: PathBuf,
}

impl Packages {
    fn write(contents: &Contents, options: &Options) -> Result<Packages, String> {
        let out = &options.out;
        let _ = fs::remove_dir_all(out);
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        let mut sums = String::new();
        let mut put = |name: String, data: Vec<u8>| {
            println!("  {name:<60} {:>5.1} MB", mega(data.len()));
            sums += &format!("{}  {name}\n", sha256_hex(&data));
            write(&out.join(&name), &data)
        };
        let (name, archive) = archive(contents)?;
        let entry = registry::entry(&contents.target, &options.url, &name, &sha256_hex(&archive));
        let archive = put(name, archive)?;
        let deb = match deb::package(contents)? {
            Some((name, data)) => Some(put(name, data)?),
            None => None,
        };
        let [launcher, platform] = npm::packages(contents)?;
        let npm = [put(launcher.0, launcher.1)?, put(platform.0, platform.1)?];
        let (name, data) = wheel::package(contents)?;
        let wheel = put(name, data)?;
        let container = repo::read("xtask/src/dist/Containerfile")?.replace("VERSION", VERSION);
        let container = put("Containerfile".to_owned(), container.into_bytes())?;
        let registry = put("agent.json".to_owned(), entry.into_bytes())?;
        put("icon.svg".to_owned(), registry::ICON.as_bytes().to_vec())?;
        let checksums = write(&out.join("SHA256SUMS"), sums.as_bytes())?;
        let target = contents.target.clone();
        Ok(Packages { target, archive, deb, npm, wheel, container, registry, checksums })
    }
}

/// The archive with everything in one directory.
fn archive(contents: &Contents) -> Result<(String, Vec<u8>), String> {
    let name = format!("attache-{VERSION}-{}", contents.target.triple);
    let file = |path: &str, data: &[u8]| Entry::text(format!("{name}/{path}"), data);
    let mut entries = vec![
        Entry::program(format!("{name}/attache"), &contents.program),
        file("README.md", contents.readme.as_bytes()),
        file("CHANGELOG.md", contents.changelog.as_bytes()),
        file("man/attache.1", &contents.man),
    ];
    for (shell, text) in &contents.completions {
        let path = match *shell {
            "zsh" => "completions/_attache".to_owned(),
            shell => format!("completions/attache.{shell}"),
        };
        entries.push(file(&path, text));
    }
    entries.extend(contents.licence_entries(&format!("{name}/")));
    Ok((format!("{name}.tar.gz"), tar_gz(&entries, false)?))
}

fn mega(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn write(path: &Path, data: &[u8]) -> Result<PathBuf, String> {
    fs::write(path, data).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_owned())
}

/// Runs a command, whose output is shown.
fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Runs a command and returns what it prints. Its errors are part of the message if it fails.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&text)))
}
