//! Seccomp: which system calls a command may make. See seccomp(2).
//!
//! A filter is a small program for the kernel's packet filter machine. It looks at the
//! architecture, the number of the call and its arguments, never at memory, so it decides about
//! numbers only: a path or an address behind a pointer is out of its reach.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{c_int, c_long};

use super::checked;

/// Which sockets can be created. Connected pairs of Unix sockets can be in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None.
    None,
    /// TCP alone, for a network namespace that has nothing but a loopback interface.
    Tcp,
    /// Internet protocols, and the routing socket that name lookups use.
    Internet,
}

/// Treatment of changes to the owners, permissions and time stamps of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// The kernel decides; the mounts of the namespace are the guard.
    Allow,
    /// It is refused.
    Refuse,
    /// A supervisor decides, by the listener that [`install`] returns.
    Ask,
}

/// Rules of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) sockets: Sockets,
    pub(crate) metadata: Metadata,
    /// The command shares its IPC objects and processes with the rest of the system, so it may not
    /// use or change those.
    pub(crate) shared_system: bool,
}

/// The kernel's number of the architecture that this program was built for.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Calls of the x32 interface have this bit.
const X32: u32 = 0x4000_0000;

/// The newest call that this list has been compared with (`file_setattr`). Later ones are unknown,
/// hence refused.
const NEWEST: u32 = 469;
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

/// Calls that no command needs and that reach past its confinement, or enlarge what the kernel has
/// to defend.
const REFUSED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Calls that programs can do without: they fail as if the kernel did not have them. The flags of
/// `clone3` are in memory, where a filter cannot see them.
const MISSING: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Calls on sockets that make no sense for connected pairs.
const CONNECTIONS: &[c_long] =
    &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// IPC objects that all processes of a user share.
const SHARED_IPC: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// `PRIO_PROCESS`, whose type is another one in each C library.
const PRIO_PROCESS: u32 = 0;

/// Calls that change a process, and the first arguments by which that is the caller itself.
const ON_A_PROCESS: &[(c_long, &[u32])] = &[
    (libc::SYS_prlimit64, &[0]),
    (libc::SYS_sched_setaffinity, &[0]),
    (libc::SYS_sched_setscheduler, &[0]),
    (libc::SYS_sched_setparam, &[0]),
    (libc::SYS_sched_setattr, &[0]),
    (libc::SYS_setpriority, &[PRIO_PROCESS, 0]),
    (libc::SYS_ioprio_set, &[1, 0]),
];

/// Extended attributes of files. Landlock does not cover them. Programs do without them where a
/// file system has none.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Owners, permissions and time stamps of files. Landlock does not cover them.
const METADATA: &[c_long] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Requests that put input into a terminal.
const TERMINAL_INPUT: &[u32] = &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// Requests that change the flags of a file that is open for reading: `FS_IOC_SETFLAGS` with two
/// sizes, `FS_IOC_SETVERSION` with two sizes, `FS_IOC_FSSETXATTR`, `FS_IOC_SET_ENCRYPTION_POLICY`,
/// `FS_IOC_ENABLE_VERITY`.
const FILE_FLAGS: &[u32] =
    &[0x4008_6602, 0x4004_6602, 0x4008_7602, 0x4004_7602, 0x401c_5820, 0x800c_6613, 0x4080_6685];

/// All kinds of namespaces. `CLONE_NEWTIME` has a meaning of its own in the flags of `clone`.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const NEW_TIME_NAMESPACE: u32 = 0x80;

/// The default, the question for the current one, and addresses without randomisation, which
/// debuggers and sanitizers ask for.
const PERSONALITIES: &[u32] = &[0, u32::MAX, 0x0004_0000];

/// Kinds of sockets, without the flags that are part of the same argument.
const SOCKET_KIND: u32 = 0xf;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const ASK: u32 = 0x7fc0_0000;

const fn refuse(error: c_int) -> u32 {
    0x0005_0000 | error as u32
}

/// One instruction, with the layout of the kernel.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Where the number of the call and the architecture are in what a filter looks at.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// Where the lower half of an argument is; both architectures store it first. The kernel ignores
/// the upper half of the arguments that are looked at here.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn plain(code: u16, value: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, value }
}

/// A condition on an argument: after the mask it is one of the values.
struct Condition<'a> {
    argument: u32,
    mask: u32,
    values: &'a [u32],
}

fn is<'a>(argument: u32, values: &'a [u32]) -> Condition<'a> {
    Condition { argument, mask: u32::MAX, values }
}

/// A filter in the making. Each part either returns a verdict or leaves the number of the call
/// loaded.
struct Program(Vec<Instruction>);

impl Program {
    fn returns(&mut self, verdict: u32) {
        self.0.push(plain(RETURN, verdict));
    }

    /// Returns a verdict if the comparison of what is loaded holds.
    fn returns_if(&mut self, comparison: u16, value: u32, verdict: u32) {
        self.0.push(Instruction { code: comparison, jump_true: 0, jump_false: 1, value });
        self.returns(verdict);
    }

    /// Decides about a call by `body`, all of whose ways end with a verdict.
    fn on(&mut self, call: c_long, body: Program) {
        let length = u8::try_from(body.0.len()).unwrap_or(u8::MAX);
        self.0.push(Instruction { code: JUMP_EQUAL, jump_true: 0, jump_false: length, value: call as u32 });
        self.0.extend(body.0);
    }

    fn verdict_on(&mut self, calls: &[c_long], verdict: u32) {
        for call in calls {
            self.returns_if(JUMP_EQUAL, *call as u32, verdict);
        }
    }

    /// Allows if all conditions of one of the alternatives hold, and returns the verdict otherwise.
    fn unless(verdict: u32, alternatives: &[&[Condition<'_>]]) -> Program {
        let mut program = Program(Vec::new());
        for conditions in alternatives {
            let mut code: Vec<Instruction> = Vec::new();
            // How far it is to the end of the alternative is known when all of it is there.
            let mut exits = Vec::new();
            for condition in *conditions {
                code.push(plain(LOAD, argument(condition.argument)));
                code.push(plain(AND, condition.mask));
                let count = condition.values.len();
                for (index, value) in condition.values.iter().enumerate() {
                    let jump_true = u8::try_from(count - index).unwrap_or(u8::MAX);
                    code.push(Instruction { code: JUMP_EQUAL, jump_true, jump_false: 0, value: *value });
                }
                exits.push(code.len());
                code.push(plain(JUMP, 0));
            }
            code.push(plain(RETURN, ALLOW));
            for exit in exits {
                code[exit].value = (code.len() - exit - 1) as u32;
            }
            program.0.extend(code);
        }
        program.returns(verdict);
        program
    }

    /// Returns the verdict if one of the bits of an argument is set, and allows otherwise.
    fn if_any_bit(index: u32, bits: u32, verdict: u32) -> Program {
        let mut program = Program(vec![plain(LOAD, argument(index))]);
        program.returns_if(JUMP_ANY_BIT, bits, verdict);
        program.returns(ALLOW);
        program
    }

    /// Returns the verdict if an argument is one of the values, and allows otherwise.
    fn if_one_of(index: u32, values: &[u32], verdict: u32) -> Program {
        let mut program = Program(vec![plain(LOAD, argument(index))]);
        for value in values {
            program.returns_if(JUMP_EQUAL, *value, verdict);
        }
        program.returns(ALLOW);
        program
    }
}

fn program(policy: Policy, architecture: u32) -> Vec<Instruction> {
    let denied = refuse(libc::EPERM);
    let no_socket = refuse(libc::EACCES);
    let missing = refuse(libc::ENOSYS);

    let mut program = Program(vec![plain(LOAD, ARCHITECTURE_AT)]);
    // Every call would have another number, so nothing could be said about any of them.
    program.0.push(Instruction { code: JUMP_EQUAL, jump_true: 1, jump_false: 0, value: architecture });
    program.returns(KILL);
    program.0.push(plain(LOAD, NUMBER));
    program.returns_if(JUMP_GREATER_OR_EQUAL, X32, missing);
    program.returns_if(JUMP_GREATER, NEWEST, missing);

    program.verdict_on(MISSING, missing);
    program.verdict_on(REFUSED, denied);
    program.on(libc::SYS_clone, Program::if_any_bit(0, NAMESPACES, denied));
    program.on(libc::SYS_unshare, Program::if_any_bit(0, NAMESPACES | NEW_TIME_NAMESPACE, denied));
    program.on(libc::SYS_personality, Program::unless(denied, &[&[is(0, PERSONALITIES)]]));
    let requests: Vec<u32> =
        TERMINAL_INPUT.iter().chain(FILE_FLAGS.iter().filter(|_| policy.shared_system)).copied().collect();
    program.on(libc::SYS_ioctl, Program::if_one_of(1, &requests, denied));

    // An unconnected datagram socket of a pair can be connected to any other, so only the other
    // kinds are pairs for good.
    let pair_kinds = [libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32];
    let pair = Condition { argument: 1, mask: SOCKET_KIND, values: &pair_kinds };
    let unix = [libc::AF_UNIX as u32];
    program.on(libc::SYS_socketpair, Program::unless(no_socket, &[&[is(0, &unix), pair]]));
    let internet = [libc::AF_INET as u32, libc::AF_INET6 as u32];
    match policy.sockets {
        Sockets::None => {
            program.verdict_on(&[libc::SYS_socket], no_socket);
            program.verdict_on(CONNECTIONS, no_socket);
        }
        Sockets::Tcp => {
            let stream = Condition { argument: 1, mask: SOCKET_KIND, values: &[libc::SOCK_STREAM as u32] };
            let tcp = is(2, &[0, libc::IPPROTO_TCP as u32]);
            program.on(libc::SYS_socket, Program::unless(no_socket, &[&[is(0, &internet), stream, tcp]]));
        }
        Sockets::Internet => {
            let routes: &[Condition<'_>] =
                &[is(0, &[libc::AF_NETLINK as u32]), is(2, &[libc::NETLINK_ROUTE as u32])];
            let alternatives: &[&[Condition<'_>]] = &[&[is(0, &internet)], routes];
            program.on(libc::SYS_socket, Program::unless(no_socket, alternatives));
        }
    }

    if policy.shared_system {
        program.verdict_on(SHARED_IPC, missing);
        program.verdict_on(&[FILE_SETATTR], denied);
        program.verdict_on(ATTRIBUTES, refuse(libc::EOPNOTSUPP));
        for (call, arguments) in ON_A_PROCESS {
            let own = arguments.iter().enumerate();
            let own: Vec<_> =
                own.map(|(index, value)| is(index as u32, std::slice::from_ref(value))).collect();
            program.on(*call, Program::unless(denied, &[&own]));
        }
    }
    match policy.metadata {
        Metadata::Allow => {}
        Metadata::Refuse => program.verdict_on(METADATA, denied),
        Metadata::Ask => program.verdict_on(METADATA, ASK),
    }
    program.returns(ALLOW);
    program.0
}

/// Filters the calls of this process and everything that it starts. It has given up gaining
/// privileges before. Returns the listener of [`Metadata::Ask`].
pub(crate) fn install(policy: Policy) -> io::Result<Option<OwnedFd>> {
    const SET_MODE_FILTER: c_int = 1;
    const NEW_LISTENER: c_int = 1 << 3;

    #[repr(C)]
    struct Filter {
        length: u16,
        code: *const Instruction,
    }
    let Some(architecture) = ARCHITECTURE else { return Err(io::Error::from(io::ErrorKind::Unsupported)) };
    let code = program(policy, architecture);
    let length = u16::try_from(code.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let filter = Filter { length, code: code.as_ptr() };
    let asks = policy.metadata == Metadata::Ask;
    let flags = if asks { NEW_LISTENER } else { 0 };
    // SAFETY: the filter and its code live across the call, and the length is right.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const filter) } as c_int;
    checked(result)?;
    // SAFETY: with that flag the result is a descriptor that the kernel has just made for us.
    Ok(asks.then(|| unsafe { OwnedFd::from_raw_fd(result) }))
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
