//! Figures of a process, from /proc.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The process of a hub. It ends with this value.
pub(crate) struct HubProcess {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
}

impl HubProcess {
    pub(crate) fn start(directory: &Path) -> io::Result<HubProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("hub").arg(directory).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url)?;
        }
        let address = url.trim().trim_start_matches("http://").split('/').next().unwrap_or_default();
        Ok(HubProcess { child, address: address.to_owned() })
    }

    /// Memory in kilobytes: `VmRSS` for now, `VmHWM` for the most so far.
    pub(crate) fn memory(&self, figure: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
        let number = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
        number.unwrap_or(f64::NAN)
    }

    /// Forgets the most memory so far.
    pub(crate) fn reset_peak(&self) -> io::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    /// The time that its threads have run.
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanos += text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
