//! The tools of MCP servers join those of the session.

use attache::Result;
use attache::wire::v1::NoticeSeverity;

use crate::tools::Cx;

/// Waits for the session's servers, once; a cancelled turn waits for nothing.
pub(super) async fn join(cx: &Cx) -> Result<()> {
    if cx.live.state().servers_joined {
        return Ok(());
    }
    let turn = cx.turn.turn();
    let found = turn.until_cancelled(cx.live.servers.found()).await?;
    {
        let mut state = cx.live.state();
        state.servers_joined = true;
        state.tools.add(found.tools);
    }
    for problem in found.problems {
        cx.live.voice.notify(turn, NoticeSeverity::Warning, &problem).await?;
    }
    Ok(())
}
