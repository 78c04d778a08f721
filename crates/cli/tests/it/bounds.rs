//! Numbers that no machine can take: every place where one can be said answers with the range, and
//! nothing breaks.

use std::fs;

use super::world::World;

const ECHO: &str = "on session/prompt\n  say fine\n  done end_turn\n";

/// Settings that are numbers, with one that fits and those that do not.
const NUMBERS: &[(&str, &str, &[&str])] = &[
    ("timeout", "3600", &["0", "-1", "31536001", "1e308", "inf", "nan"]),
    ("max_turns", "5", &["0", "-1", "1000000001", "9223372036854775807"]),
    ("max_tokens", "5", &["0", "1000000000000001", "9223372036854775807"]),
    ("max_cost", "0.5", &["0", "-0.1", "1e10", "inf", "nan"]),
    ("prompt_retries", "2", &["-1", "101", "9223372036854775807"]),
    ("ttl", "20", &["-1", "31536001", "1e308", "nan"]),
    ("queue_max_depth", "10000", &["0", "10001", "9223372036854775807", "-9223372036854775808"]),
    ("start_timeout", "60", &["0", "1e300", "inf"]),
    ("cancel_timeout", "10", &["0", "1e300", "-inf"]),
];

#[test]
fn settings_have_a_range() {
    for (name, fine, wrong) in NUMBERS {
        let world = World::new().agent(ECHO);
        world.settings(&format!("{name} = {fine}"));
        assert!(world.run(&["exec", "x"]).ok().contains("fine"), "{name}");
        for value in *wrong {
            let world = World::new().agent(ECHO);
            world.settings(&format!("{name} = {value}"));
            let run = world.run(&["exec", "x"]).code(2);
            assert!(
                run.stderr.contains(&format!("`{name}` is a")) && run.stderr.contains(" to "),
                "{name} = {value}: {run:?}"
            );
            // The same by hand.
            let world = World::new().agent(ECHO);
            let run = world.run(&["config", "set", "--", name, value]).code(2);
            assert!(run.stderr.contains(&format!("`{name}` is a")), "{name} = {value}: {run:?}");
        }
    }
}

#[test]
fn the_environment_and_flags_have_the_same_range() {
    for (name, _, wrong) in NUMBERS {
        for value in *wrong {
            let variable = format!("ATTACHE_{}", name.to_uppercase());
            let world = World::new().agent(ECHO).env(&variable, value);
            let run = world.run(&["exec", "x"]).code(2);
            assert!(run.stderr.contains(&variable) && run.stderr.contains(" to "), "{value}: {run:?}");
        }
    }
    let world = World::new().agent(ECHO);
    for flag in ["timeout", "max-turns", "max-tokens", "max-cost", "prompt-retries", "ttl"] {
        for value in ["1e308", "nan", "18446744073709551616", "-5"] {
            let run = world.run(&[&format!("--{flag}={value}"), "exec", "x"]).code(2);
            assert!(run.stderr.contains(&format!("--{flag}")), "{value}: {run:?}");
        }
    }
}

#[test]
fn a_project_cannot_break_a_session() {
    let world = World::new().agent(ECHO);
    world.run(&["sessions", "new"]).ok();
    world.write(".attache.toml", "queue_max_depth = 9223372036854775807\n");
    let run = world.run(&["prompt", "x"]).code(2);
    assert!(run.stderr.contains("from 1 to 10000"), "{run:?}");
    // One that appears while a session's process starts does not end that.
    fs::remove_file(world.dir.join(".attache.toml")).unwrap();
    assert!(world.run(&["prompt", "x"]).ok().contains("fine"));
}

#[test]
fn other_commands_take_no_impossible_time_either() {
    let world = World::new().agent(ECHO);
    let head = r#"{"attache":"recording","version":1,"started":"","command":["a"],"masked":false}"#;
    let line = |at: &str| format!(r#"{{"t":{at},"from":"client","text":"{{}}"}}"#);
    world.write("talk.jsonl", &format!("{head}\n{}\n", line("0")));
    for value in ["1e308", "nan", "inf", "-1", "0", "31536001", "1e-300"] {
        for args in [
            &["replay", "talk.jsonl", "--patience"][..],
            &["check", "agent", "--scenario", "version-1", "--deadline"],
        ] {
            let mut args = args.to_vec();
            let flag = format!("{}={value}", args.pop().unwrap());
            args.push(&flag);
            let run = world.run(&args).code(2);
            assert!(run.stderr.contains("number of seconds"), "{args:?}: {run:?}");
        }
    }
    for value in ["1e300", "1e18", "-1"] {
        world.write("far.jsonl", &format!("{head}\n{}\n{}\n", line("0"), line(value)));
        let run = world.run(&["replay", "--delays", "--as", "client", "far.jsonl", "--", "cat"]).code(2);
        assert!(run.stderr.contains("`t` is no time"), "{value}: {run:?}");
    }
    for value in ["0", "36526", "18446744073709551615", "-1", "nan"] {
        let run = world.run(&["sessions", "prune", &format!("--older-than={value}")]).code(2);
        assert!(run.stderr.contains("from 1 to"), "{value}: {run:?}");
    }
    let run = world.run(&["sessions", "prune", "--before", "9223372036854775807-01-01"]).code(2);
    assert!(run.stderr.contains("--before is a date"), "{run:?}");
}
