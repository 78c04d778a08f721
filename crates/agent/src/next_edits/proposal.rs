//! Suggestions of the model, converted to edits of the text.

use attache::wire::v1::{
    NesEditSuggestion, NesJumpSuggestion, NesRenameSuggestion, NesSearchAndReplaceSuggestion, NesSuggestion,
    NesTextEdit, PositionEncodingKind, SuggestNesRequest,
};
use serde::Deserialize;
use serde_json::Value;

use super::Kinds;
use super::position::{offset, position, range};
use crate::model::{Event, Model, ModelError, Request};

/// The most suggestions at once.
const MAX_PROPOSALS: usize = 5;

/// A suggestion as the model writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Proposal {
    Edit {
        old: String,
        new: String,
    },
    Jump {
        old: String,
    },
    Rename {
        old: String,
        new: String,
    },
    SearchAndReplace {
        search: String,
        #[serde(rename = "new")]
        replace: String,
        #[serde(default)]
        regex: bool,
    },
}

/// Asks the model.
pub(super) async fn request(model: &dyn Model, request: Request) -> Result<Vec<Proposal>, ModelError> {
    let mut stream = model.start(request);
    let mut proposals = Vec::new();
    while let Some(event) = stream.next().await {
        if let Event::CallEnds { call: Ok(call), .. } = event?
            && call.name == "suggest"
        {
            let items = call.arguments.get("suggestions").and_then(Value::as_array);
            let items = items.into_iter().flatten().filter_map(|item| Proposal::deserialize(item).ok());
            proposals.extend(items.filter(Proposal::is_valid));
        }
    }
    proposals.truncate(MAX_PROPOSALS);
    Ok(proposals)
}

impl Proposal {
    fn is_valid(&self) -> bool {
        match self {
            Proposal::Edit { old, new } => old != new,
            Proposal::Jump { old } => !old.is_empty(),
            Proposal::Rename { old, new } => !old.is_empty() && !new.is_empty(),
            Proposal::SearchAndReplace { search, .. } => !search.is_empty(),
        }
    }

    /// The suggestion, if it applies to the text and the client supports its kind.
    // NES-04
    pub(super) fn apply(
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
            Proposal::Edit { old, new } => {
                // An empty `old` inserts at the cursor.
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
            Proposal::Jump { old } if kinds.jump => {
                let at = nearest(text, old, cursor)?;
                Some(NesSuggestion::Jump(NesJumpSuggestion::new(id, uri, position(text, at.start, encoding))))
            }
            Proposal::Rename { old, new } if kinds.rename => {
                let at = nearest(text, old, cursor)?;
                Some(NesSuggestion::Rename(NesRenameSuggestion::new(
                    id,
                    uri,
                    position(text, at.start, encoding),
                    new.as_str(),
                )))
            }
            Proposal::SearchAndReplace { search, replace, regex }
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

/// The occurrence of a text nearest to the cursor.
fn nearest(text: &str, wanted: &str, cursor: usize) -> Option<std::ops::Range<usize>> {
    let places = text.match_indices(wanted).map(|(at, _)| at..at + wanted.len());
    places.min_by_key(|place| {
        if place.contains(&cursor) { 0 } else { place.start.abs_diff(cursor).min(place.end.abs_diff(cursor)) }
    })
}

/// The part of a replacement that differs from the text.
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
