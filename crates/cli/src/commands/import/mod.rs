//! `attache import`: imports agents from the settings of other programs.
//!
//! `read.rs` reads those files, `jsonc.rs` JSON with comments, `merge.rs` changes our file.
//! Existing entries stay unless `--force` is given; secrets go to the private file of credentials
//! and are never printed.

mod jsonc;
mod merge;
mod read;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attache_conn::private;
use attache_host::bounded::{FinalLink, read_text_bounded};
use attache_host::secrets::{Mask, is_secret_name};
use serde_json::{Value, json};

use crate::agents::{BUILTIN, join};
use crate::config::{PROJECT_FILE, check_setting, default_value, edit, to_json};
use crate::credentials;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Format;
use crate::paths::{home, replace};
use read::{Imported, ImportedAgent};

/// The changes to make.
#[derive(Default)]
struct Plan {
    /// The text of our file afterwards.
    text: String,
    credentials: credentials::Stored,
    /// The rows of the report.
    rows: Vec<Row>,
    notes: Vec<String>,
}

struct Row {
    what: &'static str,
    name: String,
    value: String,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Replaced,
    /// It is the same already.
    Same,
    /// Something else is there, and stays.
    Kept,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Replaced => "replaced",
            Change::Same => "same",
            Change::Kept => "kept",
        }
    }

    fn mark(self) -> char {
        match self {
            Change::Added => '+',
            Change::Replaced => '~',
            Change::Same => '=',
            Change::Kept => '!',
        }
    }
}

/// The largest file of settings that is read.
const LARGEST: usize = 16 << 20;

/// Imports settings.
pub(crate) fn import(cx: &Cx) -> Result<()> {
    let program = cx.args.word(0).unwrap_or_default();
    let project = cx.flags.project;
    if project && program != "acpx" {
        return Err(Failure::usage("--project is for acpx, which has settings in projects"));
    }
    let file = source(cx, program, project)?;
    // A project may put anything in the place of its settings.
    let text = read_text_bounded(&file, LARGEST, FinalLink::Follow).context(file.display())?;
    let settings =
        jsonc::parse(&text).map_err(|what| Failure::runtime(format_args!("{}: {what}", file.display())))?;
    let imported = match program {
        "acpx" => read::acpx(&settings),
        "jetbrains" => read::agent_servers(&settings, "the editor"),
        _ => read::agent_servers(&settings, "Zed"),
    };
    let target = if project { cx.cwd.join(PROJECT_FILE) } else { cx.config.user_file.clone() };
    let before = fs::read_to_string(&target).unwrap_or_default();
    let plan = plan(cx, program, imported, before.clone(), project)?;
    let dry = cx.flags.import.dry_run;
    let changes = plan.rows.iter().any(|row| matches!(row.change, Change::Added | Change::Replaced));
    if changes && !dry {
        apply(cx, &plan, &before, &target, project)?;
    }
    tell(cx, &plan, &file, &target, dry);
    Ok(())
}

/// The file of the other program.
fn source(cx: &Cx, program: &str, project: bool) -> Result<PathBuf> {
    if let Some(file) = &cx.flags.import.from {
        return Ok(cx.cwd.join(file));
    }
    let home = home();
    let places = match program {
        _ if project => vec![cx.cwd.join(".acpxrc.json")],
        "acpx" => vec![home.join(".acpx/config.json")],
        "jetbrains" => vec![home.join(".jetbrains/acp.json")],
        _ => {
            let config =
                std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
            let windows = std::env::var_os("APPDATA").map(PathBuf::from).filter(|_| cfg!(windows));
            let mut places: Vec<PathBuf> =
                config.into_iter().map(|dir| dir.join("zed/settings.json")).collect();
            places.extend(windows.map(|dir| dir.join("Zed/settings.json")));
            places.push(home.join(".config/zed/settings.json"));
            places.push(home.join(".var/app/dev.zed.Zed/config/zed/settings.json"));
            places
        }
    };
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return Ok(found.clone());
    }
    let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    Err(Failure::runtime(format_args!("no settings of {program} at {}", looked.join(", ")))
        .hint("provide the file: --from FILE"))
}

fn plan(cx: &Cx, program: &str, imported: Imported, text: String, project: bool) -> Result<Plan> {
    let stored = credentials::load(&cx.paths)?;
    let mut plan = Plan { text, credentials: stored, notes: imported.notes, ..Plan::default() };
    let there: toml::Table = plan
        .text
        .parse()
        .map_err(|_| Failure::usage("your settings file is not valid TOML; fix it first"))?;
    for (name, value) in imported.settings {
        plan.setting(cx, &there, name, value)?;
    }
    let mut sections = Vec::new();
    for agent in imported.agents {
        sections.extend(plan.agent(cx, &there, agent, project)?);
    }
    let servers = there.contains_key("mcp_servers");
    for server in imported.mcp_servers {
        let name = server.get("name").and_then(Value::as_str).unwrap_or("a server").to_owned();
        let change = if servers { Change::Kept } else { Change::Added };
        match merge::server_section(&server) {
            Some(section) => {
                sections.extend((!servers).then_some(section));
                plan.rows.push(Row { what: "MCP server", name, value: String::new(), change });
            }
            None => {
                plan.notes.push(format!("the MCP server `{name}` is skipped: it has no equivalent in TOML"))
            }
        }
    }
    if project && !imported.auth.is_empty() {
        plan.notes.push("credentials are not imported from a project".to_owned());
    } else {
        for (method, credential) in imported.auth {
            plan.credential(cx, method, credential);
        }
    }
    if !sections.is_empty() {
        plan.text = merge::append(&plan.text, &format!("Imported from {program}."), &sections);
    }
    Ok(plan)
}

impl Plan {
    fn setting(
        &mut self,
        cx: &Cx,
        there: &toml::Table,
        name: &'static str,
        value: toml::Value,
    ) -> Result<()> {
        if let Err(failure) = check_setting(name, &value) {
            self.notes.push(format!("skipped: {}", failure.message));
            return Ok(());
        }
        let force = cx.flags.import.force;
        let is_same = |there: &toml::Value| {
            to_float(there).map_or(*there == value, |there| Some(there) == to_float(&value))
        };
        let change = match there.get(name) {
            Some(there) if is_same(there) => Change::Same,
            Some(_) if force => Change::Replaced,
            Some(_) => Change::Kept,
            // A default need not be written.
            None if default_value(name).is_some_and(|value| is_same(&value)) => Change::Same,
            None => Change::Added,
        };
        let literal = to_json(&value).to_string();
        if matches!(change, Change::Added | Change::Replaced) {
            self.text = edit(&self.text, name, &literal)?;
            if name == "permissions" && value.as_str() == Some("approve-all") {
                self.notes.push(
                    "`permissions = \"approve-all\"` lets agents do everything without asking".to_owned(),
                );
            }
        }
        self.rows.push(Row { what: "setting", name: name.to_owned(), value: literal, change });
        Ok(())
    }

    /// The section to be written, if so.
    fn agent(
        &mut self,
        cx: &Cx,
        there: &toml::Table,
        agent: ImportedAgent,
        project: bool,
    ) -> Result<Option<String>> {
        let ImportedAgent { name, argv, env, mode, model } = agent;
        let line = join(argv.iter().map(String::as_str));
        let mut row = Row {
            what: "agent",
            name: name.clone(),
            value: Mask::new().text(&line).into_owned(),
            change: Change::Added,
        };
        let (secret, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
            env.into_iter().partition(|(name, _)| is_secret_name(name));
        let wanted = merge::agent_section(
            &name,
            &argv,
            &open,
            [("mode", mode.as_deref()), ("model", model.as_deref())],
        );
        let wanted_value = wanted.parse::<toml::Table>().ok().and_then(|table| entry(&table, &name).cloned());
        let builtin = BUILTIN.iter().find(|known| known.name == name);
        let known = builtin.is_some_and(|known| {
            let plain = open.is_empty() && mode.is_none() && model.is_none();
            plain && known.commands.iter().any(|command| *command == argv.as_slice())
        });
        row.change = match entry(there, &name) {
            Some(there) if same_entry(there, wanted_value.as_ref()) => Change::Same,
            Some(_) if cx.flags.import.force => {
                self.text = merge::without_agent(&self.text, &name)?;
                Change::Replaced
            }
            Some(_) => Change::Kept,
            None if known => Change::Same,
            None => Change::Added,
        };
        let change = row.change;
        self.rows.push(row);
        if change != Change::Kept {
            self.secrets(cx, &name, secret, project);
        }
        Ok(matches!(change, Change::Added | Change::Replaced).then_some(wanted))
    }

    /// Variables that hold secrets do not go into a file that may be shared.
    fn secrets(&mut self, cx: &Cx, agent: &str, secrets: BTreeMap<String, String>, project: bool) {
        if project && !secrets.is_empty() {
            let names: Vec<String> = secrets.into_keys().collect();
            self.notes.push(format!("{} of `{agent}` is not imported from a project", names.join(", ")));
            return;
        }
        for (name, value) in secrets {
            let kept = self.credentials.agents.entry(agent.to_owned()).or_default();
            let change = decide(kept.get(&name), &value, cx.flags.import.force);
            if matches!(change, Change::Added | Change::Replaced) {
                kept.insert(name.clone(), value);
            }
            self.rows.push(Row {
                what: "secret",
                name: format!("{agent}: {name}"),
                value: String::new(),
                change,
            });
        }
    }

    fn credential(&mut self, cx: &Cx, method: String, credential: String) {
        let change = decide(self.credentials.unassigned.get(&method), &credential, cx.flags.import.force);
        if matches!(change, Change::Added | Change::Replaced) {
            self.notes.push(format!(
                "the credential `{method}` names no agent; `attache auth login AGENT` assigns it to one"
            ));
            self.credentials.unassigned.insert(method.clone(), credential);
        }
        self.rows.push(Row { what: "secret", name: method, value: String::new(), change });
    }
}

fn decide(there: Option<&String>, value: &str, force: bool) -> Change {
    match there {
        Some(there) if there == value => Change::Same,
        Some(_) if force => Change::Replaced,
        Some(_) => Change::Kept,
        None => Change::Added,
    }
}

fn to_float(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn entry<'a>(table: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    table.get("agents")?.get(name)
}

/// Whether two entries start the same program in the same way, however they are written.
fn same_entry(there: &toml::Value, wanted: Option<&toml::Value>) -> bool {
    let spec = |value: &toml::Value| crate::agents::entry_spec("agent", value);
    wanted.is_some_and(
        |wanted| matches!((spec(there), spec(wanted)), (Ok(there), Ok(wanted)) if there == wanted),
    )
}

/// Writes the files. Secrets first: an agent without its secret is worse than a secret without its
/// agent.
fn apply(cx: &Cx, plan: &Plan, before: &str, target: &Path, project: bool) -> Result<()> {
    credentials::save(&cx.paths, &plan.credentials)?;
    if plan.text == before {
        return Ok(());
    }
    plan.text.parse::<toml::Table>().map_err(|error| {
        Failure::runtime(format_args!("the new settings would not be valid: {error}"))
            .hint("nothing was written")
    })?;
    let written = match fs::canonicalize(target) {
        _ if project => fs::write(target, &plan.text),
        // A link to the file stays one. Where it leads is the user's business.
        Ok(real) if real != target => private::replace(&real, plan.text.as_bytes()),
        _ => replace(target, plan.text.as_bytes()),
    };
    written.context(target.display())
}

fn tell(cx: &Cx, plan: &Plan, from: &Path, target: &Path, dry: bool) {
    match cx.output.format {
        Format::Json => {
            let rows: Vec<Value> = plan
                .rows
                .iter()
                .map(|row| json!({ "kind": row.what, "name": row.name, "value": row.value, "change": row.change.name() }))
                .collect();
            cx.output.json(&json!({
                "action": if dry { "import_dry_run" } else { "imported" },
                "from": from,
                "to": target,
                "changes": rows,
                "notes": plan.notes,
            }));
        }
        Format::Quiet => {
            for row in plan.rows.iter().filter(|row| matches!(row.change, Change::Added | Change::Replaced)) {
                cx.output.row(&row.name);
            }
        }
        Format::Text => {
            let verb = if dry { "would import" } else { "importing" };
            cx.output.line(format_args!("{verb} {} into {}", from.display(), target.display()));
            for row in &plan.rows {
                let value = if row.value.is_empty() { String::new() } else { format!(" = {}", row.value) };
                let why = match row.change {
                    Change::Same => "  (already set)",
                    Change::Kept => "  (kept yours; --force replaces it)",
                    _ if row.what == "secret" => "  (saved in a private file)",
                    _ => "",
                };
                cx.output.line(format_args!("{} {} {}{value}{why}", row.change.mark(), row.what, row.name));
            }
            if plan.rows.is_empty() {
                cx.output.line("nothing to import");
            }
            plan.notes.iter().for_each(|note| cx.output.row(format_args!("  {note}")));
        }
    }
}
