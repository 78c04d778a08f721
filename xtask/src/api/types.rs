//! Types, paths, generics and signatures of rustdoc's JSON as Rust.

use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, one: impl Fn(&'a Value) -> String) -> Vec<String> {
    value.as_array().into_iter().flatten().map(one).collect()
}

/// A type.
pub(super) fn type_name(ty: &Value) -> String {
    let Some((kind, inner)) = ty.as_object().and_then(|ty| ty.iter().next()) else { return "_".to_owned() };
    match kind.as_str() {
        "resolved_path" => path(inner),
        "generic" | "primitive" => text(inner).to_owned(),
        "tuple" => format!("({})", list(inner, type_name).join(", ")),
        "slice" => format!("[{}]", type_name(inner)),
        "array" => format!("[{}; {}]", type_name(&inner["type"]), text(&inner["len"])),
        "impl_trait" => bounds(inner, "impl "),
        "dyn_trait" => {
            let mut traits = list(&inner["traits"], |of| path(&of["trait"]));
            traits.extend(inner["lifetime"].as_str().map(str::to_owned));
            format!("dyn {}", traits.join(" + "))
        }
        "borrowed_ref" => {
            let lifetime = inner["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
            let mutable = if inner["is_mutable"] == true { "mut " } else { "" };
            format!("&{lifetime}{mutable}{}", type_name(&inner["type"]))
        }
        "raw_pointer" => {
            let mutable = if inner["is_mutable"] == true { "mut" } else { "const" };
            format!("*{mutable} {}", type_name(&inner["type"]))
        }
        "function_pointer" => format!("fn{}", signature(&inner["sig"])),
        "qualified_path" => {
            let (owner, name) = (type_name(&inner["self_type"]), text(&inner["name"]));
            match inner["trait"].is_object() && !text(&inner["trait"]["path"]).is_empty() {
                true => format!("<{owner} as {}>::{name}", path(&inner["trait"])),
                false => format!("{owner}::{name}"),
            }
        }
        other => other.to_owned(),
    }
}

/// A path to an item, by its last name, with its arguments.
pub(super) fn path(path: &Value) -> String {
    let name = text(&path["path"]).rsplit("::").next().unwrap_or_default().to_owned();
    name + &arguments(&path["args"])
}

fn arguments(args: &Value) -> String {
    if let Some(call) = args.get("parenthesized") {
        return format!("({}){}", list(&call["inputs"], type_name).join(", "), output(&call["output"]));
    }
    let angle = &args["angle_bracketed"];
    let mut all = list(&angle["args"], argument);
    all.extend(list(&angle["constraints"], |constraint| {
        let name = text(&constraint["name"]);
        match constraint["binding"].get("equality") {
            Some(term) => format!("{name} = {}", type_name(&term["type"])),
            None => format!("{name}{}", bounds(&constraint["binding"]["constraint"], ": ")),
        }
    }));
    if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
}

fn argument(argument: &Value) -> String {
    match argument.as_object().and_then(|argument| argument.iter().next()) {
        Some((kind, inner)) if kind == "type" => type_name(inner),
        Some((kind, inner)) if kind == "const" => text(&inner["expr"]).to_owned(),
        Some((_, inner)) => text(inner).to_owned(),
        None => "_".to_owned(),
    }
}

/// Bounds after a prefix, or nothing.
pub(super) fn bounds(bounds: &Value, prefix: &str) -> String {
    let all = list(bounds, |bound| match bound.as_object().and_then(|bound| bound.iter().next()) {
        Some((kind, inner)) if kind == "trait_bound" => {
            let modifier = if inner["modifier"] == "maybe" { "?" } else { "" };
            let generics = generic_params(&serde_json::json!({ "params": inner["generic_params"] }));
            let higher = if generics.is_empty() { generics } else { format!("for{generics} ") };
            format!("{higher}{modifier}{}", path(&inner["trait"]))
        }
        Some((kind, inner)) if kind == "use" => format!("use<{}>", list(inner, argument).join(", ")),
        Some((_, inner)) => text(inner).to_owned(),
        None => String::new(),
    });
    if all.is_empty() { String::new() } else { format!("{prefix}{}", all.join(" + ")) }
}

/// The parameters of a generic item; those of `impl Trait` are left out.
pub(super) fn generic_params(generics: &Value) -> String {
    let params: Vec<String> = generics["params"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|param| param["kind"]["type"]["is_synthetic"] != true)
        .map(|param| match &param["kind"]["const"]["type"] {
            Value::Null => {
                format!("{}{}", text(&param["name"]), bounds(&param["kind"]["type"]["bounds"], ": "))
            }
            ty => format!("const {}: {}", text(&param["name"]), type_name(ty)),
        })
        .collect();
    if params.is_empty() { String::new() } else { format!("<{}>", params.join(", ")) }
}

/// A function with its name, generics, signature and where clauses.
pub(super) fn function(function: &Value, name: &str) -> String {
    let header = &function["header"];
    let words = [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")];
    let words: String = words.iter().filter(|(key, _)| header[key] == true).map(|(_, word)| *word).collect();
    let generics = generic_params(&function["generics"]);
    let clauses = list(&function["generics"]["where_predicates"], |predicate| {
        let bound = &predicate["bound_predicate"];
        format!("{}{}", type_name(&bound["type"]), bounds(&bound["bounds"], ": "))
    });
    let clauses = if clauses.is_empty() { String::new() } else { format!(" where {}", clauses.join(", ")) };
    format!("{words}fn {name}{generics}{}{clauses}", signature(&function["sig"]))
}

fn signature(signature: &Value) -> String {
    let inputs = list(&signature["inputs"], |input| {
        let (name, ty) = (text(&input[0]), type_name(&input[1]));
        match (name, ty.as_str()) {
            ("self", "Self") => "self".to_owned(),
            ("self", "&Self") => "&self".to_owned(),
            ("self", "&mut Self") => "&mut self".to_owned(),
            _ => format!("{name}: {ty}"),
        }
    });
    format!("({}){}", inputs.join(", "), output(&signature["output"]))
}

fn output(output: &Value) -> String {
    if output.is_null() { String::new() } else { format!(" -> {}", type_name(output)) }
}
