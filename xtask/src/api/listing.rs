//! From rustdoc's index of items to lines.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::types::{bounds, function, generic_params, path, type_name};

/// Returns one line for each public item, sorted.
pub(super) fn lines(krate: &Value) -> Vec<String> {
    let mut listing = Listing { krate, lines: BTreeSet::new(), seen: HashSet::new() };
    let root = id(&krate["root"]);
    let name = item(krate, &root)["name"].as_str().unwrap_or_default();
    listing.module(&root, name);
    listing.lines.into_iter().collect()
}

/// What users of a library can name of Attaché's inner crates.
#[derive(Default)]
pub(super) struct Exports {
    /// Types and modules that are re-exported, by the path of their definition.
    items: HashSet<String>,
    /// Crates that are re-exported, which makes all of their types nameable.
    pub(super) crates: BTreeSet<String>,
}

impl Exports {
    pub(super) fn of(krate: &Value) -> Exports {
        let mut exports = Exports::default();
        let items = krate["index"].as_object().into_iter().flatten();
        for import in items.map(|(_, item)| &item["inner"]["use"]).filter(|import| import.is_object()) {
            exports.items.extend(definition(krate, &id(&import["id"])));
            let source = import["source"].as_str().unwrap_or_default();
            exports.crates.extend((!source.contains("::")).then(|| source.to_owned()));
        }
        exports
    }

    /// Returns types of other inner crates that occur in the API of a library and are not among the
    /// exports.
    pub(super) fn missing(&self, krate: &Value) -> Vec<String> {
        let own = item(krate, &id(&krate["root"]))["name"].as_str().unwrap_or_default();
        let items = krate["index"].as_object().into_iter().flatten();
        let mut used = BTreeSet::new();
        for (_, item) in items.filter(|(_, item)| !is_hidden_impl(item)) {
            collect_ids(&item["inner"], &mut used);
        }
        let paths: BTreeSet<String> = used.iter().filter_map(|id| definition(krate, id)).collect();
        let is_hidden = |path: &String| {
            let krate = path.split("::").next().unwrap_or_default();
            let is_inner = krate.starts_with("attache_") && krate != own;
            is_inner && !self.crates.contains(krate) && !self.exports(path)
        };
        paths.into_iter().filter(is_hidden).collect()
    }

    /// Whether a type or a module around it is re-exported.
    fn exports(&self, path: &str) -> bool {
        self.items.contains(path)
            || path
                .match_indices("::")
                .any(|(at, _)| path.get(..at).is_some_and(|outer| self.items.contains(outer)))
    }
}

/// The path of the definition of an item.
fn definition(krate: &Value, id: &str) -> Option<String> {
    let path = krate["paths"][id]["path"].as_array()?;
    Some(path.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("::"))
}

/// Whether an item is an implementation that the compiler derives from a blanket or an auto trait.
fn is_hidden_impl(item: &Value) -> bool {
    let inner = &item["inner"]["impl"];
    inner["is_synthetic"] == true || !inner["blanket_impl"].is_null()
}

fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            // A path to an item has exactly these members.
            if let (Some(_), Some(target), Some(_)) = (map.get("path"), map.get("id"), map.get("args")) {
                ids.insert(id(target));
            }
            map.values().for_each(|value| collect_ids(value, ids));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_ids(value, ids)),
        _ => {}
    }
}

fn id(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn item<'a>(krate: &'a Value, id: &str) -> &'a Value {
    &krate["index"][id]
}

fn ids(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().filter(|entry| !entry.is_null()).map(id)
}

struct Listing<'a> {
    krate: &'a Value,
    lines: BTreeSet<String>,
    /// Modules that are being listed; re-exports can form cycles.
    seen: HashSet<String>,
}

impl Listing<'_> {
    fn line(&mut self, line: String) {
        self.lines.insert(line);
    }

    fn module(&mut self, module: &str, prefix: &str) {
        if !self.seen.insert(format!("{module} {prefix}")) {
            return;
        }
        for child in ids(&item(self.krate, module)["inner"]["module"]["items"]) {
            self.item(&child, prefix);
        }
    }

    fn item(&mut self, child: &str, prefix: &str) {
        let entry = item(self.krate, child);
        let Some((kind, inner)) = entry["inner"].as_object().and_then(|inner| inner.iter().next()) else {
            return;
        };
        let name = format!("{prefix}::{}", entry["name"].as_str().unwrap_or_default());
        if kind == "use" {
            return self.import(inner, prefix);
        }
        if entry["visibility"] != "public" {
            return;
        }
        let generics = generic_params(&inner["generics"]);
        match kind.as_str() {
            "module" => {
                self.line(format!("pub mod {name}"));
                self.module(child, &name);
            }
            "struct" => {
                self.line(format!("pub struct {name}{generics}{}", exhaustive(entry)));
                let kind = &inner["kind"];
                self.fields(ids(&kind["plain"]["fields"]).chain(ids(&kind["tuple"])), &name);
                self.impls(inner, &name);
            }
            "enum" => {
                self.line(format!("pub enum {name}{generics}{}", exhaustive(entry)));
                for variant in ids(&inner["variants"]) {
                    self.variant(&variant, &name);
                }
                self.impls(inner, &name);
            }
            "trait" => {
                self.line(format!("pub trait {name}{generics}{}", bounds(&inner["bounds"], ": ")));
                for member in ids(&inner["items"]) {
                    self.member(&member, &name, "");
                }
            }
            "function" => self.line(format!("pub {}", function(inner, &name))),
            "constant" => self.line(format!("pub const {name}: {}", type_name(&inner["type"]))),
            "static" => self.line(format!("pub static {name}: {}", type_name(&inner["type"]))),
            "type_alias" => self.line(format!("pub type {name}{generics} = {}", type_name(&inner["type"]))),
            "macro" => self.line(format!("pub macro {name}")),
            other => self.line(format!("pub {other} {name}")),
        }
    }

    /// Lists a re-export: a local item in full, a foreign one by its name.
    fn import(&mut self, import: &Value, prefix: &str) {
        let target = id(&import["id"]);
        let local = !item(self.krate, &target).is_null();
        match (import["is_glob"] == true, local) {
            (true, true) => self.module(&target, prefix),
            (false, true) => self.item(&target, prefix),
            _ => {
                let (name, source) = (&import["name"], &import["source"]);
                let (name, source) = (name.as_str().unwrap_or_default(), source.as_str().unwrap_or_default());
                self.line(format!("pub use {prefix}::{name} = {source}"));
            }
        }
    }

    fn fields(&mut self, fields: impl Iterator<Item = String>, name: &str) {
        for field in fields {
            let entry = item(self.krate, &field);
            if matches!(entry["visibility"].as_str(), Some("public" | "default")) {
                let ty = type_name(&entry["inner"]["struct_field"]);
                self.line(format!("pub {name}::{}: {ty}", entry["name"].as_str().unwrap_or_default()));
            }
        }
    }

    fn variant(&mut self, variant: &str, name: &str) {
        let entry = item(self.krate, variant);
        let name = format!("{name}::{}", entry["name"].as_str().unwrap_or_default());
        let kind = &entry["inner"]["variant"]["kind"];
        let types =
            ids(&kind["tuple"]).map(|field| type_name(&item(self.krate, &field)["inner"]["struct_field"]));
        let types: Vec<String> = types.collect();
        let payload = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
        self.line(format!("pub variant {name}{payload}"));
        self.fields(ids(&kind["struct"]["fields"]), &name);
    }

    fn impls(&mut self, inner: &Value, name: &str) {
        for block in ids(&inner["impls"]) {
            let entry = item(self.krate, &block);
            let derived = entry["inner"]["impl"]["trait"]["path"] == "StructuralPartialEq";
            if entry.is_null() || derived || is_hidden_impl(entry) {
                continue;
            }
            let block = &entry["inner"]["impl"];
            let generics = generic_params(&block["generics"]);
            if block["trait"].is_object() {
                let (of, target) = (path(&block["trait"]), type_name(&block["for"]));
                self.line(format!("impl{generics} {of} for {target} [{name}]"));
            } else {
                for member in ids(&block["items"]) {
                    self.member(&member, name, "pub ");
                }
            }
        }
    }

    fn member(&mut self, member: &str, name: &str, visibility: &str) {
        let entry = item(self.krate, member);
        if !visibility.is_empty() && entry["visibility"] != "public" {
            return;
        }
        let name = format!("{name}::{}", entry["name"].as_str().unwrap_or_default());
        let inner = &entry["inner"];
        let visibility = "pub ";
        if inner["function"].is_object() {
            self.line(format!("{visibility}{}", function(&inner["function"], &name)));
        } else if inner["assoc_const"].is_object() {
            self.line(format!("{visibility}const {name}: {}", type_name(&inner["assoc_const"]["type"])));
        } else if inner["assoc_type"].is_object() {
            self.line(format!("{visibility}type {name}{}", bounds(&inner["assoc_type"]["bounds"], ": ")));
        }
    }
}

/// Marks types to which fields or variants can be added.
fn exhaustive(entry: &Value) -> &'static str {
    let attributes = entry["attrs"].to_string();
    if attributes.contains("non_exhaustive") { " (non-exhaustive)" } else { "" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Exports;

    #[test]
    fn types_that_are_not_exported_are_found() {
        let used = |id: u32| json!({"inner": {"function": {"path": "T", "id": id, "args": null}}});
        let exported = |id: u32, source: &str| json!({"inner": {"use": {"id": id, "source": source}}});
        let path = |path: &[&str]| json!({ "path": path });
        let krate = json!({
            "root": 0,
            "index": {
                "0": {"name": "attache", "inner": {"module": {}}},
                "1": used(11), "2": used(12), "3": used(13), "4": used(14), "5": used(15), "6": used(16),
                "7": exported(11, "attache_conn::Link"),
                "8": exported(20, "attache_conn::process"),
                "9": exported(21, "attache_wire"),
            },
            "paths": {
                "11": path(&["attache_conn", "link", "Link"]),
                "12": path(&["attache_conn", "process", "Command"]),
                "13": path(&["attache_wire", "v1", "Plan"]),
                "14": path(&["attache_conn", "peer", "Peer"]),
                "15": path(&["std", "io", "Error"]),
                "16": path(&["attache", "agent", "Turn"]),
                "20": path(&["attache_conn", "process"]),
                "21": path(&["attache_wire"]),
            },
        });
        assert_eq!(Exports::of(&krate).missing(&krate), ["attache_conn::peer::Peer"]);
        // A crate that is exported whole may use its own types, and those that are exported beside
        // it.
        let whole = json!({
            "root": 0,
            "index": {"0": {"name": "attache_wire", "inner": {"module": {}}}, "1": used(1), "2": used(2), "3": used(3)},
            "paths": {
                "1": path(&["attache_wire", "v1", "Plan"]),
                "2": path(&["attache_conn", "link", "Link"]),
                "3": path(&["attache_rpc", "frame", "Frame"]),
            },
        });
        assert_eq!(Exports::of(&krate).missing(&whole), ["attache_rpc::frame::Frame"]);
    }
}
