//! Replaces a part of a line and keeps the rest byte for byte.

use attache_wire::Json;
use attache_wire::v1::Fields;
use serde_json::value::RawValue;

use super::Edit;

/// Applies edits to the value `part` of a line. Returns the new line, or `None` if nothing changed.
///
/// `encode` writes the whole message; it is used only if there is no value to replace.
pub(super) fn apply(
    line: &[u8],
    part: Option<&RawValue>,
    edits: &mut [Edit],
    encode: impl FnOnce(&mut Vec<u8>, &RawValue) -> serde_json::Result<()>,
) -> Option<Vec<u8>> {
    let mut edited: Option<Box<RawValue>> = None;
    for edit in edits {
        if let Some(text) = edit(edited.as_deref().or(part)) {
            edited = RawValue::from_string(text).ok();
        }
    }
    let edited = edited?;
    if let Some((start, end)) = part.and_then(|part| range_of(line, part)) {
        let mut out = Vec::with_capacity(line.len() + edited.get().len());
        out.extend_from_slice(line.get(..start)?);
        // STDIO-05: between tokens a line break is only a blank.
        out.extend(edited.get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        out.extend_from_slice(line.get(end..)?);
        return Some(out);
    }
    let mut out = Vec::new();
    encode(&mut out, &edited).ok()?;
    out.pop_if(|last| *last == b'\n');
    Some(out)
}

/// The range of a value within the line that it was borrowed from.
fn range_of(line: &[u8], part: &RawValue) -> Option<(usize, usize)> {
    let text = part.get();
    let start = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let end = start.checked_add(text.len())?;
    (line.get(start..end)? == text.as_bytes()).then_some((start, end))
}

/// The original with those members replaced that differ between `before` and `after`. Others stay
/// as written, even unknown ones. `None` if none differs.
pub(super) fn changed(original: Option<&str>, before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let members = |text: &str| serde_json::from_str::<Fields<Json>>(text).ok();
    let (Some(original), Some(before), Some(after)) =
        (original.and_then(members), members(before), members(after))
    else {
        // Not an object, or no members to keep.
        return Some(after.to_owned());
    };
    let mut out = Fields::new();
    for (name, value) in original.iter() {
        match (before.get(name), after.get(name)) {
            (Some(old), Some(new)) if old == new => out.insert(name, value.clone()),
            (_, Some(new)) => out.insert(name, new.clone()),
            (Some(_), None) => {}
            (None, None) => out.insert(name, value.clone()),
        }
    }
    for (name, new) in after.iter() {
        if original.get(name).is_none() && before.get(name) != Some(new) {
            out.insert(name, new.clone());
        }
    }
    serde_json::to_string(&out).ok()
}
