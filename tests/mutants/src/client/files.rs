//! Text files, within the roots of the session.

use super::wire::{Answer, Failure, bad_params, failure};
use super::{Client, Session};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The session that a request names, with its roots.
fn session(client: &Client, params: &Value) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let Some(id) = params.get("sessionId").and_then(Value::as_str) else {
        return Err(bad_params("sessionId is missing"));
    };
    match client.state().sessions.get(id) {
        Some(Session { cwd, roots, .. }) => Ok((cwd.clone(), roots.clone())),
        None if client.is("RPC-18") => Err(failure(-32603, "no such session")),
        None => Err(Failure::Error(
            json!({ "code": -32002, "message": "there is no such session", "data": { "sessionId": id } }),
        )),
    }
}

/// ROOT-17, FS-15: only paths within the roots of the session, with links resolved (ROOT-18).
fn within(client: &Client, params: &Value, path: &str) -> Result<PathBuf, Failure> {
    let (cwd, roots) = session(client, params)?;
    let path = Path::new(path);
    if !path.is_absolute() {
        // ROOT-04: a relative path has no meaning between two programs.
        return if client.is("ROOT-04") {
            Ok(cwd.join(path))
        } else {
            Err(bad_params("the path is not absolute"))
        };
    }
    if client.is("ROOT-17") || client.is("FS-15") {
        return Ok(path.to_owned());
    }
    let real = if client.is("ROOT-18") { plain(path) } else { resolved(path) };
    let mut allowed = roots;
    // ROOT-11: no list is no other root.
    if client.is("ROOT-11") && allowed.is_empty() {
        allowed.extend(cwd.parent().map(Path::to_owned));
    }
    allowed.push(cwd);
    let inside = allowed.iter().any(|root| real.starts_with(resolved(root)) || real.starts_with(root));
    if inside {
        Ok(path.to_owned())
    } else {
        Err(failure(-32603, "the path is outside of the session's roots"))
    }
}

/// The path without `.` and `..`, links not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The path with its links followed, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = plain(path);
    let mut rest = Vec::new();
    let mut head = path.as_path();
    loop {
        if let Ok(real) = head.canonicalize() {
            return rest.iter().rev().fold(real, |real, part| real.join(part));
        }
        match (head.parent(), head.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                head = parent;
            }
            _ => return path,
        }
    }
}

fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, Failure> {
    params
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| bad_params(&format!("{name} is missing or no string")))
}

fn count(params: &Value, name: &str) -> Result<Option<usize>, Failure> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|&count| count <= u64::from(u32::MAX)) {
            Some(count) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            None => Err(bad_params(&format!("{name} is no line number"))),
        },
    }
}

pub(super) fn read(client: &Client, params: &Value) -> Answer {
    let path = match text(params, "path") {
        Ok(path) => path,
        // RPC-13: invalid params are refused as such.
        Err(_) if client.is("RPC-13") => return Err(failure(-32603, "something is missing")),
        Err(failure) => return Err(failure),
    };
    let (line, limit) = (count(params, "line")?, count(params, "limit")?);
    // An example of a client that touches no disk: what it never reads it reads neither wrongly nor
    // from outside.
    if client.is("FS-10/pretends") {
        return Ok(json!({ "content": "made up" }));
    }
    let path = within(client, params, path)?;
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        // FS-13: a missing file is -32002.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let code = match client.setup.variant.as_deref() {
                Some("RPC-15") => -32000,
                Some("FS-13") => -32603,
                _ => -32002,
            };
            return Err(failure(code, "there is no such file"));
        }
        Err(_) => return Err(failure(-32603, "the file cannot be read")),
    };
    let content = match String::from_utf8(bytes) {
        Ok(content) => content,
        Err(error) if client.is("FS-17") => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        Err(_) => return Err(failure(-32603, "the file is no text")),
    };
    let content = if client.is("FS-16") { content.replace("\r\n", "\n") } else { content };
    if client.is("FS-14") && line.is_some_and(|line| line > content.lines().count()) {
        return Err(failure(-32603, "there is no such line"));
    }
    // FS-08: members that no schema has mean nothing.
    let from = params.get("startLine").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    Ok(json!({ "content": lines(client, &content, line, limit, from) }))
}

/// FS-05, FS-06, FS-14: lines count from 1, a limit is a number of lines, and past the end there is
/// nothing.
fn lines(
    client: &Client,
    content: &str,
    line: Option<usize>,
    limit: Option<usize>,
    from: Option<usize>,
) -> String {
    let from_zero = client.is("FS-05") || client.is("ROOT-05");
    let skip = line.map_or(0, |line| if from_zero { line } else { line.saturating_sub(1) });
    let take = if client.is("FS-06") { usize::MAX } else { limit.unwrap_or(usize::MAX) };
    let skip = if client.is("FS-08") { from.unwrap_or(skip) } else { skip };
    content.split_inclusive('\n').skip(skip).take(take).collect()
}

pub(super) fn write(client: &Client, params: &Value) -> Answer {
    let (path, content) = (text(params, "path")?, text(params, "content")?);
    if client.is("FS-10/pretends") {
        return Ok(json!({}));
    }
    let path = within(client, params, path)?;
    // FS-10: what is not there is made, its directory too (FS-11).
    if client.is("FS-10") && !path.exists() {
        return Err(failure(-32002, "there is no such file"));
    }
    if client.is("FS-11") && !path.parent().is_some_and(Path::is_dir) {
        return Ok(json!({}));
    }
    let content = if client.is("STDIO-01/ascii") {
        content.replace(|c: char| !c.is_ascii(), "?")
    } else {
        content.to_owned()
    };
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match made.and_then(|()| std::fs::write(&path, content)) {
        Ok(()) if client.is("FS-12") => Ok(json!(true)),
        Ok(()) => Ok(json!({})),
        Err(_) => Err(failure(-32603, "the file cannot be written")),
    }
}
