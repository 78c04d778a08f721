//! `attache mcp-server` with the official MCP clients for TypeScript, one for each kind of
//! revision.

use std::path::Path;

use super::report::Report;
use super::shipped::{Checks, Run, play};
use super::{home, install};

const CHECKS: &[&str] =
    &["tools", "files", "commands", "cancel", "unknown_tool", "questions", "no_questions"];

/// Runs the client.
pub(super) fn run(cache: &Path, report: &mut Report) -> Result<(), String> {
    println!("build   ours: the program, for its MCP server");
    let program = install::program()?;
    let client = install::mcp_client(&home().join("mcp"), &cache.join("mcp"))?;
    play(
        cache,
        report,
        &Run {
            client: "ts (MCP)",
            agent: "mcp-server",
            command: &|server| [&*client, server].concat(),
            agent_command: &[program, "mcp-server".to_owned()],
            input: "",
            is_v1: false,
            judge: &|ended, _| {
                for failed in ended.stdout.iter().filter(|line| line.starts_with("not ok")) {
                    println!("        {failed}");
                }
                let held = |sdk: u8, name: &&'static str| {
                    (*name, ended.stdout.iter().any(|line| *line == format!("ok sdk{sdk} {name}")))
                };
                let mut checks: Checks = CHECKS.iter().map(|name| held(1, name)).collect();
                checks.extend(CHECKS.iter().map(|name| held(2, name)));
                checks.push(("the client ends well", ended.code == Some(0)));
                checks
            },
        },
    )
}
