//! RPC-15: codes mean what they mean.

use super::super::{Book, Findings, Kind, Said, Watcher};
use crate::Role;
use crate::schema::Method;

pub(super) struct Codes;

impl Watcher for Codes {
    fn rules(&self) -> &'static [&'static str] {
        &["RPC-15"]
    }

    fn see(&mut self, _: &Book, said: &Said<'_>, out: &mut Findings) {
        let Kind::Answer { to, outcome: Err(error), .. } = said.kind else { return };
        if said.from != Role::Agent {
            return;
        }
        let (Some(code), Some(asked)) = (error["code"].as_i64(), to) else { return };
        match code {
            // The request that is answered here was read, so it was JSON.
            -32700 => out.fail(
                "RPC-15",
                said,
                format!("{} is answered with the code of a parse error", asked.method),
            ),
            -32601 if Method::of(&asked.method).is_none() => out.pass("RPC-15", said),
            _ => {}
        }
    }
}
