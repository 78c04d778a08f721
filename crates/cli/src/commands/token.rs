//! `attache token`: the tokens of a server or a hub.

use std::path::PathBuf;

use attache_conn::private;
use attache_http::server::Tokens;
use attache_hub::Role;
use serde_json::json;

use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Format;

/// The file of the tokens, and its text.
fn read(cx: &Cx) -> Result<(PathBuf, String)> {
    let Some(file) = &cx.flags.serve.token_file else {
        return Err(Failure::usage("no file: --token-file FILE"));
    };
    let path = cx.cwd.join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((path, String::new())),
        Err(error) => Err(error).context(format!("the token file {}", path.display())),
    }
}

fn name(cx: &Cx) -> Result<&str> {
    cx.args.word(0).ok_or_else(|| Failure::usage("no name of a token"))
}

/// Makes a token and prints it.
pub(crate) fn new(cx: &Cx) -> Result<()> {
    let (path, text) = read(cx)?;
    let what = format!("the token file {}", path.display());
    let name = name(cx)?;
    if Tokens::parse(&text).context(&what)?.identities().any(|identity| identity.name() == name) {
        return Err(Failure::usage(format_args!("{what} has a token \"{name}\" already"))
            .hint(format!("attache token revoke {name} --token-file {}", path.display())));
    }
    let (token, entry) = Tokens::generate(name).context("a token")?;
    let mut line = entry.trim_end().to_owned();
    if let Some(role) = &cx.flags.token.role {
        let role: Role = role.parse().map_err(Failure::usage)?;
        line += &format!(" role={role}");
    }
    if let Some(tenant) = &cx.flags.token.tenant {
        if tenant.is_empty() || tenant.contains(char::is_whitespace) {
            return Err(Failure::usage("the name of a tenant is one word"));
        }
        line += &format!(" tenant={tenant}");
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    private::write(&path, format!("{text}{separator}{line}\n").as_bytes()).context(&what)?;
    match cx.output.format {
        Format::Json => cx.output.json(&json!({"name": name, "token": token})),
        _ => cx.output.line(&token),
    }
    Ok(())
}

/// Lists the tokens by name.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let (path, text) = read(cx)?;
    let tokens = Tokens::parse(&text).context(format!("the token file {}", path.display()))?;
    let described: Vec<_> = tokens
        .identities()
        .map(|identity| {
            let or = |key, default: &str| identity.attribute(key).unwrap_or(default).to_owned();
            (identity.name().to_owned(), or("role", "admin"), or("tenant", attache_hub::Identity::TENANT))
        })
        .collect();
    if cx.output.format == Format::Json {
        let rows: Vec<_> = described
            .iter()
            .map(|(name, role, tenant)| json!({"name": name, "role": role, "tenant": tenant}))
            .collect();
        cx.output.json(&json!({"tokens": rows}));
        return Ok(());
    }
    for (name, role, tenant) in described {
        cx.output.line(format_args!("{name}  {role}  {tenant}"));
    }
    Ok(())
}

/// Removes a token. Running servers close its connections.
pub(crate) fn revoke(cx: &Cx) -> Result<()> {
    let (path, text) = read(cx)?;
    let name = name(cx)?;
    let is_it = |line: &&str| line.split_whitespace().next() == Some(name);
    if !text.lines().any(|line| is_it(&line)) {
        return Err(Failure::usage(format_args!("{} has no token \"{name}\"", path.display())));
    }
    let kept: String = text.lines().filter(|line| !is_it(line)).map(|line| format!("{line}\n")).collect();
    private::write(&path, kept.as_bytes()).context(format!("the token file {}", path.display()))
}
