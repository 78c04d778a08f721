//! Job objects: a set of processes on Windows that ends as one, at the latest when its last handle
//! is closed, which the system does even for a process that is killed.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::Child;
use std::ptr;

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NO_WINDOW, CREATE_SUSPENDED, OpenThread, ResumeThread, THREAD_SUSPEND_RESUME,
};

/// A process has to be started with these, so that it cannot start another one before it is in its
/// job.
pub(crate) const CREATION_FLAGS: u32 = CREATE_SUSPENDED | CREATE_NO_WINDOW;

/// The processes of one job. They are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Job(OwnedHandle);

impl Job {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: both pointers may be null: default security, which includes that no child
        // inherits it, and no name.
        let job = Self(unsafe { owned(CreateJobObjectW(ptr::null(), ptr::null())) }?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let size = size_of_val(&limits) as u32;
        let limits = (&raw const limits).cast::<c_void>();
        // SAFETY: the class takes just this structure, which lives through the call and is as long
        // as said.
        check(unsafe {
            SetInformationJobObject(job.handle(), JobObjectExtendedLimitInformation, limits, size)
        })?;
        Ok(job)
    }

    /// Takes in a process that was started with [`CREATION_FLAGS`], and lets it run.
    pub(crate) fn adopt(&self, child: &Child) -> io::Result<()> {
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(self.handle(), child.as_raw_handle()) })?;
        resume(child.id())
    }

    pub(crate) fn kill(&self) {
        // SAFETY: the handle is open. It fails only when there is nothing to kill.
        unsafe { TerminateJobObject(self.handle(), 1) };
    }

    /// Whether all its processes have ended.
    pub(crate) fn is_empty(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = size_of_val(&counts) as u32;
        let info = (&raw mut counts).cast::<c_void>();
        let class = JobObjectBasicAccountingInformation;
        // SAFETY: the class fills just this structure, which lives through the call and is as long
        // as said.
        let ok = unsafe { QueryInformationJobObject(self.handle(), class, info, size, ptr::null_mut()) };
        ok == 0 || counts.ActiveProcesses == 0
    }

    fn handle(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

/// Lets the threads of a suspended process run; it has just one. The standard library keeps no
/// handle to it, so it has to be looked for.
fn resume(process: u32) -> io::Result<()> {
    // SAFETY: takes plain numbers.
    let list = unsafe { owned(CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0)) }?;
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
    // SAFETY: the handle is open, and the entry says how long it is.
    let mut more = unsafe { Thread32First(list.as_raw_handle(), &mut entry) } != 0;
    while more {
        if entry.th32OwnerProcessID == process {
            // SAFETY: takes plain numbers. The process is suspended, so its thread is there and
            // keeps its number.
            let thread = unsafe { owned(OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID)) }?;
            // SAFETY: the handle is open, and has the right that this needs.
            if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
                return Err(io::Error::last_os_error());
            }
            return Ok(());
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(list.as_raw_handle(), &mut entry) } != 0;
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the started process has no thread"))
}

/// # Safety
/// `handle` is new and ours, or one of the two values that stand for failure.
unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
