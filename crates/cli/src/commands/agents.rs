//! `attache agents`

use std::path::PathBuf;

use attache_registry::on_path;
use serde_json::json;

use crate::agents::{BUILTIN, builtin};
use crate::config::Source;
use crate::cx::Cx;
use crate::error::Result;
use crate::output::Format;
use crate::versions;

/// An agent as it is listed.
struct Row {
    name: String,
    title: String,
    command: String,
    source: &'static str,
    /// Where its program is, if it is installed.
    found: Option<PathBuf>,
    install: &'static str,
    /// The newest version of the protocol that it speaks, if it is known.
    version: Option<u16>,
}

fn rows(cx: &Cx) -> Vec<Row> {
    let versions = versions::file(&cx.paths);
    let configured = cx.config.agents.iter().filter_map(|(name, setting)| {
        let spec = cx.config.resolve_agent(name).ok()?;
        Some(Row {
            name: name.clone(),
            title: builtin(name).map_or_else(String::new, |known| known.title.to_owned()),
            command: spec.identity(),
            source: if matches!(setting.source, Source::Registry(_)) { "registry" } else { "config" },
            found: spec.program().map_or_else(|| Some(PathBuf::new()), on_path),
            install: "",
            version: versions::known(&versions, &spec),
        })
    });
    let known = BUILTIN.iter().filter(|agent| !cx.config.agents.contains_key(agent.name)).map(|agent| {
        let spec = agent.spec();
        Row {
            name: agent.name.to_owned(),
            title: agent.title.to_owned(),
            command: spec.identity(),
            source: "builtin",
            found: spec.program().and_then(on_path),
            install: agent.install,
            version: versions::known(&versions, &spec),
        }
    });
    configured.chain(known).collect()
}

/// Lists the agents that are known here.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let default = cx.config.settings.default_agent.clone();
    let all = cx.flags.all;
    let rows = rows(cx);
    match cx.output.format {
        Format::Json => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| {
                    json!({
                        "name": row.name,
                        "title": row.title,
                        "command": row.command,
                        "source": row.source,
                        "installed": row.found.is_some(),
                        "path": row.found.as_ref().filter(|path| !path.as_os_str().is_empty()),
                        "default": row.name == default,
                        "protocolVersion": row.version,
                    })
                })
                .collect();
            cx.output.json(&json!(rows));
        }
        Format::Quiet => {
            for row in rows.iter().filter(|row| all || row.found.is_some()) {
                cx.output.row(&row.name);
            }
        }
        Format::Text => {
            let shown: Vec<&Row> = rows.iter().filter(|row| all || row.found.is_some()).collect();
            let name = shown.iter().map(|row| row.name.len()).max().unwrap_or_default();
            let title = shown.iter().map(|row| row.title.chars().count()).max().unwrap_or_default();
            for row in &shown {
                let mark = if row.name == default { '*' } else { ' ' };
                let state = match (&row.found, row.source) {
                    (Some(_), source) => match row.version {
                        Some(version) => format!("{source}, protocol {version}"),
                        None => source.to_owned(),
                    },
                    (None, _) if row.install.is_empty() => "not installed".to_owned(),
                    (None, _) => format!("not installed: {}", row.install),
                };
                let (n, t) = (&row.name, &row.title);
                cx.output.row(format_args!("{mark} {n:<name$}  {t:<title$}  {}  ({state})", row.command));
            }
            let hidden = rows.len() - shown.len();
            if hidden > 0 {
                cx.output
                    .line(format_args!("{hidden} more are known and not installed: attache agents --all"));
            }
        }
    }
    Ok(())
}
