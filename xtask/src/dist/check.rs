//! Installs every package from its file, each in a clean place, and runs `attache demo` from there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::archive::sha256_hex;
use super::{Packages, VERSION, output, wheel, write};

/// The last line of a demo that went well begins with it.
const GREEN: &str = "Green, after";

type Check = fn(&Packages, &ScratchDir) -> Result<String, String>;

/// Checks all packages. The error names those that failed.
pub(super) fn run(packages: &Packages, out: &Path) -> Result<(), String> {
    let checks: [(&str, Check); 7] = [
        ("checksums", checksums),
        ("archive", archive),
        ("debian", debian),
        ("npm", npm),
        ("pypi", pypi),
        ("container", container),
        ("registry", registry),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        let place = ScratchDir::new(out, name)?;
        match check(packages, &place) {
            Ok(done) => println!("✓ {name:<10} {done}"),
            Err(error) => {
                println!("✗ {name:<10} {error}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("these packages do not work: {}", failed.join(", "))) }
}

/// An empty directory with a home of its own, removed at the end.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn new(out: &Path, name: &str) -> Result<ScratchDir, String> {
        let path = out.join("check").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("home")).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(ScratchDir(path))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A command in this place, with nothing of the user's environment but the search path.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.0).env("HOME", self.path("home"));
        command.envs(
            ["PATH", "LANG", "TMPDIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command
    }

    /// Runs `attache --version` and `attache demo` with a command that ends in the program.
    fn demo(&self, command: impl Fn() -> Command) -> Result<(), String> {
        let version = output(command().arg("--version"))?;
        let version = String::from_utf8_lossy(&version);
        if version.trim() != format!("attache {VERSION}") {
            return Err(format!("unexpected version: {}", version.trim()));
        }
        let demo = output(command().arg("demo"))?;
        let demo = String::from_utf8_lossy(&demo);
        if demo.lines().any(|line| line.starts_with(GREEN)) {
            Ok(())
        } else {
            Err(format!("the demo did not end well:\n{demo}"))
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn checksums(packages: &Packages, _: &ScratchDir) -> Result<String, String> {
    let directory = packages.checksums.parent().unwrap_or(Path::new("."));
    let list = read(&packages.checksums)?;
    for line in list.lines() {
        let (sum, name) = line.split_once("  ").ok_or("a line without a name")?;
        let data = fs::read(directory.join(name)).map_err(|error| format!("{name}: {error}"))?;
        if sha256_hex(&data) != sum {
            return Err(format!("{name} has another checksum"));
        }
    }
    Ok(format!("{} files", list.lines().count()))
}

fn archive(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    output(place.command("tar").arg("-xzf").arg(&packages.archive))?;
    let directory = place.path(&format!("attache-{VERSION}-{}", packages.target.triple));
    for file in [
        "man/attache.1",
        "completions/_attache",
        "completions/attache.bash",
        "completions/attache.fish",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "LICENSES-OF-CRATES",
        "README.md",
        "CHANGELOG.md",
    ] {
        if read(&directory.join(file))?.is_empty() {
            return Err(format!("{file} is empty"));
        }
    }
    place.demo(|| place.command(directory.join("attache")))?;
    Ok("unpacked with tar, demo runs".to_owned())
}

/// Installs into an empty root with dpkg's own database, and removes again.
fn debian(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    let Some(deb) = &packages.deb else { return Ok("not for this system".to_owned()) };
    let root = place.path("root");
    for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"] {
        make(&root.join(directory))?;
    }
    write(&root.join("var/lib/dpkg/status"), b"")?;
    let dpkg = || {
        let mut command = place.command("dpkg");
        // The empty root has no libc6, and dpkg wants these programs in its path.
        command.args(["--force-depends", "--force-not-root", "--force-bad-path"]);
        command.arg(format!("--root={}", root.display()));
        command
    };
    output(dpkg().arg("--install").arg(deb))?;
    place.demo(|| place.command(root.join("usr/bin/attache")))?;
    let installed = output(dpkg().args(["--status", "attache"]))?;
    if !String::from_utf8_lossy(&installed).contains("Status: install ok installed") {
        return Err("dpkg does not say that it is installed".to_owned());
    }
    output(dpkg().args(["--purge", "attache"]))?;
    if root.join("usr/bin/attache").exists() || root.join("usr/share/doc/attache").exists() {
        return Err("dpkg left files behind".to_owned());
    }
    Ok("installed with dpkg, demo runs, removed".to_owned())
}

/// Installs launcher and program below an empty prefix. Nothing comes from the network.
fn npm(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    write(&place.path("package.json"), b"{ \"private\": true }\n")?;
    let quiet = ["--offline", "--no-audit", "--no-fund", "--no-update-notifier"];
    output(place.command("npm").arg("install").args(quiet).args(&packages.npm))?;
    place.demo(|| place.command(place.path("node_modules/.bin/attache")))?;
    place.demo(|| {
        let mut npx = place.command("npx");
        npx.args(["--offline", "--no-install", "attache"]);
        npx
    })?;
    // The launcher ends as the program ends.
    let wrong = place.command(place.path("node_modules/.bin/attache")).arg("--no-such-option").output();
    match wrong.map_err(|error| error.to_string())?.status.code() {
        Some(2) => Ok("installed with npm, demo runs directly and with npx".to_owned()),
        code => Err(format!("the launcher ended with {code:?}, not with 2 as the program does")),
    }
}

/// Installs into an empty environment. Only uv itself may come from the network.
fn pypi(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    output(place.command("python3").args(["-m", "venv", "venv"]))?;
    let bin = place.path("venv/bin");
    let pip = |arguments: &[&str]| {
        let mut pip = place.command(bin.join("python"));
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).args(arguments);
        pip
    };
    output(pip(&["--no-index", "--no-deps"]).arg(&packages.wheel))?;
    place.demo(|| place.command(bin.join("attache")))?;
    place.demo(|| place.command(bin.join(wheel::NAME)))?;
    let pip_check = place.command(bin.join("python")).args(["-m", "pip", "check"]).output();
    if !pip_check.map_err(|error| error.to_string())?.status.success() {
        return Err("pip check finds something wrong".to_owned());
    }
    // pip is configured by the user where the usual index is not reachable.
    let mut uv = pip(&["uv"]);
    uv.envs(std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PIP_")));
    if let Some(home) = std::env::var_os("HOME") {
        uv.env("HOME", home);
    }
    if let Err(error) = output(&mut uv) {
        let last = error.trim().lines().last().unwrap_or_default().to_owned();
        return Ok(format!(
            "installed with pip, demo runs; uvx not tried, because uv cannot be installed ({last})"
        ));
    }
    place.demo(|| {
        let mut uvx = place.command(bin.join("uvx"));
        uvx.args(["--offline", "--quiet", "--from"]).arg(&packages.wheel).arg(wheel::NAME);
        uvx
    })?;
    Ok("installed with pip, demo runs; demo runs with uvx".to_owned())
}

/// Builds the image where there is an engine for it. Its package is the one that `debian` installs.
fn container(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    let file = read(&packages.container)?;
    let directory = packages.container.parent().unwrap_or(Path::new("."));
    let arch = packages.target.debian();
    for line in file.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let name = line.split(' ').next().unwrap_or_default().replace("${TARGETARCH}", arch);
        if !directory.join(&name).is_file() {
            return Err(format!("it copies {name}, which is missing"));
        }
    }
    let engine = ["podman", "docker"].into_iter().find(|engine| {
        place.command(engine).arg("info").output().is_ok_and(|output| output.status.success())
    });
    let Some(engine) = engine else {
        return Ok("its files are there; no container engine, so not built".to_owned());
    };
    let tag = format!("attache-check-{}", std::process::id());
    let build = ["build", "--build-arg", &format!("TARGETARCH={arch}"), "-t", &tag, "-f"].map(str::to_owned);
    output(place.command(engine).args(build).arg(&packages.container).arg(directory))?;
    let demo = place.demo(|| {
        let mut run = place.command(engine);
        run.args(["run", "--rm", &tag]);
        run
    });
    let _ = place.command(engine).args(["rmi", &tag]).output();
    demo.map(|()| format!("built with {engine}, demo runs"))
}

/// Installs from a registry with our entry, whose archive is the file beside it, and starts the
/// agent.
fn registry(packages: &Packages, place: &ScratchDir) -> Result<String, String> {
    let mut entry: Value =
        serde_json::from_str(&read(&packages.registry)?).map_err(|error| error.to_string())?;
    let system = packages.target.registry();
    entry["distribution"]["binary"][&system]["archive"] = json!(packages.archive);
    // The own agent has this name already.
    entry["id"] = json!("attache-release");
    let index = json!({ "version": "1.0.0", "agents": [entry] });
    let index = write(&place.path("registry.json"), index.to_string().as_bytes())?;
    output(place.command("tar").arg("-xzf").arg(&packages.archive))?;
    let program = place.path(&format!("attache-{VERSION}-{}/attache", packages.target.triple));
    let attache = || place.command(&program);
    make(&place.path("home/.config/attache"))?;
    let settings = format!("[registry]\nurl = {index:?}\n");
    write(&place.path("home/.config/attache/config.toml"), settings.as_bytes())?;
    output(attache().args(["registry", "install", "attache-release"]))?;
    // It ends with 1, because there is no model; the steps say what works.
    let doctor = attache().args(["doctor", "attache-release", "--format", "json"]).output();
    let doctor = doctor.map_err(|error| error.to_string())?.stdout;
    let report: Value = serde_json::from_slice(&doctor).unwrap_or_default();
    for step in ["start", "initialize", "session", "end"] {
        let state = report["steps"].as_array().into_iter().flatten().find(|it| it["name"] == step);
        if state.is_none_or(|state| state["state"] != "ok") {
            return Err(format!("doctor: {step} is not ok:\n{}", String::from_utf8_lossy(&doctor)));
        }
    }
    Ok("installed with attache registry install; the agent starts".to_owned())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn make(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
