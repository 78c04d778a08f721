//! The filters, run by a machine of our own.

use super::*;

const NATIVE: u32 = 0xc000_003e;

/// What a filter says about a call.
fn verdict(code: &[Instruction], architecture: u32, call: c_long, arguments: &[u64]) -> u32 {
    let mut data = [0_u32; 16];
    data[0] = call as u32;
    data[1] = architecture;
    for (index, argument) in arguments.iter().enumerate() {
        data[4 + 2 * index] = *argument as u32;
        data[5 + 2 * index] = (*argument >> 32) as u32;
    }
    let (mut at, mut loaded) = (0, 0);
    loop {
        let Instruction { code, jump_true, jump_false, value } = code[at];
        at += 1;
        let holds = match code {
            LOAD => {
                loaded = data[value as usize / 4];
                continue;
            }
            AND => {
                loaded &= value;
                continue;
            }
            JUMP => {
                at += value as usize;
                continue;
            }
            RETURN => return value,
            JUMP_EQUAL => loaded == value,
            JUMP_GREATER => loaded > value,
            JUMP_GREATER_OR_EQUAL => loaded >= value,
            JUMP_ANY_BIT => loaded & value != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        at += usize::from(if holds { jump_true } else { jump_false });
    }
}

const CONFINED: Policy = Policy { sockets: Sockets::None, metadata: Metadata::Allow, shared_system: false };

fn on(policy: Policy, call: c_long, arguments: &[u64]) -> u32 {
    verdict(&program(policy, NATIVE), NATIVE, call, arguments)
}

#[test]
fn every_way_through_a_filter_ends() {
    for sockets in [Sockets::None, Sockets::Tcp, Sockets::Internet] {
        for metadata in [Metadata::Allow, Metadata::Refuse, Metadata::Ask] {
            for shared_system in [false, true] {
                let policy = Policy { sockets, metadata, shared_system };
                let code = program(policy, NATIVE);
                assert!(code.len() < 4096, "the kernel takes no more");
                for call in 0..600 {
                    for argument in [0, 1, 2, 5, 6, 10, 16, 0x5412, 0x1000_0000, u64::MAX] {
                        verdict(&code, NATIVE, call, &[argument; 6]);
                    }
                }
            }
        }
    }
}

#[test]
fn other_architectures_and_newer_calls_are_refused() {
    let code = program(CONFINED, NATIVE);
    assert_eq!(verdict(&code, 0x4000_0003, libc::SYS_read, &[]), KILL);
    assert_eq!(on(CONFINED, c_long::from(X32) + libc::SYS_read, &[]), refuse(libc::ENOSYS));
    assert_eq!(on(CONFINED, c_long::from(NEWEST) + 1, &[]), refuse(libc::ENOSYS));
    assert_eq!(on(CONFINED, libc::SYS_read, &[0, 0, 0]), ALLOW);
    assert_eq!(on(CONFINED, libc::SYS_execve, &[]), ALLOW);
}

#[test]
fn upper_halves_of_arguments_hide_nothing() {
    let high = 7 << 32;
    assert_eq!(on(CONFINED, libc::SYS_ioctl, &[0, high | 0x5412]), refuse(libc::EPERM));
    assert_eq!(on(CONFINED, libc::SYS_ioctl, &[0, 0x5401]), ALLOW);
    let user = libc::CLONE_NEWUSER as u64;
    assert_eq!(on(CONFINED, libc::SYS_clone, &[high | user]), refuse(libc::EPERM));
    assert_eq!(on(CONFINED, libc::SYS_clone, &[libc::SIGCHLD as u64]), ALLOW);
    assert_eq!(on(CONFINED, libc::SYS_unshare, &[libc::CLONE_FILES as u64]), ALLOW);
    assert_eq!(on(CONFINED, libc::SYS_unshare, &[0x80]), refuse(libc::EPERM));
    assert_eq!(on(CONFINED, libc::SYS_personality, &[0xffff_ffff]), ALLOW);
    assert_eq!(on(CONFINED, libc::SYS_personality, &[0x0040_0000]), refuse(libc::EPERM));
    assert_eq!(on(CONFINED, libc::SYS_clone3, &[]), refuse(libc::ENOSYS));
}

#[test]
fn sockets_are_those_of_the_policy() {
    let refused = refuse(libc::EACCES);
    let socket = |sockets, arguments: [i32; 3]| {
        let arguments = arguments.map(|argument| argument as u64);
        on(Policy { sockets, ..CONFINED }, libc::SYS_socket, &arguments)
    };
    let (stream, datagram, flags) =
        (libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
    for family in 0..50 {
        for kind in [stream, datagram, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
            assert_eq!(socket(Sockets::None, [family, kind, 0]), refused);
            let tcp = kind == stream && [libc::AF_INET, libc::AF_INET6].contains(&family);
            assert_eq!(socket(Sockets::Tcp, [family, kind | flags, 0]) == ALLOW, tcp, "{family} {kind}");
            let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].contains(&family);
            assert_eq!(socket(Sockets::Internet, [family, kind, 0]) == ALLOW, internet, "{family} {kind}");
        }
    }
    assert_eq!(socket(Sockets::Tcp, [libc::AF_INET, stream, libc::IPPROTO_TCP]), ALLOW);
    assert_eq!(socket(Sockets::Tcp, [libc::AF_INET, stream, libc::IPPROTO_MPTCP]), refused);
    assert_eq!(socket(Sockets::Tcp, [libc::AF_INET, stream, libc::IPPROTO_SCTP]), refused);
    assert_eq!(socket(Sockets::Internet, [libc::AF_NETLINK, libc::SOCK_RAW, 9]), refused);
    assert_eq!(on(CONFINED, libc::SYS_connect, &[3]), refused);
    assert_eq!(on(Policy { sockets: Sockets::Tcp, ..CONFINED }, libc::SYS_connect, &[3]), ALLOW);
}

#[test]
fn pairs_are_connected_for_good() {
    for sockets in [Sockets::None, Sockets::Tcp, Sockets::Internet] {
        let pair = |family: i32, kind: i32| {
            let policy = Policy { sockets, ..CONFINED };
            on(policy, libc::SYS_socketpair, &[family as u64, kind as u64, 0])
        };
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_SEQPACKET), ALLOW);
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_DGRAM), refuse(libc::EACCES));
        assert_eq!(pair(libc::AF_UNIX, libc::SOCK_RAW), refuse(libc::EACCES));
        assert_eq!(pair(libc::AF_TIPC, libc::SOCK_STREAM), refuse(libc::EACCES));
    }
}

#[test]
fn a_shared_system_is_left_alone() {
    let shared = Policy { shared_system: true, metadata: Metadata::Ask, ..CONFINED };
    for (call, error) in [(libc::SYS_fsetxattr, libc::EOPNOTSUPP), (FILE_SETATTR, libc::EPERM)] {
        assert_eq!(on(CONFINED, call, &[]), ALLOW);
        assert_eq!(on(shared, call, &[]), refuse(error));
    }
    assert_eq!(on(shared, libc::SYS_fchmod, &[]), ASK);
    assert_eq!(on(shared, libc::SYS_fchownat, &[]), ASK);
    assert_eq!(on(Policy { metadata: Metadata::Refuse, ..shared }, FCHMODAT2, &[]), refuse(libc::EPERM));
    assert_eq!(on(CONFINED, libc::SYS_fchmod, &[]), ALLOW);
    assert_eq!(on(shared, libc::SYS_shmget, &[]), refuse(libc::ENOSYS));
    assert_eq!(on(shared, libc::SYS_prlimit64, &[0, 7]), ALLOW);
    assert_eq!(on(shared, libc::SYS_prlimit64, &[4711, 7]), refuse(libc::EPERM));
    assert_eq!(on(shared, libc::SYS_setpriority, &[0, 0, 5]), ALLOW);
    assert_eq!(on(shared, libc::SYS_setpriority, &[0, 4711, 5]), refuse(libc::EPERM));
    assert_eq!(on(shared, libc::SYS_setpriority, &[libc::PRIO_USER as u64, 0, 5]), refuse(libc::EPERM));
    assert_eq!(on(shared, libc::SYS_ioctl, &[3, 0x4008_6602]), refuse(libc::EPERM));
}
