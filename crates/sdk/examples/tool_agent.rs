//! An agent that uses a tool: it proposes a change to `notes.txt` in the session's directory, shows
//! it as a diff, asks for permission, and writes the file through the client if it provides files,
//! else directly.

use std::path::PathBuf;

use attache::agent::{AgentSession, OpenRequest, Turn, serve, usual_options};
use attache::model::{PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolKind};
use attache::{Edit, Link, Prompt, Result, StopReason};

struct NoteTaker {
    notes: PathBuf,
}

impl NoteTaker {
    async fn read(&self, turn: Turn<'_>) -> Result<Option<String>> {
        match turn.read_files() {
            // Through the client, which knows unsaved text.
            Some(files) => files.read_if_exists(&self.notes).await,
            None => match std::fs::read_to_string(&self.notes) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                read => Ok(Some(read?)),
            },
        }
    }

    async fn write(&self, turn: Turn<'_>, text: String) -> Result<()> {
        match turn.write_files() {
            Some(files) => files.write(&self.notes, text).await,
            None => Ok(std::fs::write(&self.notes, text)?),
        }
    }
}

impl AgentSession for NoteTaker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let plan = |status| vec![PlanEntry::new("Take the note", PlanEntryPriority::Medium, status)];
        turn.plan(plan(PlanEntryStatus::InProgress)).await?;

        let old = self.read(turn).await?;
        let new = format!("{}- {}\n", old.as_deref().unwrap_or(""), prompt.text());
        let tool = turn
            .tool("Add a line to notes.txt")
            .kind(ToolKind::Edit)
            .location(&self.notes, None)
            .edit(Edit::write(&self.notes, old, &new))
            .start()
            .await?;

        if !turn.ask(&tool, usual_options()).await?.is_allowed() {
            tool.fail("not allowed").await?;
            turn.say("I left your notes alone.").await?;
            return Ok(StopReason::EndTurn);
        }
        tool.run().await?;
        self.write(turn, new).await?;
        tool.complete([]).await?;
        turn.plan(plan(PlanEntryStatus::Completed)).await?;
        turn.say("Noted.").await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let open = |request: OpenRequest| async move { Ok(NoteTaker { notes: request.cwd.join("notes.txt") }) };
    serve(open, Link::stdio()).await
}
