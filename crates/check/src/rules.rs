//! The rules of the protocol as data.
//!
//! `rules.jsonl` holds one rule per line:
//!
//! - `id`, `text`, `source`;
//! - `side`: A agent, C client, B both, T transport, P proxy;
//! - `level`, and `keyword`: whether the source uses the level's own word;
//! - `observable`: whether the peer can see that the rule is kept;
//! - `checked`: whether this crate judges the rule;
//! - `versions`: the versions of the protocol that the rule is for, `[1]` if absent;
//! - `why_v1`: why a rule is for version 1 only;
//! - `strictness`: why a MUST does not count for the verdict;
//! - `when`: the capability whose advertisement makes the rule binding, `agent.…` or `client.…`;
//! - `repeats`: rules whose failure at the same line says the same, so that this rule's is dropped
//!   there;
//! - `follows`: rules whose failure anywhere is the cause of this rule's;
//! - `why_not`, `why_not_agent`, `why_not_client`, `why_not_v2`, `why_not_agent_v2` and
//!   `why_not_client_v2`: why no conversation can show the rule. Such a rule is never exercised and
//!   is left out of the coverage.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

use crate::sources::{self, Sources};
use crate::{Role, Transport, Version};

/// How strong a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Level {
    /// MUST
    #[serde(rename = "MUST")]
    Must,
    /// MUST NOT
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// SHOULD
    #[serde(rename = "SHOULD")]
    Should,
    /// SHOULD NOT
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// MAY
    #[serde(rename = "MAY")]
    May,
    /// A recommendation: good peers follow it, but no source makes it normative.
    #[serde(rename = "REC")]
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
    /// MUST of JSON-RPC or of another document that ACP builds on, in a case of which ACP's own
    /// text does not speak.
    Strictness,
    /// SHOULD.
    Advisory,
    /// The rest: a failure is worth a look, no more.
    Informational,
}

impl Tier {
    /// All, the strictest first.
    pub const ALL: [Tier; 5] =
        [Tier::Mandatory, Tier::Capability, Tier::Strictness, Tier::Advisory, Tier::Informational];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Mandatory => "mandatory",
            Tier::Capability => "capability",
            Tier::Strictness => "strictness",
            Tier::Advisory => "advisory",
            Tier::Informational => "informational",
        }
    }

    /// The tier of that name.
    pub fn of(name: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.name() == name)
    }

    /// Whether a failure counts for the verdict.
    pub fn binds(self) -> bool {
        self <= Tier::Capability
    }
}

/// A rule of the protocol.
#[derive(Clone, Debug, Deserialize)]
pub struct Rule {
    /// The id: a section and a number of two digits.
    #[serde(deserialize_with = "leak")]
    pub id: &'static str,
    /// The roles that the rule binds. Empty for rules of transports and proxies.
    #[serde(rename = "side", deserialize_with = "roles")]
    pub roles: &'static [Role],
    /// How strong the rule is.
    pub level: Level,
    /// The rule itself, in one or two sentences.
    #[serde(deserialize_with = "leak")]
    pub text: &'static str,
    /// The document that the rule comes from.
    #[serde(deserialize_with = "leak")]
    pub source: &'static str,
    /// Whether the peer can see that the rule is kept.
    pub observable: bool,
    /// Whether the source uses the level's own word. If not, it states the rule as a fact, in lower
    /// case, or in its schema.
    pub keyword: bool,
    checked: bool,
    /// The versions of the protocol that the rule is for.
    #[serde(default = "first", deserialize_with = "versions")]
    pub versions: &'static [Version],
    /// The capability whose advertisement makes the rule binding: `agent.loadSession`,
    /// `client.terminal`.
    #[serde(default, deserialize_with = "leak_some")]
    pub when: Option<&'static str>,
    /// Rules about single cases of this one. A failure of this rule at a line where one of them
    /// fails says nothing new and is dropped.
    #[serde(default, deserialize_with = "leak_list")]
    pub repeats: &'static [&'static str],
    /// Rules that a peer which breaks this one for the same reason breaks in another scenario.
    /// Where one of them fails anywhere, failures of this rule are dropped.
    #[serde(default, deserialize_with = "leak_list")]
    pub follows: &'static [&'static str],
    /// Why the rule does not count for the verdict although its level is MUST.
    #[serde(default, deserialize_with = "leak_some")]
    pub strictness: Option<&'static str>,
    /// Why the rule is for version 1 only.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_v1: Option<&'static str>,
    /// Why no conversation can show the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not: Option<&'static str>,
    /// Why no conversation can show that an agent keeps the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not_agent: Option<&'static str>,
    /// Why no conversation can show that a client keeps the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not_client: Option<&'static str>,
    /// Why no conversation of version 2 can show the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not_v2: Option<&'static str>,
    /// Why no conversation of version 2 can show that an agent keeps the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not_agent_v2: Option<&'static str>,
    /// Why no conversation of version 2 can show that a client keeps the rule.
    #[serde(default, deserialize_with = "leak_some")]
    pub why_not_client_v2: Option<&'static str>,
}

impl Rule {
    /// Whether the rule binds peers in `role`.
    pub fn binds(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Whether the rule is one of this version of the protocol.
    pub fn is_of(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }

    /// The name of the bound role, or `both`.
    pub fn side(&self) -> &'static str {
        match self.roles {
            [role] => role.name(),
            _ => "both",
        }
    }

    /// The sentences that the rule comes from.
    pub fn sources(&self) -> &'static Sources {
        sources::of(self.id)
    }

    /// The report group of the rule.
    pub fn tier(&self) -> Tier {
        match self.level {
            Level::Must | Level::MustNot if self.strictness.is_some() => Tier::Strictness,
            Level::Must | Level::MustNot if self.when.is_some() => Tier::Capability,
            Level::Must | Level::MustNot => Tier::Mandatory,
            Level::Should | Level::ShouldNot => Tier::Advisory,
            Level::May | Level::Rec => Tier::Informational,
        }
    }

    /// The level, marked if the source does not use that word: `MUST°`.
    pub fn marked_level(&self) -> String {
        let plain = self.keyword || self.level == Level::Rec;
        format!("{}{}", self.level.name(), if plain { "" } else { "°" })
    }

    /// Why no conversation of this version can show that a peer in `role` keeps the rule.
    pub fn why_not_of(&self, role: Role, version: Version) -> Option<&'static str> {
        let (of_role, of_role_v2) = match role {
            Role::Agent => (self.why_not_agent, self.why_not_agent_v2),
            Role::Client => (self.why_not_client, self.why_not_client_v2),
        };
        let of_v2 = self.why_not_v2.or(of_role_v2).filter(|_| version == Version::V2);
        self.why_not.or(of_role).or(of_v2)
    }

    /// The transport that the rule is about; `None` if it holds for all.
    pub fn transport(&self) -> Option<Transport> {
        Transport::of_section(self.section())
    }

    /// Whether the rule holds for a peer that is connected by one of these transports.
    pub fn is_over(&self, transports: &[Transport]) -> bool {
        self.transport().is_none_or(|own| transports.contains(&own))
    }

    /// The section of the id: `CANCEL`.
    pub fn section(&self) -> &'static str {
        self.id.split('-').next().unwrap_or_default()
    }
}

/// The rules that the checker judges, in the order of the file.
pub fn all() -> &'static [Rule] {
    &RULES
}

/// The checked rule with this id.
pub fn get(id: &str) -> Option<&'static Rule> {
    // Watchers look rules up for every message, hence the index.
    static INDEX: LazyLock<HashMap<&'static str, &'static Rule>> =
        LazyLock::new(|| RULES.iter().map(|rule| (rule.id, rule)).collect());
    INDEX.get(id).copied()
}

/// Whether the checked rule with this id is one of this version of the protocol.
pub fn is_of(id: &str, version: Version) -> bool {
    get(id).is_some_and(|rule| rule.is_of(version))
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    // A line that does not parse is left out; a test compares the counts.
    let rules =
        include_str!("../rules.jsonl").lines().filter_map(|line| serde_json::from_str::<Rule>(line).ok());
    rules.filter(|rule| rule.checked).collect()
});

/// The list lives as long as the program, so its texts are leaked.
fn leak<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    Ok(String::deserialize(from)?.leak())
}

fn leak_some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
    leak(from).map(Some)
}

fn leak_list<'de, D: Deserializer<'de>>(from: D) -> Result<&'static [&'static str], D::Error> {
    let list = Vec::<String>::deserialize(from)?;
    Ok(list.into_iter().map(|text| &*text.leak()).collect::<Vec<&'static str>>().leak())
}

fn first() -> &'static [Version] {
    &[Version::V1]
}

fn versions<'de, D: Deserializer<'de>>(from: D) -> Result<&'static [Version], D::Error> {
    Ok(match Vec::<u64>::deserialize(from)?.as_slice() {
        [1] => &[Version::V1],
        [2] => &[Version::V2],
        [1, 2] => &Version::ALL,
        other => return Err(serde::de::Error::custom(format!("unknown versions {other:?}"))),
    })
}

fn roles<'de, D: Deserializer<'de>>(from: D) -> Result<&'static [Role], D::Error> {
    Ok(match leak(from)? {
        "A" => &[Role::Agent],
        "C" => &[Role::Client],
        "B" => &[Role::Agent, Role::Client],
        "T" | "P" => &[],
        other => return Err(serde::de::Error::custom(format!("unknown side {other}"))),
    })
}
