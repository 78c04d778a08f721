//! Hostile commands, in every sandbox that works here.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use attache_host::sandbox::{Confinement, Environment, Network};

use crate::kit::Scratch;
use crate::sandbox_kit::{Outside, backends, command, perl, program, shell, with_namespaces};

fn with_network(network: Network, root: &Path) -> Confinement {
    Confinement { network, ..Confinement::writable([root]) }
}

#[test]
fn no_socket_of_any_family_can_be_created() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let script = format!(
            "for my $family (0..46) {{ for my $kind (1..6, 10) {{ for my $protocol (0, 1, 6, 17, 58, 132, 255, 262) {{
                 print \"socket $family $kind $protocol\\n\" if syscall({socket}, $family, $kind, $protocol) >= 0;
             }} }} }}
             for my $family (0..46) {{ for my $kind (2, 3, 4, 6, 10) {{
                 my $room = \"\\0\" x 8;
                 print \"pair $family $kind\\n\" if syscall({pair}, $family, $kind, 0, $room) >= 0;
             }} }}
             my $room = \"\\0\" x 8;
             print 'stream ', syscall({pair}, 1, 1, 0, $room), \"\\n\";
             my $address = pack('S a*', 1, \"/tmp/x\\0\");
             try('connect', {connect}, unpack('i', $room), $address, length $address);
             try('bind', {bind}, unpack('i', $room), $address, length $address);",
            socket = libc::SYS_socket,
            pair = libc::SYS_socketpair,
            connect = libc::SYS_connect,
            bind = libc::SYS_bind,
        );
        for confinement in [Confinement::writable([scratch.path()]), Confinement::read_only([scratch.path()])]
        {
            perl(backend, &confinement, scratch.path(), &script)
                .prints("stream 0\nconnect: refused\nbind: refused");
        }
    }
}

#[test]
fn services_of_this_machine_are_out_of_reach() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = scratch.dir("p");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stream = UnixListener::bind(root.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(root.join("datagram")).unwrap();
        let name = format!("attache-{}-{backend:?}", std::process::id());
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for listener in [&stream, &hidden] {
            listener.set_nonblocking(true).unwrap();
        }
        tcp.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let script = format!(
            "use Socket;
             my $unix = pack_sockaddr_un('stream'); my $dgram = pack_sockaddr_un('datagram'); my $abstract = pack_sockaddr_un(\"\\0{name}\");
             my $tcp = pack_sockaddr_in({tcp}, INADDR_LOOPBACK); my $udp = pack_sockaddr_in({udp}, INADDR_LOOPBACK);
             for my $try (['stream', AF_UNIX, SOCK_STREAM, $unix], ['datagram', AF_UNIX, SOCK_DGRAM, $dgram], ['abstract', AF_UNIX, SOCK_STREAM, $abstract],
                          ['tcp', AF_INET, SOCK_STREAM, $tcp], ['udp', AF_INET, SOCK_DGRAM, $udp]) {{
                 my ($name, $family, $kind, $address) = @$try;
                 my ($s, $t);
                 if (socket($s, $family, $kind, 0) && connect($s, $address)) {{ syswrite $s, 'evil'; print \"reached $name\\n\"; }}
                 if (socketpair($s, $t, AF_UNIX, $kind, 0) && defined send($s, 'evil', 0, $address)) {{ print \"sent to $name\\n\"; }}
                 if (socketpair($s, $t, AF_UNIX, $kind, 0) && connect($s, $address)) {{ print \"connected to $name\\n\"; }}
             }}
             print 'end';",
            tcp = tcp.local_addr().unwrap().port(),
            udp = udp.local_addr().unwrap().port(),
        );
        perl(backend, &with_network(Network::Off, &root), &root, &script).prints("end");
        assert!(tcp.accept().is_err() && udp.recv(&mut [0]).is_err());
        // With a network the Internet protocols work, and nothing else does.
        perl(backend, &with_network(Network::Open, &root), &root, &script)
            .prints("reached tcp\nreached udp\nend");
        assert!(tcp.accept().is_ok() && udp.recv(&mut [0; 8]).is_ok());
        assert!(stream.accept().is_err() && datagram.recv(&mut [0]).is_err() && hidden.accept().is_err());
    }
}

#[test]
fn dangerous_system_calls_are_refused() {
    let calls = [
        ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "$$, 0, 0, 0, 0, 0"),
        ("process_vm_writev", libc::SYS_process_vm_writev, "$$, 0, 0, 0, 0, 0"),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
        ("kcmp", libc::SYS_kcmp, "$$, $$, 0, 0, 0"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, $room"),
        ("io_uring_enter", libc::SYS_io_uring_enter, "0, 0, 0, 0, 0, 0"),
        ("keyctl", libc::SYS_keyctl, "0, -4, 0"),
        ("add_key", libc::SYS_add_key, "$user, $user, $user, 1, -4"),
        ("request_key", libc::SYS_request_key, "$user, $user, 0, -4"),
        ("bpf", libc::SYS_bpf, "0, $room, 64"),
        ("perf_event_open", libc::SYS_perf_event_open, "$room, 0, -1, -1, 0"),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        ("unshare user", libc::SYS_unshare, "0x10000000"),
        ("unshare net", libc::SYS_unshare, "0x40000000"),
        ("clone user", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
        ("clone3", libc::SYS_clone3, "$room, 64"),
        ("setns", libc::SYS_setns, "0, 0"),
        ("mount", libc::SYS_mount, "$none, $tmp, $tmpfs, 0, 0"),
        ("bind mount", libc::SYS_mount, "$tmp, $tmp, 0, 4096, 0"),
        ("remount", libc::SYS_mount, "$none, $slash, 0, 32, 0"),
        ("umount2", libc::SYS_umount2, "$tmp, 2"),
        ("pivot_root", libc::SYS_pivot_root, "$slash, $slash"),
        ("chroot", libc::SYS_chroot, "$slash"),
        ("fsopen", libc::SYS_fsopen, "$tmpfs, 0"),
        ("open_tree", libc::SYS_open_tree, "-100, $slash, 1"),
        ("move_mount", libc::SYS_move_mount, "-100, $slash, -100, $slash, 0"),
        ("mount_setattr", libc::SYS_mount_setattr, "-100, $slash, 0, $room, 32"),
        ("name_to_handle_at", libc::SYS_name_to_handle_at, "-100, $slash, $room, $room, 0"),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "0, $room, 0"),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
        ("init_module", libc::SYS_init_module, "$room, 8, $room"),
        ("finit_module", libc::SYS_finit_module, "0, $room, 0"),
        ("delete_module", libc::SYS_delete_module, "$none, 0"),
        ("personality", libc::SYS_personality, "0x0400000"),
        ("swapon", libc::SYS_swapon, "$none, 0"),
        ("settimeofday", libc::SYS_settimeofday, "0, 0"),
        ("sethostname", libc::SYS_sethostname, "$none, 4"),
        ("syslog", libc::SYS_syslog, "3, $room, 8"),
        ("a newer call", 470, "0, 0, 0"),
        ("the x32 interface", 0x4000_0000 + libc::SYS_getpid, ""),
    ];
    for &backend in backends() {
        let scratch = Scratch::new();
        let mut script = "my ($room, $user, $none, $tmp, $tmpfs, $slash) = (\"\\0\" x 256, \"user\\0\", \"none\\0\", \"/tmp\\0\", \"tmpfs\\0\", \"/\\0\");\n"
            .to_owned();
        for (name, number, arguments) in calls {
            script.push_str(&format!("try('{name}', {number}, {arguments});\n"));
        }
        let confinement = Confinement::writable([scratch.path()]);
        let outcome = perl(backend, &confinement, scratch.path(), &script);
        assert_eq!(outcome.stdout.lines().count(), calls.len(), "{outcome:?}");
        assert!(outcome.stdout.lines().all(|line| line.ends_with(": refused")), "{outcome:?}");
    }
}

#[test]
fn no_privilege_is_left_and_none_can_be_gained() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let confinement = Confinement::writable([scratch.path()]);
        let outcome = shell(backend, &confinement, scratch.path(), "cat /proc/self/status");
        let field = |name: &str| {
            let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name} in {outcome:?}")).trim().to_owned()
        };
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(name), "0000000000000000", "{name} {outcome:?}");
        }
        assert_eq!(field("NoNewPrivs"), "1");
        assert_eq!(field("Seccomp"), "2");
        let script = "unshare -Urm true; chroot / true; mknod device b 8 0; mknod device c 1 1; chown 12345 .; ls device";
        shell(backend, &confinement, scratch.path(), script).prints("");
        assert!(!scratch.join("device").exists());
    }
}

#[test]
fn the_processes_of_the_sandbox_tell_nothing() {
    for &backend in backends() {
        let (scratch, outside) = (Scratch::new(), Outside::new());
        fs::write(outside.join("secret"), "treasure").unwrap();
        let secret = outside.join("secret");
        // The first process has everything in its memory that the sandbox was started with.
        let script = format!(
            "for p in /proc/[0-9]*; do cat $p/environ $p/root{s} $p/cwd/secret; ls -l $p/fd/ | grep -v pipe; cat $p/fd/[3-9]*; head -c 100 $p/mem; done
             cat /proc/self/root{s} /proc/1/root{s} /proc/1/environ; cat /proc/self/task/*/root{s}; cd /proc/1/cwd && cat secret; cat /proc/1/maps /proc/1/stack
             echo end",
            s = secret.display()
        );
        let confinement = Confinement::read_only([scratch.path()]);
        let output = command(backend, &confinement, &["sh", "-c", &script])
            .current_dir(scratch.path())
            .env("SOME_API_KEY", "treasure")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("treasure") && !text.contains("SOME_API_KEY"), "{backend:?}: {text}");
        assert!(text.ends_with("end\n"), "{backend:?}: {text}");
    }
}

#[test]
fn the_kernel_cannot_be_configured() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let confinement = Confinement::writable([scratch.path()]);
        // Each of them gets the value that it has.
        let script = "for f in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sys/kernel/hostname /proc/self/oom_score_adj /proc/self/setgroups \
                 /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/kernel/uevent_helper; do
                 v=$(cat $f 2>/dev/null) && ( echo \"$v\" > $f ) 2>/dev/null && echo \"wrote $f\"
             done
             ( echo > /proc/sysrq-trigger ) 2>/dev/null && echo sysrq
             for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/attache-test 2>/dev/null && rmdir $d/attache-test && echo $d; done
             echo end";
        shell(backend, &confinement, scratch.path(), script).prints("end");
    }
}

#[test]
fn descriptors_do_not_leak_into_the_sandbox() {
    for &backend in backends() {
        let (scratch, outside) = (Scratch::new(), Outside::new());
        fs::write(outside.join("secret"), "treasure").unwrap();
        let line = Confinement::read_only([scratch.path()]).command(
            backend,
            &program(),
            ["sh", "-c", "cat <&7; cat /proc/self/fd/8/secret; ls /dev/fd/; echo end"],
        );
        let script = format!("exec 7<{o}/secret 8<{o} 9>{o}/log; exec \"$@\"", o = outside.path().display());
        let output = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(&line)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains("treasure"), "{backend:?}: {text}");
        assert!(
            text.lines().all(|line| line.parse().is_ok_and(|fd: u32| fd <= 3) || line == "end"),
            "{backend:?}: {text}"
        );
        // A directory as standard input would be a way out.
        let output = Command::new("sh")
            .args(["-c", &format!("exec <{}; exec \"$@\"", outside.path().display()), "sh"])
            .args(&line)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn other_processes_cannot_be_signalled_or_changed() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let mut victim = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let confinement = Confinement::writable([scratch.path()]);
        let script = format!(
            "my $pid = {pid};
             for my $signal (0, 'CONT', 'TERM', 'KILL') {{ print \"signalled $signal\\n\" if kill $signal, $pid; }}
             print \"parent\\n\" if getppid() > 1 && kill 0, getppid();
             my $limits = pack('QQ', 0, 0);
             print \"limited\\n\" if syscall({prlimit}, $pid, 4, $limits, 0) >= 0;
             print \"niced\\n\" if syscall({setpriority}, 0, $pid, 19) >= 0;
             print \"niced all\\n\" if {shared} && syscall({setpriority}, 2, 0, 19) >= 0;
             my $fd = syscall({pidfd_open}, $pid, 0);
             print \"by descriptor\\n\" if $fd >= 0 && syscall({pidfd_signal}, $fd, 9, 0, 0) >= 0;
             # Its own children are its own.
             my $child = fork; if (!$child) {{ sleep 1000; exit }}
             print 'own ', kill('KILL', $child), \"\\n\"; waitpid $child, 0;",
            pid = victim.id(),
            prlimit = libc::SYS_prlimit64,
            setpriority = libc::SYS_setpriority,
            pidfd_open = libc::SYS_pidfd_open,
            pidfd_signal = libc::SYS_pidfd_send_signal,
            shared = i32::from(!backend.guarantees().private_processes),
        );
        let outcome = perl(backend, &confinement, scratch.path(), &script);
        let alive = victim.try_wait().unwrap().is_none();
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(alive, "{outcome:?}");
        outcome.prints("own 1");
    }
}

#[test]
fn metadata_outside_cannot_be_changed() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let Some(outside) = Outside::visible() else { return };
        let file = outside.join("file");
        fs::write(&file, "text").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(&file).unwrap();
        let confinement = Confinement::writable([scratch.path()]);
        let script = format!(
            "open(my $f, '<', '{path}') or print \"cannot open\\n\"; my $fd = fileno $f; my $path = \"{path}\\0\"; my $empty = \"\\0\"; my $name = \"user.x\\0\"; my $value = \"1\";
             my $times = pack('qqqq', 1, 0, 1, 0); my $flags = pack('L', 0x10); my $proc = \"/proc/self/fd/$fd\\0\"; my $attributes = \"\\0\" x 24;
             try('fchmod', {fchmod}, $fd, 0777);
             try('fchmodat', {fchmodat}, -100, $path, 0777);
             try('fchmodat by proc', {fchmodat}, -100, $proc, 0777);
             try('fchmodat2', 452, -100, $path, 0777, 0);
             try('fchmodat2 empty', 452, $fd, $empty, 0777, 0x1000);
             try('fchownat', {fchownat}, -100, $path, $<, $(+0, 0);
             try('fchown', {fchown}, $fd, $<, $(+0);
             try('utimensat', {utimensat}, -100, $path, $times, 0);
             try('futimens', {utimensat}, $fd, 0, $times, 0);
             try('setxattr', {setxattr}, $path, $name, $value, 1, 0);
             try('fsetxattr', {fsetxattr}, $fd, $name, $value, 1, 0);
             try('lsetxattr', {lsetxattr}, $path, $name, $value, 1, 0);
             try('setxattrat', 463, -100, $path, 0, $name, $attributes, 16);
             try('removexattr', {removexattr}, $path, $name);
             try('file_setattr', 469, -100, $path, $attributes, 24, 0);
             try('setflags', {ioctl}, $fd, 0x40086602, $flags);
             try('truncate', {truncate}, $path, 0);
             try('renameat2', {renameat2}, -100, $path, -100, $path, 0);
             try('linkat', {linkat}, -100, $path, -100, \"hard\\0\", 0);
             try('linkat by descriptor', {linkat}, $fd, $empty, -100, \"hard\\0\", 0x1000);
             try('unlinkat', {unlinkat}, -100, $path, 0);",
            path = file.display(),
            fchmod = libc::SYS_fchmod,
            fchmodat = libc::SYS_fchmodat,
            fchownat = libc::SYS_fchownat,
            fchown = libc::SYS_fchown,
            utimensat = libc::SYS_utimensat,
            setxattr = libc::SYS_setxattr,
            fsetxattr = libc::SYS_fsetxattr,
            lsetxattr = libc::SYS_lsetxattr,
            removexattr = libc::SYS_removexattr,
            ioctl = libc::SYS_ioctl,
            truncate = libc::SYS_truncate,
            renameat2 = libc::SYS_renameat2,
            linkat = libc::SYS_linkat,
            unlinkat = libc::SYS_unlinkat,
        );
        let outcome = perl(backend, &confinement, scratch.path(), &script);
        assert!(!outcome.stdout.contains("DONE") && outcome.stdout.contains("fchmod: "), "{outcome:?}");
        let after = fs::metadata(&file).unwrap();
        assert_eq!(
            (before.mode(), before.mtime(), before.len(), before.nlink()),
            (after.mode(), after.mtime(), after.len(), after.nlink()),
            "{outcome:?}"
        );
        assert!(!scratch.join("hard").exists());
    }
}

#[test]
fn metadata_inside_can_be_changed() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = scratch.dir("p");
        scratch.link("p/link", "file");
        let confinement = Confinement::writable([&root]);
        let script = "echo 'echo ran' > file && chmod 755 file && ./file && touch -d @1000000000 file && stat -c '%a %Y' file
             mkdir -p d/e && (cd d/e && chmod 600 ../../file && stat -L -c %a ../../link) && chmod 644 link && stat -c %a file
             cp -p file copy && stat -c '%a %Y' copy; perl -e 'open F, \"<\", \"file\"; chmod 0700, *F or die $!; utime 5, 5, *F or die $!' && stat -c '%a %Y' file
             touch -h -d @7 link && stat -c %Y link; chmod 700 missing 2>/dev/null || echo missing; chmod 700 $TMPDIR && echo tmp; chown $(id -u):$(id -g) file link && chown -h $(id -u) link && chgrp -R $(id -g) d && echo owner";
        let expected = "ran\n755 1000000000\n600\n644\n644 1000000000\n700 5\n7\nmissing\ntmp\nowner";
        shell(backend, &confinement, &root, script).prints(expected);
    }
}

#[test]
fn special_files_outside_cannot_be_written_to() {
    for &backend in backends() {
        let (scratch, outside) = (Scratch::new(), Outside::new());
        let fifo = outside.join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let reader = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo).unwrap();
        let confinement = Confinement::writable([scratch.path()]);
        let script = format!(
            "use Fcntl; print sysopen(my $f, '{}', O_WRONLY | O_NONBLOCK) ? 'opened' : 'refused';",
            fifo.display()
        );
        perl(backend, &confinement, scratch.path(), &script).prints("refused");
        drop(reader);
    }
}

#[test]
fn devices_are_few() {
    for &backend in backends() {
        let scratch = Scratch::new();
        for confinement in [Confinement::writable([scratch.path()]), Confinement::read_only([scratch.path()])]
        {
            let script = "for d in mem kmem port kmsg sda vda nvme0n1 loop0 loop-control fuse net/tun vhost-net uinput input/event0 tty0 tty1 console ttyS0 hwrng rtc0 cpu_dma_latency; do
                     ( exec 3</dev/$d ) 2>/dev/null && echo \"read $d\"; ( exec 3>/dev/$d ) 2>/dev/null && echo \"wrote $d\"
                 done
                 echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c && echo out > /dev/stdout && echo err > /dev/stderr && for d in null zero full tty urandom; do chmod 666 /dev/$d && echo \"chmod $d\"; touch -d @0 /dev/$d && echo \"touch $d\"; done 2>/dev/null; (: < /dev/tty) 2>/dev/null; echo end";
            shell(backend, &confinement, scratch.path(), script).prints("3\n3\nout\nend");
        }
    }
}

#[test]
fn ipc_objects_of_others_are_out_of_reach() {
    let create = format!(
        "my $shm = shmget(0, 64, 01600); shmwrite($shm, 'treasure', 0, 8); my $msg = msgget(0, 01600); msgsnd($msg, pack('l! a*', 1, 'treasure'), 0);
         my $name = \"attache-$$\\0\"; my $mq = syscall({mq_open}, $name, 0102, 0600, 0); print join ' ', $shm, $msg, $$;",
        mq_open = libc::SYS_mq_open
    );
    let output = Command::new("perl").args(["-e", &create]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let [shm, msg, queue] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    for &backend in backends() {
        let scratch = Scratch::new();
        let script = format!(
            "my $text = ''; my $name = \"attache-{queue}\\0\";
             print \"shm\\n\" if shmread({shm}, $text, 0, 8); print \"msg\\n\" if msgrcv({msg}, $text, 64, 0, 04000);
             print \"mq\\n\" if syscall({mq_open}, $name, 0, 0, 0) >= 0; print \"removed\\n\" if shmctl({shm}, 0, 0); print 'end';",
            mq_open = libc::SYS_mq_open
        );
        perl(backend, &Confinement::writable([scratch.path()]), scratch.path(), &script).prints("end");
    }
    let remove = format!(
        "my $text; print shmread({shm}, $text, 0, 8) ? $text : 'gone'; shmctl({shm}, 0, 0); msgctl({msg}, 0, 0); my $n = \"attache-{queue}\\0\"; syscall({}, $n)",
        libc::SYS_mq_unlink
    );
    let output = Command::new("perl").args(["-e", &remove]).output().unwrap();
    assert_eq!(output.stdout, b"treasure");
}

#[test]
fn a_crash_leaves_no_core_dump() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let confinement = Confinement::writable([scratch.path()]);
        let outcome =
            shell(backend, &confinement, scratch.path(), "ulimit -c unlimited 2>/dev/null; kill -SEGV $$");
        assert_eq!(outcome.code, 139);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "{outcome:?}");
    }
}

#[test]
fn a_sandbox_inside_a_sandbox_loosens_nothing() {
    for &backend in backends() {
        let (scratch, outside) = (Scratch::new(), Outside::new());
        let own = program();
        // The inner one asks for more than the outer one has, with any backend.
        for inner in backends() {
            let wide = Confinement {
                network: Network::Open,
                ..Confinement::writable([outside.path(), scratch.path()])
            };
            let script = format!("echo x > {0}/evil; cat {0}/evil; echo x > mine", outside.path().display());
            let line = wide.command(*inner, &own, ["sh", "-c", &script]);
            let confinement =
                Confinement { environment: Environment::Keep, ..Confinement::writable([scratch.path()]) };
            let output = command(backend, &confinement, &line)
                .current_dir(scratch.path())
                .env("ATTACHE_SANDBOX_BACKEND", "none")
                .output()
                .unwrap();
            assert!(!outside.join("evil").exists(), "{backend:?} {inner:?}: {output:?}");
        }
    }
}

#[test]
fn writing_through_a_standard_stream_is_all_it_allows() {
    for &backend in backends() {
        let (scratch, outside) = (Scratch::new(), Outside::new());
        fs::write(outside.join("input"), "text").unwrap();
        let input = fs::File::open(outside.join("input")).unwrap();
        let confinement = Confinement::read_only([scratch.path()]);
        // A descriptor that is open for reading cannot be opened again for writing.
        let script =
            "cat; echo evil > /dev/stdin; echo evil >> /proc/self/fd/0; echo evil 1<>/dev/stdin; echo end";
        let output = command(backend, &confinement, &["sh", "-c", script])
            .current_dir(scratch.path())
            .stdin(input)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "textend\n", "{backend:?}");
        assert_eq!(fs::read_to_string(outside.join("input")).unwrap(), "text");
    }
}

#[test]
fn the_private_network_is_alone() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let outcome = shell(
            backend,
            &Confinement::writable([scratch.path()]),
            scratch.path(),
            "cat /proc/net/dev /proc/net/unix /proc/net/tcp",
        );
        let interfaces =
            outcome.stdout.lines().filter(|line| line.contains(':') && !line.contains("local_address"));
        assert!(interfaces.clone().count() <= 1, "{outcome:?}");
        outcome.hides("attache");
    }
}
