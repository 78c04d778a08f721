//! Notices, compaction, subagents.

use super::{begin, ping, turn};
use crate::scenarios::scenario_table;
use crate::{Stage, Step};

scenario_table! { Agent in BOTH:
    "notice": "the agent sends a notice", ["NOTE-01", "NOTE-02"]
        => wish("Notice: tell me something as a notice of the session, not as a message.");
    "compact": "the agent makes room in its context, twice",
        ["NOTE-06", "NOTE-07", "NOTE-08", "NOTE-09", "NOTE-10"]
        => wish("Compact the context of this session.");
    "subagent": "the agent lets another one work", ["SUBA-01", "SUBA-02", "SUBA-05", "SUBA-06", "ROOT-04"]
        => wish("Delegate the question what time it is to a subagent.");
}

/// Watchers judge the reaction.
async fn wish(stage: &mut Stage, text: &str) -> Step {
    let session = begin(stage).await?;
    turn(stage, &session, text).await?.ok();
    ping(stage).await
}
