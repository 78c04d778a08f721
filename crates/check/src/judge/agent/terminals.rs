//! Release of terminals.

// TERM-05

use super::super::{EventLog, Findings, Message, Watcher};
use crate::Role;

pub(super) struct Terminals;

impl Watcher for Terminals {
    fn rules(&self) -> &'static [&'static str] {
        &["TERM-05"]
    }

    fn observe(&mut self, _: &EventLog, _: &Message, _: &mut Findings) {}

    /// A terminal whose command has ended serves no purpose once the turn is over.
    fn end(&mut self, log: &EventLog, _: bool, out: &mut Findings) {
        for (id, terminal) in &log.terminals {
            let working =
                log.sessions.get(&terminal.session).is_none_or(|session| !session.prompts.is_empty());
            match terminal.released {
                Some(at) => out.pass_at("TERM-05", Role::Agent, &[terminal.created, at]),
                None if (terminal.ended || terminal.killed) && !working => {
                    let why = format!(
                        "the command in terminal {id:?} has ended, its turn too, and it was not released"
                    );
                    out.fail_at("TERM-05", Role::Agent, &[terminal.created], why);
                }
                None => {}
            }
        }
    }
}
