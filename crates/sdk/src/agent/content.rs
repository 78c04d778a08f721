//! Content of tool calls.

use std::sync::Arc;

use attache_wire::v1::{Content, ContentBlock, ToolCallContent};

use super::own_terminal::TerminalText;
use crate::Edit;

/// The most content that is kept of a tool call to which content is appended, in bytes.
pub(super) const MAX_KEPT: usize = 1 << 20;

/// Content of a tool call: a content block, an [`Edit`], or a terminal.
///
/// ```
/// use attache::Edit;
/// use attache::agent::{Tool, ToolContent};
///
/// async fn finish(tool: Tool) -> attache::Result<()> {
///     let edit = Edit::add("/project/notes.md", "# Notes\n");
///     tool.complete([ToolContent::from("1 file changed"), edit.into()]).await
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolContent(pub(super) Kind);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A content block or a terminal of the client.
    Same(ToolCallContent),
    Edit(Edit),
    Terminal(Arc<TerminalText>),
}

impl ToolContent {
    /// The items of version 1.
    pub(super) fn push_v1(&self, items: &mut Vec<ToolCallContent>) {
        match &self.0 {
            Kind::Same(content) => items.push(content.clone()),
            Kind::Edit(edit) => match edit.to_v1() {
                Some(diffs) => items.extend(diffs.into_iter().map(ToolCallContent::Diff)),
                // Without both texts there is only the patch to show.
                None => items.push(edit.to_patch().unwrap_or_else(|| edit.path().to_owned()).into()),
            },
            // Never a terminal of the client.
            Kind::Terminal(terminal) => items.push(terminal.to_text().into()),
        }
    }

    /// About how many bytes it has.
    fn size(&self) -> usize {
        match &self.0 {
            Kind::Same(ToolCallContent::Content(content)) => match &content.content {
                ContentBlock::Text(text) => text.text.len(),
                other => serde_json::to_string(other).map_or(0, |text| text.len()),
            },
            Kind::Same(_) => 64,
            Kind::Edit(edit) => {
                [edit.old(), edit.new(), edit.patch()].into_iter().flatten().map(str::len).sum()
            }
            Kind::Terminal(_) => 64, // bounded by itself
        }
    }

    pub(super) fn edit(&self) -> Option<&Edit> {
        match &self.0 {
            Kind::Edit(edit) => Some(edit),
            _ => None,
        }
    }
}

/// The content in version 1.
pub(super) fn to_v1(content: &[ToolContent]) -> Vec<ToolCallContent> {
    let mut items = Vec::with_capacity(content.len());
    content.iter().for_each(|content| content.push_v1(&mut items));
    items
}

/// Removes the oldest content beyond [`MAX_KEPT`] bytes; of one long text the tail stays.
pub(super) fn keep_tail(content: &mut Vec<ToolContent>) {
    let mut excess = content.iter().map(ToolContent::size).sum::<usize>().saturating_sub(MAX_KEPT);
    while excess > 0 && content.len() > 1 && content[0].size() <= excess {
        excess -= content.remove(0).size();
    }
    if excess > 0
        && let Some(ToolContent(Kind::Same(ToolCallContent::Content(first)))) = content.first_mut()
        && let ContentBlock::Text(text) = &mut first.content
    {
        let start = (excess..=text.text.len()).find(|&at| text.text.is_char_boundary(at));
        text.text.drain(..start.unwrap_or_default());
    }
}

impl From<ToolCallContent> for ToolContent {
    fn from(content: ToolCallContent) -> Self {
        ToolContent(match content {
            ToolCallContent::Diff(diff) => Kind::Edit(Edit::from_v1(&diff)),
            other => Kind::Same(other),
        })
    }
}

impl From<Edit> for ToolContent {
    fn from(edit: Edit) -> Self {
        ToolContent(Kind::Edit(edit))
    }
}

impl From<ContentBlock> for ToolContent {
    fn from(block: ContentBlock) -> Self {
        ToolContent(Kind::Same(ToolCallContent::Content(Content::new(block))))
    }
}

impl From<&str> for ToolContent {
    fn from(text: &str) -> Self {
        ContentBlock::from(text).into()
    }
}

impl From<String> for ToolContent {
    fn from(text: String) -> Self {
        ContentBlock::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tail_of_much_content_is_kept() {
        let text = |length: usize| ToolContent::from("ä".repeat(length / 2));
        let mut content = vec![text(100), text(MAX_KEPT)];
        keep_tail(&mut content);
        assert_eq!(content, [text(MAX_KEPT)]);
        content.push("tail".into());
        keep_tail(&mut content);
        assert_eq!((content[0].size(), &content[1]), (MAX_KEPT - 4, &"tail".into()));
        let mut content = vec![text(MAX_KEPT + 2), "x".into()];
        keep_tail(&mut content);
        assert_eq!(content[0].size(), MAX_KEPT - 2, "whole characters");
    }
}
