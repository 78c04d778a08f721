//! Nothing moves while nothing happens, and a flood leaves no mark.

use std::fs;

use crate::chat_rig::{CTRL_D, Chat, Start};

/// What each thread of the program waits in, as the kernel reports it: the number of the call and
/// its arguments.
fn waits(chat: &Chat) -> Vec<Vec<u64>> {
    let tasks = fs::read_dir(format!("/proc/{}/task", chat.pid())).unwrap();
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("syscall")).ok())
        .map(|line| {
            let mut words = line.split_whitespace();
            let call = words.next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX);
            std::iter::once(call).chain(words.map(number)).collect()
        })
        .collect()
}

/// Waits in `epoll_wait` or `epoll_pwait` must not have an end; any other wait is for another
/// thread or a signal.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_calm(waits: &[Vec<u64>]) -> bool {
    const EPOLL: [u64; 2] = [232, 281];
    const FUTEX: u64 = 202;
    const POLL: u64 = 7;
    const READ: u64 = 0;
    let forever = |timeout: u64| timeout as u32 == u32::MAX;
    waits.iter().all(|wait| match wait.first() {
        Some(call) if EPOLL.contains(call) => forever(wait[4]),
        Some(&POLL) => forever(wait[3]),
        // Without a time to wait until.
        Some(&FUTEX) => wait[4] == 0,
        Some(&READ) => true,
        _ => false,
    })
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test]
async fn an_idle_chat_sleeps_without_a_clock() {
    let mut chat = Start::new().with_script("").await;
    chat.say("hello");
    chat.until("the answer", |screen| screen.contents().matches("hello").count() >= 2).await;
    chat.sees_no_more("working").await;
    // It may take a moment to fall asleep. If it never did, this would never end, and the test
    // would be stopped.
    let asleep = async {
        while !is_calm(&waits(&chat)) {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    assert!(tokio::time::timeout(limit, asleep).await.is_ok(), "{:?}", waits(&chat));
}

/// The most memory that the program has had, in KiB.
fn peak(chat: &Chat) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", chat.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_flood_leaves_memory_flat_and_the_keys_alive() {
    let script = "on session/prompt\n  flood 20000 some words of an answer that does not end and is said again\\n\\n\n  done end_turn\n\
                  on session/prompt 2\n  flood 60000 some words of an answer that does not end and is said again\\n\\n\n  done end_turn\n";
    let mut chat = Start::new().with_script(script).await;
    chat.say("flood");
    chat.keys("typed meanwhile");
    chat.sees("> typed meanwhile").await;
    chat.sees_no_more("working").await;
    let before = peak(&chat);
    chat.keys("\x15");
    chat.prompts("").await;
    chat.say("more");
    chat.sees("working").await;
    chat.sees_no_more("working").await;
    let after = peak(&chat);
    // Three times as much went through. What is kept for the screen is bounded.
    assert!(after < before + 8 * 1024, "{before} KiB, then {after} KiB");
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
}
