//! `-c` and `-r`: finds the conversation to resume, before settings are read, because its directory
//! decides about them.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::SystemTime;

use attache_term::device;
use attache_term::dialog::{DialogKeys, pick};
use attache_term::picker::{Picker, Row};

use crate::args::{CommandLine, Flags};
use crate::error::{Context as _, Failure, Result};
use crate::paths::Paths;
use crate::runtime::runtime;
use crate::session_store::{Record, Store, is_meant, short};
use crate::time::ago;

/// Finds the conversation that `--continue` or `--resume` names and changes the command line to it:
/// agent, directory and record. Returns `false` if the user left the list.
pub(crate) fn choose(paths: &Paths, line: &mut CommandLine, flags: &mut Flags) -> Result<bool> {
    if !flags.prompt.resume && !flags.prompt.continue_last {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let failure = Failure::usage("only the chat can resume a conversation, and this is not a terminal");
        return Err(failure.hint("in scripts: attache prompt -s NAME"));
    }
    let mut records = Store::new(paths).all()?;
    records.retain(|record| record.turns > 0);
    if let Some(agent) = &line.agent {
        records.retain(|record| record.agent.as_ref() == Some(agent));
    }
    let record = if flags.prompt.resume && !line.words.is_empty() {
        named(&records, &line.words.remove(0))?
    } else if flags.prompt.resume {
        if records.is_empty() {
            return Err(Failure::runtime("no conversations yet").hint("start one: attache"));
        }
        match runtime(choose_record(&records))? {
            Some(record) => record,
            None => return Ok(false),
        }
    } else {
        let here = Path::new(flags.cwd.as_deref().unwrap_or(".")).canonicalize().context("the directory")?;
        let last = records.into_iter().find(|record| record.cwd == here);
        last.ok_or_else(|| {
            Failure::runtime("no conversation in this directory yet")
                .hint("start one: attache")
                .hint("those of all directories: attache --resume")
        })?
    };
    match &record.agent {
        Some(agent) => (line.agent, flags.agent) = (Some(agent.clone()), None),
        None => (line.agent, flags.agent) = (None, Some(record.agent_command.clone())),
    }
    flags.cwd = Some(record.cwd.to_string_lossy().into_owned());
    line.record = Some(record.id);
    Ok(true)
}

/// Finds a record by its id, or by the beginning of it that lists show.
fn named(records: &[Record], wanted: &str) -> Result<Record> {
    let exact = records.iter().find(|record| record.id == wanted || record.name.as_deref() == Some(wanted));
    let mut meant = records.iter().filter(|record| is_meant(&record.id, wanted));
    match (exact, meant.next(), meant.next()) {
        (Some(record), ..) | (None, Some(record), None) => Ok(record.clone()),
        (None, Some(_), Some(_)) => {
            Err(Failure::usage(format_args!("several conversations begin with `{wanted}`")))
        }
        (None, None, _) => Err(Failure::runtime(format_args!("there is no conversation `{wanted}`"))
            .hint("attache --resume lists them")),
    }
}

/// The row of a conversation.
pub(super) fn row(record: &Record, now: SystemTime) -> Row<Record> {
    let title = record.title.as_deref().or(record.name.as_deref()).unwrap_or("(no title)");
    let agent = record.agent.as_deref().unwrap_or(&record.agent_command);
    Row {
        label: title.to_owned(),
        about: format!(
            "{}  {agent}  {}  {}",
            ago(&record.last_used_at, now),
            crate::paths::below_home(&record.cwd),
            short(&record.id)
        ),
        current: false,
        value: record.clone(),
    }
}

/// Lets the user choose. `None` if they leave.
async fn choose_record(records: &[Record]) -> Result<Option<Record>> {
    let now = SystemTime::now();
    let mut picker = Picker::new("Resume", records.iter().map(|record| row(record, now)).collect());
    pick(&mut DialogKeys::default(), &[], &mut picker, device::look()).await.context("the terminal")
}
