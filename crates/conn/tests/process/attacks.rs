//! Programs that attack their guardians, from a daemon: it has double-forked, has a session of its
//! own, no environment and no standard stream of ours, and ignores what can be ignored. Nothing of
//! it may be left.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::ChildStderr;
use std::time::Duration;

use attache_conn::process::{Child, Command};

use crate::orphans::{ARGS, BYSTANDER, HOW, SCRIPT};
use crate::proc::{self, Mark};
use crate::wait_for_output;

/// A directory with pipes that start a daemon and report the end of its attack.
struct Stage {
    mark: Mark,
    dir: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let mark = Mark::new();
        let dir = std::env::temp_dir().join(format!("attache-attack-{}", mark.value()));
        fs::create_dir_all(&dir).unwrap();
        for name in ["up", "go", "never"] {
            assert!(std::process::Command::new("mkfifo").arg(dir.join(name)).status().unwrap().success());
        }
        Stage { mark, dir }
    }

    /// A program with a daemon that attacks on request. In `attack`, `$inner` and `$outer` are the
    /// guardians, `$ours` is the process that started everything.
    fn script(&self, attack: &str) -> String {
        format!(
            "read -r _ _ _ outer _ < /proc/$PPID/stat
            read -r line < /proc/$outer/stat
            ours=${{line##*) ? }}; ours=${{ours%% *}}
            trap '' TERM
            (setsid env -i /bin/sh -c '
                trap \"\" TERM HUP INT
                inner=$1 outer=$2 ours=$3
                exec < /dev/null > /dev/null 2> /dev/null
                cd {dir}
                echo > up
                read go < go
                {attack}
                : > done
                read never < never
            ' '{mark}' $PPID $outer $ours &)
            read up < {dir}/up
            echo main
            exec sleep 999999",
            dir = self.dir.display(),
            mark = self.mark.argument(),
        )
    }

    fn command(&self, attack: &str) -> Command {
        Command::new("/bin/sh")
            .args(["-c", &self.script(attack)])
            .env(Mark::NAME, self.mark.value())
            .grace(Duration::from_millis(50))
            .term_grace(Duration::from_millis(50))
    }

    /// Starts it in this process. Returns the child and its guardians, the inner one first.
    async fn start(&self, attack: &str) -> (Child, [u32; 2]) {
        let mut child = self.command(attack).spawn().unwrap();
        wait_for_output(&mut child, &["main"]).await;
        self.mark.await_count(2);
        let inner = proc::parent(child.guard.pid());
        (child, [inner, proc::parent(inner)])
    }

    /// Starts the daemon's attack. Both sides wait for the other to open the pipe.
    fn begin(&self) {
        fs::write(self.dir.join("go"), "go\n").unwrap();
    }

    fn await_done(&self) {
        proc::until("the end of the attack", || self.dir.join("done").exists());
    }

    fn assert_nothing_left(&self, guardians: [u32; 2]) {
        self.mark.assert_none();
        for guardian in guardians {
            // One that was killed by the daemon may have been left to the first process of the
            // system.
            proc::until("the guardians reaped", || proc::is_gone(guardian));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The daemon attacks, and nothing else happens: everything ends by that.
async fn ends_by(attack: &str) {
    let stage = Stage::new();
    let (child, guardians) = stage.start(attack).await;
    stage.begin();
    let status = child.guard.wait().await;
    assert!(!status.success(), "{attack}: {status}");
    stage.assert_nothing_left(guardians);
}

/// The daemon attacks, and then we end the child as usual.
async fn ends_after(attack: &str) {
    let stage = Stage::new();
    let (child, guardians) = stage.start(attack).await;
    stage.begin();
    stage.await_done();
    assert!(child.guard.try_exit().is_none(), "{attack}");
    child.shutdown().await;
    stage.assert_nothing_left(guardians);
}

#[tokio::test]
async fn a_killed_inner_guardian() {
    ends_by("kill -KILL $inner").await;
}

#[tokio::test]
async fn a_killed_outer_guardian() {
    ends_by("kill -KILL $outer").await;
}

#[tokio::test]
async fn a_killed_group_of_a_guardian() {
    ends_by("kill -KILL -$inner").await;
    ends_by("kill -KILL -$outer").await;
}

#[tokio::test]
async fn a_stopped_outer_guardian_and_a_killed_inner_one() {
    ends_by("kill -STOP $outer; kill -KILL $inner").await;
}

#[tokio::test]
async fn stopped_guardians() {
    ends_after("kill -STOP $inner").await;
    ends_after("kill -STOP $outer").await;
    ends_after("kill -STOP $outer $inner").await;
    ends_after("kill -STOP $inner $outer").await;
}

#[tokio::test]
async fn an_inner_guardian_that_is_stopped_again_and_again() {
    ends_by("while kill -STOP $inner; do :; done; exec 9< go").await;
}

#[tokio::test]
async fn guardians_that_may_open_no_files() {
    ends_after("/usr/bin/prlimit --pid $inner --nofile=0:0; /usr/bin/prlimit --pid $outer --nofile=0:0")
        .await;
}

/// Processes that are gone as soon as they have forked once: a list of them is always outdated.
const COMETS: &str = "comet() { comet & }; for i in 1 2 3 4; do comet; done";

#[tokio::test]
async fn comets_after_an_attack() {
    ends_by(&format!("{COMETS}; kill -KILL $inner")).await;
    ends_by(&format!("{COMETS}; kill -KILL $outer")).await;
    ends_after(COMETS).await;
}

#[tokio::test]
async fn a_killed_guardian_of_a_terminal() {
    for guardian in ["$inner", "$outer"] {
        let stage = Stage::new();
        let (sender, printed) = std::sync::mpsc::channel();
        let on_event = move |event: attache_conn::process::PtyEvent<'_>| {
            if let attache_conn::process::PtyEvent::Output(bytes) = event {
                let _ = sender.send(bytes.to_vec());
            }
        };
        let child = stage.command(&format!("kill -KILL {guardian}")).spawn_pty(80, 24, on_event).unwrap();
        assert!(printed.recv().is_ok_and(|text| text.starts_with(b"main")));
        stage.mark.await_count(2);
        stage.begin();
        child.guard.wait().await;
        stage.mark.assert_none();
    }
}

/// A program that adopts orphans, as a process of its own.
struct Helper {
    process: std::process::Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Helper {
    fn start(stage: &Stage, how: &str, attack: &str) -> Self {
        Helper::start_beside(stage, how, attack, None)
    }

    fn start_beside(stage: &Stage, how: &str, attack: &str, bystander: Option<&str>) -> Self {
        let mut process = stage.mark.helper(&ARGS);
        if let Some(bystander) = bystander {
            process.env(BYSTANDER, bystander);
        }
        let mut process = process.env(SCRIPT, stage.script(attack)).env(HOW, how).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut helper = Helper { process, stderr };
        helper.await_line("started ");
        // The helper, its guardians, the program and the daemon.
        stage.mark.await_count(5);
        helper
    }

    fn await_line(&mut self, start: &str) {
        let found = self.stderr.by_ref().map(Result::unwrap).find(|line| line.starts_with(start));
        assert!(found.is_some(), "the helper did not say: {start}");
    }

    /// All is over, for the helper too, and nothing is left.
    fn finish(mut self, stage: &Stage) {
        self.await_line("ended ");
        assert!(self.process.wait().unwrap().success());
        stage.mark.assert_none();
    }
}

#[test]
fn both_guardians_killed_in_one_step() {
    for attack in ["kill -KILL $inner $outer", "kill -KILL $outer $inner", "kill -KILL -$outer -$inner"] {
        let stage = Stage::new();
        let helper = Helper::start(&stage, "adopt, wait", attack);
        stage.begin();
        helper.finish(&stage);
    }
}

#[test]
fn both_guardians_killed_with_comets_around() {
    let stage = Stage::new();
    let helper = Helper::start(&stage, "adopt, wait", &format!("{COMETS}; kill -KILL $inner $outer"));
    stage.begin();
    helper.finish(&stage);
}

#[test]
fn both_guardians_stopped_again_and_again() {
    // The helper gives up on them after a while, and does it itself.
    let stage = Stage::new();
    let loops = "(while kill -STOP $outer $inner; do :; done) & (while kill -STOP $inner; do :; done) &";
    let mut helper = Helper::start(&stage, "adopt, shutdown", loops);
    stage.begin();
    stage.await_done();
    helper.process.stdin.take().unwrap().write_all(b"now\n").unwrap();
    helper.finish(&stage);
}

#[test]
fn our_process_and_one_guardian_killed_in_one_step() {
    for attack in ["kill -KILL $ours $inner", "kill -KILL $outer $ours", "kill -KILL $inner $ours"] {
        let stage = Stage::new();
        let mut helper = Helper::start(&stage, "killed", attack);
        stage.begin();
        helper.process.wait().unwrap();
        stage.mark.await_none();
    }
}

#[test]
fn a_control_pipe_that_the_daemon_keeps_open() {
    // It can open every pipe of our process again, for writing, so that guardians never see the end
    // of theirs.
    let attack = "n=0; for fd in /proc/$ours/fd/*; do
            case $(/bin/readlink $fd) in pipe:*)
                (: 3<> $fd) || continue
                n=$((n+1)); (exec 3<> $fd; : > held-$n; read never < never) &
                while ! [ -e held-$n ]; do :; done
            esac
        done; [ $n -gt 3 ] || exit";
    let stage = Stage::new();
    let mut helper = Helper::start(&stage, "killed", attack);
    stage.begin();
    stage.await_done();
    helper.process.kill().unwrap();
    helper.process.wait().unwrap();
    stage.mark.await_none();
}

#[test]
fn an_inner_guardian_that_is_stopped_after_the_outer_one_is_killed() {
    let stage = Stage::new();
    let helper = Helper::start(&stage, "adopt, wait", "kill -STOP $outer $inner; kill -KILL $outer");
    stage.begin();
    helper.finish(&stage);
}

#[test]
fn other_children_of_a_program_that_adopts_are_left_alone() {
    // A process that goes to the background without a guardian, as a browser does, is the helper's
    // child then.
    let (stage, bystander) = (Stage::new(), Mark::new());
    let text = "(setsid /bin/sh -c 'exec > /dev/null 2>&1; read never < $0/never' DIR MARK &)";
    let text = text.replace("DIR", stage.dir.to_str().unwrap()).replace("MARK", &bystander.argument());
    let helper = Helper::start_beside(&stage, "adopt, wait", "kill -KILL $inner $outer", Some(&text));
    bystander.await_count(1);
    let pid = bystander.alive()[0];
    assert_eq!(proc::parent(pid), helper.process.id());
    stage.begin();
    helper.finish(&stage);
    assert_eq!(bystander.alive(), [pid]);
    fs::write(stage.dir.join("never"), "now\n").unwrap();
    bystander.await_none();
}
