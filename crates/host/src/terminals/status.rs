//! Exit statuses as protocol values.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use attache::wire::v1::TerminalExitStatus;

// TERM-16
/// Converts an exit status to a code or the name of a signal.
pub(super) fn of(status: ExitStatus) -> TerminalExitStatus {
    let mut result = TerminalExitStatus::new();
    result.exit_code = status.code().and_then(|code| u32::try_from(code).ok());
    result.signal = status.signal().map(signal_name);
    result
}

/// The name of a signal, such as `SIGTERM`.
pub(super) fn signal_name(number: i32) -> String {
    let name = match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGPROF => "SIGPROF",
        libc::SIGSYS => "SIGSYS",
        other => return format!("SIG{other}"),
    };
    name.to_owned()
}
