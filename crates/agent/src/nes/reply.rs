//! What the model suggests, fitted to the text.

use attache::wire::v1::{
    NesEditSuggestion, NesJumpSuggestion, NesRenameSuggestion, NesSearchAndReplaceSuggestion, NesSuggestion,
    NesTextEdit, PositionEncodingKind, SuggestNesRequest,
};
use serde_json::Value;

use super::Kinds;
use super::place::{offset, position, range};
use crate::model::{Event, Model, Request};

/// The most suggestions at once.
const MOST: usize = 5;

/// What the model wants to suggest, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Edit { old: String, new: String },
    Jump { to: String },
    Rename { old: String, new: String },
    SearchAndReplace { search: String, replace: String, regex: bool },
}

/// Asks the model. An error is for people.
pub(super) async fn wishes(model: &dyn Model, question: Request) -> Result<Vec<Wish>, String> {
    let mut stream = model.start(question);
    let mut wishes = Vec::new();
    while let Some(event) = stream.next().await {
        if let Event::CallEnds { call: Ok(call), .. } = event.map_err(|error| error.to_string())?
            && call.name == "suggest"
        {
            let items = call.arguments.get("suggestions").and_then(Value::as_array);
            wishes.extend(items.into_iter().flatten().filter_map(Wish::read));
        }
    }
    wishes.truncate(MOST);
    Ok(wishes)
}

impl Wish {
    /// What makes no sense is left out.
    fn read(value: &Value) -> Option<Wish> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        match value.get("kind")?.as_str()? {
            "edit" => {
                let (old, new) = (text("old")?, text("new")?);
                (old != new).then_some(Wish::Edit { old, new })
            }
            "jump" => Some(Wish::Jump { to: said(text("old")?)? }),
            "rename" => Some(Wish::Rename { old: said(text("old")?)?, new: said(text("new")?)? }),
            "search_and_replace" => {
                let regex = value.get("regex").and_then(Value::as_bool).unwrap_or(false);
                Some(Wish::SearchAndReplace { search: said(text("search")?)?, replace: text("new")?, regex })
            }
            _ => None,
        }
    }

    /// The suggestion, if there is a place for it in the text and the client takes its kind (NES-04).
    pub(super) fn fit(
        &self,
        id: &str,
        text: &str,
        request: &SuggestNesRequest,
        encoding: PositionEncodingKind,
        kinds: Kinds,
    ) -> Option<NesSuggestion> {
        let cursor = offset(text, &request.position, encoding).unwrap_or(text.len());
        let uri = request.uri.as_str();
        match self {
            Wish::Edit { old, new } => {
                // Nothing to replace: something to insert where the user is.
                let at = if old.is_empty() { cursor..cursor } else { nearest(text, old, cursor)? };
                let (at, new) = shorten(text, at, new);
                let end = at.start + new.len();
                let mut changed = text.to_owned();
                changed.replace_range(at.clone(), new);
                let mut edit =
                    NesEditSuggestion::new(id, uri, vec![NesTextEdit::new(range(text, at, encoding), new)]);
                edit.cursor_position = Some(position(&changed, end, encoding));
                Some(NesSuggestion::Edit(edit))
            }
            Wish::Jump { to } if kinds.jump => {
                let at = nearest(text, to, cursor)?;
                Some(NesSuggestion::Jump(NesJumpSuggestion::new(id, uri, position(text, at.start, encoding))))
            }
            Wish::Rename { old, new } if kinds.rename => {
                let at = nearest(text, old, cursor)?;
                Some(NesSuggestion::Rename(NesRenameSuggestion::new(
                    id,
                    uri,
                    position(text, at.start, encoding),
                    new.as_str(),
                )))
            }
            Wish::SearchAndReplace { search, replace, regex }
                if kinds.search_and_replace && (*regex || text.contains(search.as_str())) =>
            {
                let mut suggestion =
                    NesSearchAndReplaceSuggestion::new(id, uri, search.as_str(), replace.as_str());
                suggestion.is_regex = regex.then_some(true);
                Some(NesSuggestion::SearchAndReplace(suggestion))
            }
            _ => None,
        }
    }
}

/// Where a text occurs next to the cursor.
fn nearest(text: &str, wanted: &str, cursor: usize) -> Option<std::ops::Range<usize>> {
    let places = text.match_indices(wanted).map(|(at, _)| at..at + wanted.len());
    places.min_by_key(|place| {
        if place.contains(&cursor) { 0 } else { place.start.abs_diff(cursor).min(place.end.abs_diff(cursor)) }
    })
}

/// The part of a replacement that changes something: a suggestion shows what is new.
fn shorten<'a>(text: &str, at: std::ops::Range<usize>, new: &'a str) -> (std::ops::Range<usize>, &'a str) {
    let old = &text[at.clone()];
    let head: usize =
        old.chars().zip(new.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let tail: usize = old[head..]
        .chars()
        .rev()
        .zip(new[head..].chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    (at.start + head..at.end - tail, &new[head..new.len() - tail])
}
