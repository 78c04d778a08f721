//! `/context`: the content of the model's window, by kind, and the tokens of the session.

use attache::{Result, StopReason};

use super::{TurnContext, compact, say, steps};
use crate::model::{ModelInfo, Part, Request, Role, Usage, estimate_tokens};

/// Sends the report. The model is not asked.
pub(super) async fn by_command(cx: &TurnContext) -> Result<StopReason> {
    let Some(model) = cx.session.model() else {
        return say(cx, "There is no model, so there is no window.").await;
    };
    let sizes = Sizes::new(&steps::request(cx), &cx.session.instructions_for(Some(model.info())));
    let (used, last, total, cost) = {
        let conversation = cx.session.conversation();
        (conversation.used, conversation.last_usage, conversation.total_usage, conversation.cost)
    };
    let mut text = sizes.table(model.info(), used, compact::limit(cx, model.info()));
    text.push_str(&usage_lines(&last, &total, cost));
    say(cx, &text).await
}

/// The bytes of a request, by kind.
#[derive(Debug, Default, PartialEq)]
struct Sizes {
    system: usize,
    instructions: usize,
    tools: usize,
    tool_count: usize,
    user: usize,
    model: usize,
    results: usize,
}

impl Sizes {
    fn new(request: &Request, instructions: &str) -> Self {
        let mut sizes = Sizes {
            system: request.system.len().saturating_sub(instructions.len()),
            instructions: instructions.len(),
            tools: request.tools.iter().map(crate::model::ToolSpec::size).sum(),
            tool_count: request.tools.len(),
            ..Sizes::default()
        };
        for message in &request.messages {
            for part in &message.parts {
                *match (part, message.role) {
                    (Part::Result { .. }, _) => &mut sizes.results,
                    (_, Role::User) => &mut sizes.user,
                    (_, Role::Assistant) => &mut sizes.model,
                } += part.size();
            }
        }
        sizes
    }

    fn table(&self, info: &ModelInfo, counted: u64, limit: u64) -> String {
        let rows = [
            ("system prompt".to_owned(), self.system),
            ("instructions".to_owned(), self.instructions),
            (format!("{} tools", self.tool_count), self.tools),
            ("your messages".to_owned(), self.user),
            ("the model's messages".to_owned(), self.model),
            ("tool results".to_owned(), self.results),
        ];
        let estimate: u64 = rows.iter().map(|(_, bytes)| estimate_tokens(*bytes)).sum();
        // The provider's count is better and knows nothing of what was added since.
        let (used, source) = match counted {
            0 => (estimate, "estimated"),
            counted => (counted, "by the provider's last count"),
        };
        let percent = used * 100 / info.window.max(1);
        let mut text = format!(
            "{}: {} of {} tokens ({percent} %), {source}\n\n| in the window | tokens, estimated |\n|---|---:|\n",
            info.name,
            grouped(used),
            grouped(info.window)
        );
        for (name, bytes) in rows {
            text.push_str(&format!("| {name} | {} |\n", grouped(estimate_tokens(bytes))));
        }
        let free = info.window.saturating_sub(used);
        text.push_str(&format!(
            "| free | {} |\n\nThe conversation is summarized at {} %.\n",
            grouped(free),
            limit * 100 / info.window.max(1)
        ));
        text
    }
}

/// Tokens of the last request and of the session, as far as the provider counts them.
fn usage_lines(last: &Usage, total: &Usage, cost: Option<f64>) -> String {
    if *total == Usage::default() {
        return "The provider has not counted any tokens in this session yet.\n".to_owned();
    }
    let line = |usage: &Usage| {
        let context = usage.context();
        let percent = usage.cache_read * 100 / context.max(1);
        format!(
            "{} in ({} from the cache, {percent} %; {} written to it), {} out",
            grouped(context),
            grouped(usage.cache_read),
            grouped(usage.cache_write),
            grouped(usage.output)
        )
    };
    let cost = match cost {
        Some(cost) => format!("${cost:.4}"),
        None => "the price of the model is not known".to_owned(),
    };
    format!("Last request: {}\nSince the session was opened: {}; {cost}\n", line(last), line(total))
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
