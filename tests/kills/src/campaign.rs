//! The command line: worlds one after the other, on a few threads.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::laws::Counts;
use crate::world::{Kills, World};

const USAGE: &str =
    "usage: kills --attache PROGRAM [--runs N] [--seed N] [--shard I/K] [--threads N] [--keep]
  --runs     kills in all shards together (500)
  --seed     the seed of the first world (1)
  --shard    play the part I of K, from 1
  --threads  worlds at once (2)
  --keep     keep the directories of worlds that failed";

/// Kills of a world.
const KILLS: u64 = 25;

struct Settings {
    program: PathBuf,
    runs: u64,
    seed: u64,
    shard: (u64, u64),
    threads: usize,
    keep: bool,
}

fn parse(args: &[String]) -> Result<Settings, String> {
    let mut settings =
        Settings { program: PathBuf::new(), runs: 500, seed: 1, shard: (1, 1), threads: 2, keep: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--keep" {
            settings.keep = true;
            continue;
        }
        let value = args.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| USAGE.to_owned());
        match arg.as_str() {
            "--attache" => {
                // The hub is started in the directory of its world.
                let program = std::path::absolute(value);
                settings.program = program.map_err(|error| format!("{value}: {error}"))?;
            }
            "--runs" => settings.runs = number()?,
            "--seed" => settings.seed = number()?,
            "--threads" => settings.threads = number()?.clamp(1, 64) as usize,
            "--shard" => {
                let (part, of) = value.split_once('/').ok_or(USAGE)?;
                let part = part.parse().map_err(|_| USAGE)?;
                let of = of.parse().map_err(|_| USAGE)?;
                if part == 0 || part > of {
                    return Err(USAGE.to_owned());
                }
                settings.shard = (part, of);
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    match settings.program.as_os_str().is_empty() {
        true => Err(USAGE.to_owned()),
        false => Ok(settings),
    }
}

/// Plays the worlds of a shard.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let settings = parse(args)?;
    let (part, of) = settings.shard;
    let worlds: Vec<u64> =
        (0..settings.runs.div_ceil(KILLS)).filter(|world| world % of == part - 1).collect();
    let (start, next) = (Instant::now(), AtomicU64::new(0));
    let (failures, has_failed) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let total = Mutex::new((Kills::default(), Counts::default()));
    std::thread::scope(|scope| {
        for _ in 0..settings.threads {
            scope.spawn(|| {
                while let Some(world) = worlds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    if has_failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let seed = settings.seed + world;
                    let kills = KILLS.min(settings.runs - world * KILLS);
                    match play(&settings, seed, kills) {
                        Ok((kills, counts)) => {
                            if let Ok(mut total) = total.lock() {
                                add(&mut total, kills, counts);
                            }
                        }
                        Err(error) => {
                            has_failed.store(true, Ordering::Relaxed);
                            if let Ok(mut failures) = failures.lock() {
                                failures.push(format!("seed {seed}: {error}"));
                            }
                        }
                    }
                }
            });
        }
    });
    let (kills, counts) = total.into_inner().unwrap_or_default();
    println!(
        "{} kills (hub {}, clients {}, agents {}) in {} s: {} prompts, {} of them interrupted, {} questions, {} messages seen",
        kills.hub + kills.client + kills.agent,
        kills.hub,
        kills.client,
        kills.agent,
        start.elapsed().as_secs(),
        counts.prompts,
        counts.interrupted,
        counts.questions,
        counts.messages,
    );
    let failures = failures.into_inner().unwrap_or_default();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

fn add(total: &mut (Kills, Counts), kills: Kills, counts: Counts) {
    let (all, sum) = total;
    all.hub += kills.hub;
    all.client += kills.client;
    all.agent += kills.agent;
    sum.prompts += counts.prompts;
    sum.interrupted += counts.interrupted;
    sum.questions += counts.questions;
    sum.messages += counts.messages;
}

fn play(settings: &Settings, seed: u64, kills: u64) -> Result<(Kills, Counts), String> {
    let directory = std::env::temp_dir().join(format!("attache-kills-{}-{seed}", std::process::id()));
    attache_conn::private::create_directory(&directory).map_err(|error| error.to_string())?;
    let played = World::play(&directory, &settings.program, seed, kills);
    match &played {
        Err(error) if settings.keep => {
            return Err(format!("{error}\nits logs are in {}", display(&directory)));
        }
        _ => drop(std::fs::remove_dir_all(&directory)),
    }
    played
}

fn display(directory: &Path) -> String {
    directory.display().to_string()
}
