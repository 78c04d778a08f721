//! The system that a build is for, and its names in every kind of package.

use std::process::Command;

use super::output;

#[derive(Clone)]
pub(super) struct Target {
    pub(super) triple: String,
    /// Whether it was named on the command line.
    pub(super) chosen: bool,
    /// The newest version of glibc that the program asks for, as in `2.34`; `None` if it needs
    /// none.
    glibc: Option<(u32, u32)>,
}

impl Target {
    pub(super) fn find(triple: Option<&str>) -> Result<Target, String> {
        let host = || {
            let text = output(Command::new("rustc").arg("-vV"))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let host = text.lines().find_map(|line| line.strip_prefix("host: "));
            host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
        };
        let chosen = triple.is_some();
        let triple = triple.map_or_else(host, |triple| Ok(triple.to_owned()))?;
        let target = Target { triple, chosen, glibc: None };
        let known = ["x86_64", "aarch64"].contains(&target.cpu()) && (target.is_linux() || target.is_mac());
        if known { Ok(target) } else { Err(format!("{}: no packages for this system", target.triple)) }
    }

    /// Reads from the program which glibc it needs.
    pub(super) fn with_libc(self, program: &[u8]) -> Target {
        const PREFIX: &[u8] = b"\0GLIBC_";
        let versions = program.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
        let versions = versions.filter_map(|(at, _)| {
            let rest = &program[at + PREFIX.len()..];
            let text =
                std::str::from_utf8(&rest[..rest.iter().take(16).position(|byte| *byte == 0)?]).ok()?;
            let mut parts = text.split('.').map(str::parse);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        });
        Target { glibc: versions.max(), ..self }
    }

    fn cpu(&self) -> &str {
        self.triple.split('-').next().unwrap_or_default()
    }

    pub(super) fn is_linux(&self) -> bool {
        self.triple.contains("-linux-")
    }

    fn is_mac(&self) -> bool {
        self.triple.ends_with("-apple-darwin")
    }

    fn pick<'a>(&self, intel: &'a str, arm: &'a str) -> &'a str {
        if self.cpu() == "x86_64" { intel } else { arm }
    }

    /// The system in the ACP registry.
    pub(super) fn registry(&self) -> String {
        format!("{}-{}", if self.is_mac() { "darwin" } else { "linux" }, self.cpu())
    }

    /// System and processor in npm.
    pub(super) fn npm(&self) -> (&'static str, &'static str) {
        (if self.is_mac() { "darwin" } else { "linux" }, if self.cpu() == "x86_64" { "x64" } else { "arm64" })
    }

    /// The processor in Debian.
    pub(super) fn debian(&self) -> &str {
        self.pick("amd64", "arm64")
    }

    /// What the program needs, in Debian. A static program needs nothing.
    pub(super) fn debian_depends(&self) -> String {
        match self.glibc {
            Some((major, minor)) => format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n"),
            None => String::new(),
        }
    }

    /// Whether the program needs glibc.
    pub(super) fn needs_glibc(&self) -> bool {
        self.glibc.is_some()
    }

    /// The tag of a wheel. One that needs no glibc runs on every Linux.
    pub(super) fn wheel(&self) -> Vec<String> {
        let cpu = self.cpu();
        match self.glibc {
            _ if self.is_mac() => {
                vec![format!("macosx_{}", self.pick("10_12_x86_64", "11_0_arm64"))]
            }
            Some((major, minor)) => vec![format!("manylinux_{major}_{minor}_{cpu}")],
            None => vec![format!("manylinux_2_17_{cpu}"), format!("musllinux_1_1_{cpu}")],
        }
    }
}
