//! Prompts of clients that provide neither files nor terminals, as those of version 2: the agent
//! does the work itself.

use attache::agent::{BackgroundTool, TerminalExit, Turn};
use attache::wire::v1::ToolKind;
use attache::{Edit, Error, Result};

use super::options;

/// `edit PATH`, on the disk.
pub(crate) async fn edit(turn: Turn<'_>, path: &str) -> Result<()> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let old = std::fs::read_to_string(path)?;
    let new = old.replacen("two", "TWO", 1);
    let tool = turn.tool(format!("Edit {name}")).id(format!("edit-{name}")).kind(ToolKind::Edit);
    let tool = tool.location(path, Some(2)).edit(Edit::modify(path, old, new.clone())).start().await?;
    let question = turn.question(format!("Edit {name}?")).about(&tool).options(options());
    if !question.ask().await?.is_allowed() {
        tool.fail("not allowed").await?;
        return turn.say("denied").await;
    }
    tool.run().await?;
    std::fs::write(path, new)?;
    tool.complete([]).await?;
    turn.say("applied").await
}

/// `run`, in a terminal of the agent. The output comes in two pieces that split a character.
pub(crate) async fn run(turn: Turn<'_>, cwd: &std::path::Path) -> Result<()> {
    let tool = turn.tool("Run").id("run-1").kind(ToolKind::Execute).start().await?;
    tool.run().await?;
    let terminal = tool.terminal("greet").cwd(cwd).start().await?;
    terminal.write(b"h\xc3").await?;
    terminal.write(b"\xa4\n").await?;
    terminal.exit(TerminalExit::code(3)).await?;
    tool.update(tool.change().status(attache::agent::ToolStatus::Failed)).await
}

/// `replace`: a message that is replaced.
pub(crate) async fn replace(turn: Turn<'_>) -> Result<()> {
    let mut message = turn.message();
    message.say("draft").await?;
    message.replace("final").await
}

/// `background`: a call that outlives its turn.
pub(crate) async fn background(turn: Turn<'_>) -> Result<BackgroundTool> {
    let tool = turn.tool("Watch").id("bg-1").kind(ToolKind::Execute).start().await?;
    let work = tool.into_background()?;
    turn.say("started").await?;
    Ok(work)
}

/// `finish`: the end of that call.
pub(crate) async fn finish(turn: Turn<'_>, work: Option<BackgroundTool>) -> Result<()> {
    work.ok_or(Error::Unsupported("nothing to finish"))?.complete([]).await?;
    turn.say("finished").await
}
