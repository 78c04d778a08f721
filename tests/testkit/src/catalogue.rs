//! The types of both versions as data: one line of `data/types.jsonl` (version 1) or
//! `data/types.v2.jsonl` per type.
//!
//! A line holds `type`, `kind` and, by kind, `fields`, `tag` with `variants`, or `values`. A field
//! says whether it is required and what a `null`, a malformed value or a malformed list entry does
//! to it. `other` lists the members that an unknown variant must have. `old` marks members that
//! only earlier drafts had, `drop` those of them that are read and forgotten. `stability` is
//! `unstable` or `draft`; a type without it is stable.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

/// The handling of an absent, `null` or malformed member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// The object is refused.
    Refused,
    /// As if the member were absent.
    Absent,
    /// The default takes its place.
    Default,
    /// It is kept unchanged.
    Kept,
    /// The entry is left out of its list.
    Skipped,
    /// Read as the value `other`.
    Other,
    /// Unspecified: any behaviour is correct.
    Free,
}

/// The type of a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A string.
    Text,
    /// A boolean.
    Bool,
    /// An integer between two bounds.
    Int(i128, i128),
    /// A number.
    Number,
    /// Any JSON.
    Any,
    /// Any JSON object.
    Object,
    /// A type of the catalogue.
    Named(String),
    /// A list.
    List(Box<Type>),
    /// An object whose members all have one type.
    Map(Box<Type>),
}

/// One member.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name on the wire.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether its absence refuses the object.
    pub required: bool,
    /// The meaning of `null`.
    pub null: Handling,
    /// The effect of a value of a wrong type.
    pub bad: Handling,
    /// The effect of one malformed entry of a list.
    pub item: Handling,
    /// The value that absence stands for.
    pub default: Option<Value>,
    /// Read and forgotten.
    pub drop: bool,
}

/// One variant of a union.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The tag's value; `None` for the variant of objects without a tag.
    pub tag: Option<String>,
    /// Its name where it has no tag.
    pub name: String,
    /// The type that holds its members.
    pub body: Option<Type>,
    /// Members of its own.
    pub fields: Vec<Field>,
}

/// The form of `_meta` on a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaRule {
    /// An object, or absent.
    Plain,
    /// `null` is kept.
    Patch,
    /// Not a member of the type.
    None,
}

/// How settled a type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Part of the stable protocol.
    Stable,
    /// Marked as unstable by the specification.
    Unstable,
    /// Removed since an earlier draft.
    Draft,
}

/// How a type is built.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Members only.
    Object,
    /// A union distinguished by a member.
    Tagged {
        /// The member.
        tag: String,
        /// The effect of an unknown tag.
        unknown: Handling,
        /// The variant of objects without a tag.
        untagged: Option<String>,
        /// The variants.
        variants: Vec<Variant>,
        /// Members that an unknown variant must have.
        other: Vec<Field>,
    },
    /// A union distinguished by its shape.
    Untagged(Vec<Variant>),
    /// A string out of a list.
    Enum {
        /// The list.
        values: Vec<String>,
        /// The effect of another string.
        unknown: Handling,
    },
    /// Anything that is a plain type.
    Plain(Type),
    /// A request id: null, an integer or a string.
    Id,
}

/// One type.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// How it is built.
    pub kind: Kind,
    /// Members (of unions: those all variants share).
    pub fields: Vec<Field>,
    /// Its `_meta`.
    pub meta: MetaRule,
    /// Whether `null` stands for the empty object.
    pub nullable: bool,
    /// Whether unknown members are kept.
    pub open: bool,
    /// How settled it is.
    pub stability: Stability,
}

/// All types.
#[derive(Debug)]
pub struct Catalogue {
    shapes: BTreeMap<String, Shape>,
    aliases: BTreeMap<String, String>,
}

impl Catalogue {
    /// The catalogue of version 1.
    pub fn v1() -> &'static Catalogue {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| Catalogue::parse(include_str!("../data/types.jsonl")))
    }

    /// The catalogue of version 2.
    pub fn v2() -> &'static Catalogue {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| Catalogue::parse(include_str!("../data/types.v2.jsonl")))
    }

    fn parse(text: &str) -> Catalogue {
        let mut catalogue = Catalogue { shapes: BTreeMap::new(), aliases: BTreeMap::new() };
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            let entry: Value = serde_json::from_str(line).expect("a line of the catalogue is JSON");
            let shape = shape(&entry);
            for alias in texts(&entry["aliases"]) {
                catalogue.aliases.insert(alias, shape.name.clone());
            }
            catalogue.shapes.insert(shape.name.clone(), shape);
        }
        catalogue
    }

    /// Every type, by name.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.shapes.values()
    }

    /// A type by its name of today or of an earlier draft.
    pub fn get(&self, name: &str) -> Option<&Shape> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.shapes.get(name)
    }

    /// A type that a member of the catalogue names.
    ///
    /// # Panics
    /// If the catalogue has no such type.
    pub fn named(&self, name: &str) -> &Shape {
        self.get(name).expect("every type that the catalogue names is in it")
    }
}

fn shape(entry: &Value) -> Shape {
    let kind = match entry["kind"].as_str() {
        Some("object") => Kind::Object,
        Some("tagged") => Kind::Tagged {
            tag: text(&entry["tag"]),
            unknown: handling(&entry["unknown"]),
            untagged: entry["untagged"].as_str().filter(|name| *name != "bad").map(str::to_owned),
            variants: variants(entry),
            other: listed(&entry["other"]),
        },
        Some("untagged") => Kind::Untagged(variants(entry)),
        Some("enum") => Kind::Enum { values: texts(&entry["values"]), unknown: handling(&entry["unknown"]) },
        Some("id") => Kind::Id,
        Some(plain) => Kind::Plain(ty(plain)),
        None => Kind::Plain(Type::Any),
    };
    let meta = match entry["meta"].as_str() {
        Some("plain") => MetaRule::Plain,
        Some("patch") => MetaRule::Patch,
        _ => MetaRule::None,
    };
    Shape {
        name: text(&entry["type"]),
        kind,
        fields: fields(entry),
        meta,
        nullable: entry["nullable"] == true,
        open: entry["open"] == true,
        stability: match entry["stability"].as_str() {
            Some("unstable") => Stability::Unstable,
            Some("draft") => Stability::Draft,
            _ => Stability::Stable,
        },
    }
}

fn variants(entry: &Value) -> Vec<Variant> {
    let variant = |variant: &Value| Variant {
        tag: variant["tag"].as_str().map(str::to_owned),
        name: text(&variant["name"]),
        body: variant["is"].as_str().map(ty),
        fields: fields(variant),
    };
    entry["variants"].as_array().map(|list| list.iter().map(variant).collect()).unwrap_or_default()
}

fn fields(entry: &Value) -> Vec<Field> {
    listed(&entry["fields"])
}

fn listed(fields: &Value) -> Vec<Field> {
    let field = |field: &Value| {
        let required = field["req"] == true;
        let ty = ty(&text(&field["ty"]));
        // An unspecified required member must have its type; lists for display may be read
        // leniently.
        let settled = |key: &str| match handling(&field[key]) {
            Handling::Free if required && !matches!(ty, Type::List(_)) => Handling::Refused,
            handling => handling,
        };
        Field {
            name: text(&field["name"]),
            required,
            null: settled("null"),
            bad: settled("bad"),
            item: handling(&field["item"]),
            default: field.get("default").cloned(),
            drop: field["drop"] == true,
            ty,
        }
    };
    fields.as_array().map(|list| list.iter().map(field).collect()).unwrap_or_default()
}

fn handling(value: &Value) -> Handling {
    match value.as_str() {
        Some("bad") => Handling::Refused,
        Some("absent") => Handling::Absent,
        Some("default") => Handling::Default,
        Some("keep") => Handling::Kept,
        Some("skip") => Handling::Skipped,
        Some("other") => Handling::Other,
        _ => Handling::Free,
    }
}

fn ty(name: &str) -> Type {
    if let Some(item) = name.strip_suffix("[]") {
        return Type::List(Box::new(ty(item)));
    }
    if let Some(item) = name.strip_prefix("map<").and_then(|rest| rest.strip_suffix('>')) {
        return Type::Map(Box::new(ty(item)));
    }
    match name {
        "string" => Type::Text,
        "boolean" => Type::Bool,
        "number" => Type::Number,
        "any" => Type::Any,
        "object" => Type::Object,
        "int32" => Type::Int(i32::MIN.into(), i32::MAX.into()),
        "int64" => Type::Int(i64::MIN.into(), i64::MAX.into()),
        "uint16" => Type::Int(0, u16::MAX.into()),
        "uint32" => Type::Int(0, u32::MAX.into()),
        // A number that counts from 1.
        "uint32+" => Type::Int(1, u32::MAX.into()),
        "uint64" => Type::Int(0, u64::MAX.into()),
        named => Type::Named(named.to_owned()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
}
