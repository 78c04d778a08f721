//! Text files that the client provides.

use serde_json::{Value, json};

use super::steps::{Turn, describe_answer, end, everything, open_turn, open_turn_with};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const READ: &[Need] = &[Need::Client("fs.readTextFile")];
const WRITE: &[Need] = &[Need::Client("fs.writeTextFile")];
const BOTH: &[Need] = &[Need::Client("fs.readTextFile"), Need::Client("fs.writeTextFile")];

scenario_table! { Client:
    "read-lines": "lines count from 1", ["FS-05", "FS-06", "FS-14", "ROOT-05"] needs READ => read_lines;
    "read-odd": "missing files, files that are no text, line ends",
        ["FS-08", "FS-13", "FS-16", "FS-17"] needs READ => read_odd;
    "write-new": "writing makes the file, and its directory",
        ["FS-10", "FS-11", "FS-12"] needs WRITE => write_new;
    "write-read": "what is written is what is read", ["STDIO-01"] needs BOTH => write_read;
    "relative-path": "a relative path is refused", ["ROOT-04"] needs READ => relative_path;
    "not-provided": "files and terminals that are not advertised are not available",
        ["FS-03", "TERM-03"] needs [Need::Act("bare")] => not_provided;
}

async fn read(stage: &mut Stage, turn: &Turn, name: &str, more: Value) -> Result<Result<String, i64>, Stop> {
    let mut params = turn.with(more);
    params["path"] = json!(stage.cwd().join(name));
    let answer = stage.call("fs/read_text_file", params).await?;
    Ok(match answer {
        Ok(result) => Ok(result["content"].as_str().unwrap_or_default().to_owned()),
        Err(error) => Err(error.code),
    })
}

/// A client may end the last line of a part or not.
fn is_text(found: &Result<String, i64>, wanted: &str) -> bool {
    found.as_ref().is_ok_and(|found| found.trim_end_matches('\n') == wanted.trim_end_matches('\n'))
}

fn put(stage: &Stage, name: &str, bytes: &[u8]) -> Step {
    std::fs::write(stage.cwd().join(name), bytes)
        .map_err(|error| Stop::Broken(format!("cannot write a file for the client to read: {error}")))
}

/// Ends scenarios about reading if the client invents its files, which shows nothing about real
/// ones.
pub(super) async fn reads_the_disk(stage: &mut Stage, turn: &Turn) -> Step {
    put(stage, "control.txt", b"control\n")?;
    match read(stage, turn, "control.txt", json!({})).await? {
        Ok(text) if text.trim_end() != "control" => {
            Err(Stop::NotExercised("what the client reads is not what is on disk".to_owned()))
        }
        _ => Ok(()),
    }
}

async fn read_lines(stage: &mut Stage) -> Step {
    put(stage, "lines.txt", b"one\ntwo\nthree\nfour\nfive\n")?;
    let turn = open_turn(stage).await?;
    reads_the_disk(stage, &turn).await?;
    let first = read(stage, &turn, "lines.txt", json!({ "line": 1 })).await?;
    let whole = is_text(&first, "one\ntwo\nthree\nfour\nfive\n");
    let why = format!("from line 1 on the file reads {first}", first = describe_answer(&first));
    stage.check("FS-05", whole, why.clone());
    stage.check("ROOT-05", whole, why);
    if whole {
        // The limit is judged where counting from 1 works.
        let part = read(stage, &turn, "lines.txt", json!({ "line": 3, "limit": 2 })).await?;
        stage.check(
            "FS-06",
            is_text(&part, "three\nfour\n"),
            format!("two lines from line 3 on read {part}", part = describe_answer(&part)),
        );
    }
    let beyond = read(stage, &turn, "lines.txt", json!({ "line": 99 })).await?;
    let kept = beyond.as_ref().is_ok_and(String::is_empty);
    stage.check(
        "FS-14",
        kept,
        format!("a line past the end reads {beyond}", beyond = describe_answer(&beyond)),
    );
    let zero = read(stage, &turn, "lines.txt", json!({ "line": 0 })).await?;
    let kept = zero == Err(-32602) || is_text(&zero, "one\ntwo\nthree\nfour\nfive\n");
    stage.check("FS-14", kept, format!("line 0 reads {zero}", zero = describe_answer(&zero)));
    end(stage, &turn).await
}

async fn read_odd(stage: &mut Stage) -> Step {
    put(stage, "crlf.txt", b"one\r\ntwo")?;
    put(stage, "picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe")?;
    let turn = open_turn(stage).await?;
    let missing = read(stage, &turn, "nothing-here.txt", json!({})).await?;
    stage.check(
        "FS-13",
        missing == Err(-32002),
        format!("a missing file reads {missing}", missing = describe_answer(&missing)),
    );
    reads_the_disk(stage, &turn).await?;
    let crlf = read(stage, &turn, "crlf.txt", json!({})).await?;
    stage.check(
        "FS-16",
        crlf.as_deref() == Ok("one\r\ntwo"),
        format!("line ends were changed: {crlf}", crlf = describe_answer(&crlf)),
    );
    let picture = read(stage, &turn, "picture.png", json!({})).await?;
    stage.check(
        "FS-17",
        picture.is_err(),
        format!("a picture reads {picture}", picture = describe_answer(&picture)),
    );
    let ranged = read(stage, &turn, "crlf.txt", json!({ "startLine": 2, "endLine": 2 })).await?;
    stage.check(
        "FS-08",
        ranged == crlf || ranged.is_err(),
        format!("members that no schema has made it {ranged}", ranged = describe_answer(&ranged)),
    );
    end(stage, &turn).await
}

async fn write_new(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let path = stage.cwd().join("fresh.txt");
    let written = stage.write_file(&turn.session, &path.to_string_lossy(), "new\n").await?;
    let there = std::fs::read_to_string(&path).is_ok_and(|text| text == "new\n");
    stage.check(
        "FS-10",
        written.is_ok() && there,
        format!("a new file was not made: {written}", written = describe_answer(&written)),
    );
    if let Ok(result) = &written {
        let fits = result.is_null() || result.is_object();
        stage.check("FS-12", fits, format!("writing was answered with {result}"));
    }
    let path = stage.cwd().join("deep/er/file.txt");
    let written = stage.write_file(&turn.session, &path.to_string_lossy(), "deep\n").await?;
    let kept = written.is_err() || path.is_file();
    stage.check(
        "FS-11",
        kept,
        "writing into a directory that is not there was answered as done and did nothing",
    );
    end(stage, &turn).await
}

async fn write_read(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    reads_the_disk(stage, &turn).await?;
    let text = "grüße, 世界, 😀, e\u{301}\n";
    let path = stage.cwd().join("letters.txt").to_string_lossy().into_owned();
    let written = stage.write_file(&turn.session, &path, text).await?;
    let found = read(stage, &turn, "letters.txt", json!({})).await?;
    if written.is_ok() && found.is_ok() {
        stage.check(
            "STDIO-01",
            is_text(&found, text),
            format!("{text:?} came back as {found}", found = describe_answer(&found)),
        );
    }
    end(stage, &turn).await
}

async fn relative_path(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let found = stage.read_file(&turn.session, "notes.txt").await?;
    stage.check("ROOT-04", found.is_err(), "a relative path was not refused");
    end(stage, &turn).await
}

async fn not_provided(stage: &mut Stage) -> Step {
    let turn = open_turn_with(stage, everything(), json!({})).await?;
    let path = stage.cwd().join("notes.txt");
    for (capability, method, params, rule) in [
        ("fs.readTextFile", "fs/read_text_file", json!({ "path": path }), "FS-03"),
        ("terminal", "terminal/create", json!({ "command": "pwd" }), "TERM-03"),
    ] {
        if stage.need(capability).is_ok() {
            continue;
        }
        let answer = stage.call(method, turn.with(params)).await?;
        let kept = answer.as_ref().is_err_and(|error| error.code == -32601);
        stage.check(
            rule,
            kept,
            format!(
                "{method}, which is not offered, was answered {answer}",
                answer = describe_answer(&answer)
            ),
        );
    }
    end(stage, &turn).await
}
