//! The rules of version 1 as data.
//!
//! `rules.jsonl` holds one rule per line: `id`, `side` (A, C, B), `level`, `text`, `source`, `observable`, `keyword` (whether the source uses the level's own
//! word), and where they apply `when` (the capability whose advertisement makes the rule binding, `agent.…` or `client.…`) and `why_not`
//! or `why_not_client` (why no conversation over stdio can show the rule; such a rule is never exercised and is left out of the coverage).

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::Party;

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Agents.
    Agent,
    /// Clients.
    Client,
    /// Whoever it is.
    Both,
}

impl Side {
    /// Whether the rule binds `party`.
    pub fn binds(self, party: Party) -> bool {
        match self {
            Side::Agent => party == Party::Agent,
            Side::Client => party == Party::Client,
            Side::Both => true,
        }
    }

    /// `agent`, `client` or `both`.
    pub fn name(self) -> &'static str {
        match self {
            Side::Agent => "agent",
            Side::Client => "client",
            Side::Both => "both",
        }
    }
}

/// How strong a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// MUST
    Must,
    /// MUST NOT
    MustNot,
    /// SHOULD
    Should,
    /// SHOULD NOT
    ShouldNot,
    /// MAY
    May,
    /// No source makes it normative; good peers do it.
    Rec,
}

impl Level {
    /// The word in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::MustNot => "MUST NOT",
            Level::Should => "SHOULD",
            Level::ShouldNot => "SHOULD NOT",
            Level::May => "MAY",
            Level::Rec => "REC",
        }
    }

    /// MUST or MUST NOT.
    pub fn is_must(self) -> bool {
        matches!(self, Level::Must | Level::MustNot)
    }
}

/// How a report groups rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// MUST, whatever was advertised.
    Mandatory,
    /// MUST, once the capability is advertised.
    Capability,
    /// SHOULD.
    Advisory,
    /// The rest: a failure is worth a look, no more.
    Informational,
}

impl Tier {
    /// All, the strictest first.
    pub const ALL: [Tier; 4] = [Tier::Mandatory, Tier::Capability, Tier::Advisory, Tier::Informational];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Mandatory => "mandatory",
            Tier::Capability => "capability",
            Tier::Advisory => "advisory",
            Tier::Informational => "informational",
        }
    }

    /// The tier of that name.
    pub fn of(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.name() == name)
    }

    /// Whether a failure makes a peer not conformant.
    pub fn binds(self) -> bool {
        self <= Tier::Capability
    }
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id, `CANCEL-05`.
    pub id: &'static str,
    /// Whom it binds.
    pub side: Side,
    /// How strong it is.
    pub level: Level,
    /// What it says, in one sentence or two.
    pub text: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether a peer can see if it is kept.
    pub observable: bool,
    /// Whether the source uses the word of the level. If not, it says the same as a plain fact, in lower case, or by its schema.
    pub keyword: bool,
    /// The capability whose advertisement makes it binding: `agent.loadSession`, `client.terminal`.
    pub when: Option<&'static str>,
    /// Why no conversation over stdio can show it.
    pub why_not: Option<&'static str>,
    /// Why no conversation over stdio can show it of a client, where it can of an agent.
    pub why_not_client: Option<&'static str>,
}

impl Rule {
    /// The group of the report that it belongs to.
    pub fn tier(&self) -> Tier {
        match self.level {
            Level::Must | Level::MustNot if self.when.is_some() => Tier::Capability,
            Level::Must | Level::MustNot => Tier::Mandatory,
            Level::Should | Level::ShouldNot => Tier::Advisory,
            Level::May | Level::Rec => Tier::Informational,
        }
    }

    /// The word of its level, with a mark where the source does not use it: `MUST°`.
    pub fn level_shown(&self) -> String {
        let plain = self.keyword || self.level == Level::Rec;
        format!("{}{}", self.level.name(), if plain { "" } else { "°" })
    }

    /// Why no conversation over stdio can show it of `party`.
    pub fn why_not_of(&self, party: Party) -> Option<&'static str> {
        self.why_not.or(self.why_not_client.filter(|_| party == Party::Client))
    }

    /// The letters of its id: `CANCEL`.
    pub fn family(&self) -> &'static str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// Every rule, in the order of the list.
pub fn all() -> &'static [Rule] {
    &RULES
}

/// The rule of this id.
pub fn get(id: &str) -> Option<&'static Rule> {
    // Watchers ask for every message, so there is an index.
    static INDEX: LazyLock<HashMap<&'static str, &'static Rule>> =
        LazyLock::new(|| RULES.iter().map(|rule| (rule.id, rule)).collect());
    INDEX.get(id).copied()
}

static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| include_str!("../rules.jsonl").split('\n').filter_map(read).collect());

/// A line that is no rule is left out; a test counts them.
fn read(line: &'static str) -> Option<Rule> {
    // The list lives as long as the program, so its texts may too.
    let entry: &'static Value = Box::leak(Box::new(serde_json::from_str(line).ok()?));
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    Some(Rule {
        id: text("id")?,
        side: match text("side")? {
            "A" => Side::Agent,
            "C" => Side::Client,
            "B" => Side::Both,
            _ => return None,
        },
        level: match text("level")? {
            "MUST" => Level::Must,
            "MUST NOT" => Level::MustNot,
            "SHOULD" => Level::Should,
            "SHOULD NOT" => Level::ShouldNot,
            "MAY" => Level::May,
            "REC" => Level::Rec,
            _ => return None,
        },
        text: text("text")?,
        source: text("source")?,
        observable: entry.get("observable")?.as_bool()?,
        keyword: entry.get("keyword")?.as_bool()?,
        when: text("when"),
        why_not: text("why_not"),
        why_not_client: text("why_not_client"),
    })
}
