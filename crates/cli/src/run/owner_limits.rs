//! The limits of requests to the process of a session.
//!
//! Everything that reaches the session's socket runs with the rights of its owner, which may be
//! more than those of the process that connects: a command of an agent in a sandbox can open a
//! socket too. So an owner never does more than the command that started it could. A command that
//! wants more ends an idle owner and starts another one.

use attache_conn::process::guardians;

use super::permits::Permits;
use crate::error::{DetailCode, Failure};

/// The bounds of an owner.
pub(super) struct OwnerLimits {
    pub(super) permits: Permits,
    /// The guardians above this process: it was started by a command of an agent if there are any.
    guardians: Vec<u32>,
}

impl OwnerLimits {
    /// The bounds of this process, which was started with these permits.
    pub(super) fn new(permits: Permits) -> OwnerLimits {
        OwnerLimits { permits, guardians: guardians(std::process::id()).unwrap_or_default() }
    }

    /// Refuses a command that runs inside of an agent, unless this process runs there, too.
    ///
    /// The peer could be confined, and it could answer questions that are meant for a person.
    ///
    /// # Errors
    /// When it does, and when that cannot be found out.
    pub(super) fn check_peer(&self, pid: Option<u32>) -> Result<(), Failure> {
        let above = match pid {
            Some(pid) => guardians(pid),
            // Nothing is known of processes here.
            None if !cfg!(target_os = "linux") => Ok(Vec::new()),
            None => Err(std::io::Error::other("it has no process id here")),
        };
        match above {
            Ok(above) if above.iter().all(|guardian| self.guardians.contains(guardian)) => Ok(()),
            Ok(_) => {
                Err(Failure::runtime("a command of an agent cannot use a session that it has not started")
                    .detail(DetailCode::SessionNeedsRestart))
            }
            Err(error) => Err(Failure::runtime(format_args!("the command cannot be identified: {error}"))
                .detail(DetailCode::SessionNeedsRestart)),
        }
    }

    /// Refuses permits that allow more than those with which this process was started.
    ///
    /// # Errors
    /// The permission that exceeds them.
    pub(super) fn check_permits(&self, wanted: &Permits) -> Result<(), Failure> {
        // All members are named, so that a new one cannot be forgotten here. Limits of time and
        // money are the command's own.
        let Permits {
            mode,
            rules,
            answers,
            unanswered: _,
            timeout: _,
            max_turns: _,
            max_tokens: _,
            max_cost: _,
            retries: _,
        } = wanted;
        let own = &self.permits;
        let answered = |(name, value)| own.answers.as_ref().and_then(|own| own.get(name)) == Some(value);
        let exceeding = if mode.stricter(own.mode) != *mode {
            format!("the permission mode {}, it has {}", mode.name, own.mode.name)
        } else if *rules != own.rules {
            // Rules allow and deny: without comparing all they could match, none is known to be the
            // stricter.
            "another permission policy".to_owned()
        } else if !answers.iter().flatten().all(answered) {
            "other answers to forms".to_owned()
        } else {
            return Ok(());
        };
        Err(Failure::runtime(format_args!("the session's process was not started for {exceeding}"))
            .detail(DetailCode::SessionNeedsRestart))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use attache_host::policy::Mode;
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_exceeds_what_the_owner_was_started_with() {
        for (own_rank, own) in Mode::CLIENT.into_iter().enumerate() {
            let limits = OwnerLimits::new(Permits::of_mode(own));
            for (rank, wanted) in Mode::CLIENT.into_iter().enumerate() {
                assert_eq!(limits.check_permits(&Permits::of_mode(wanted)).is_ok(), rank <= own_rank);
            }
        }
    }

    #[test]
    fn other_rules_are_more_also_if_they_are_none() {
        let with =
            |rules: Option<&str>| Permits { rules: rules.map(str::to_owned), ..Permits::of_mode(Mode::ASK) };
        let own = OwnerLimits::new(with(Some(r#"{"autoDeny":[{"path":".env"}]}"#)));
        assert!(own.check_permits(&with(Some(r#"{"autoDeny":[{"path":".env"}]}"#))).is_ok());
        for rules in [None, Some(r#"{"autoApprove":[{"tool":"edit"}]}"#)] {
            let refused = own.check_permits(&with(rules)).unwrap_err();
            assert_eq!(refused.detail, Some(DetailCode::SessionNeedsRestart));
        }
    }

    #[test]
    fn answers_can_be_left_out_and_not_changed() {
        let with = |answers: serde_json::Value| Permits {
            answers: answers.as_object().cloned(),
            ..Permits::of_mode(Mode::ASK)
        };
        let own = OwnerLimits::new(with(json!({ "name": "x", "ok": true })));
        for fits in [json!(null), json!({}), json!({ "ok": true }), json!({ "name": "x", "ok": true })] {
            assert!(own.check_permits(&with(fits.clone())).is_ok(), "{fits}");
        }
        for other in [json!({ "ok": false }), json!({ "more": 1 })] {
            assert!(own.check_permits(&with(other.clone())).is_err(), "{other}");
        }
        assert!(
            OwnerLimits::new(Permits::of_mode(Mode::ASK))
                .check_permits(&with(json!({ "ok": true })))
                .is_err()
        );
    }

    #[test]
    fn a_process_beside_this_one_may_use_it() {
        let limits = OwnerLimits::new(Permits::of_mode(Mode::ASK));
        assert!(limits.check_peer(Some(std::process::id())).is_ok());
        assert!(!cfg!(target_os = "linux") || limits.check_peer(None).is_err());
    }
}
