//! What a session's journal says about it.

use std::collections::{HashMap, VecDeque};

use attache_journal::{Journal, Result, Seq, SessionKey};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::entry::{self, Opened, kind};
use crate::message::Outcome;

/// Ended prompts that are remembered, so that they are not run again.
const PROMPTS: usize = 1024;
/// Pages that are searched for the first prompt, for the title.
const HEAD_BYTES: usize = 256 << 10;
/// Characters of a title.
const TITLE: usize = 80;

/// The end of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct EndedPrompt {
    /// The entry of its begin. Zero if the journal has lost it.
    pub(crate) begun: Seq,
    pub(crate) ended: Seq,
    pub(crate) outcome: Outcome,
}

/// Ended prompts, by their ids.
#[derive(Debug, Default)]
pub(crate) struct EndedPrompts {
    by_id: HashMap<String, EndedPrompt>,
    order: VecDeque<String>,
}

impl EndedPrompts {
    pub(crate) fn insert(&mut self, prompt: String, end: EndedPrompt) {
        if self.order.len() == PROMPTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        self.order.push_back(prompt.clone());
        self.by_id.insert(prompt, end);
    }

    pub(crate) fn get(&self, prompt: &str) -> Option<&EndedPrompt> {
        self.by_id.get(prompt)
    }

    /// The end of the last turn.
    pub(crate) fn last(&self) -> Option<&EndedPrompt> {
        self.by_id.get(self.order.back()?)
    }
}

/// The state of a session, folded from its entries.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) opened: Option<Opened>,
    pub(crate) title: Option<String>,
    pub(crate) mode: Option<String>,
    /// The config options, once they were changed.
    pub(crate) options: Option<Box<RawValue>>,
    pub(crate) ended: EndedPrompts,
    /// The prompt without an end, and the entry of its begin.
    pub(crate) running: Option<(String, Seq)>,
    /// Questions without a decision.
    pub(crate) questions: Vec<String>,
}

impl History {
    /// Reads the whole journal of a session.
    pub(crate) async fn read(journal: &Journal, key: &SessionKey) -> Result<History> {
        let mut history = History::default();
        let first = journal.info(key).await?.first;
        let mut pages = journal.read(key, Seq::new(first.get().saturating_sub(1)), None).await?;
        while let Some(page) = pages.next().await? {
            for entry in page.entries() {
                history.fold(entry.kind(), entry.seq(), entry.bytes());
            }
        }
        Ok(history)
    }

    /// Reads the beginning of a journal only: the first entry and the title.
    pub(crate) async fn read_head(journal: &Journal, key: &SessionKey) -> Result<History> {
        let mut history = History::default();
        let first = journal.info(key).await?.first;
        let mut pages = journal.read(key, Seq::new(first.get().saturating_sub(1)), None).await?;
        let mut read = 0;
        while let Some(page) = pages.next().await? {
            for entry in page.entries() {
                history.fold(entry.kind(), entry.seq(), entry.bytes());
            }
            read += page.page().body().len();
            if history.title.is_some() || read > HEAD_BYTES {
                break;
            }
        }
        Ok(history)
    }

    pub(crate) fn fold(&mut self, of: u8, seq: Seq, bytes: &[u8]) {
        match of {
            kind::LINE => {
                self.note_setting(bytes);
            }
            kind::OPENED => self.opened = entry::decode(bytes),
            kind::PROMPT => {
                self.running = entry::decode(bytes).map(|prompt: entry::Prompt| (prompt.prompt, seq));
            }
            kind::NOTICE => {
                let line = entry::decode_notice(bytes).map(|(_, line)| line).unwrap_or_default();
                if self.title.is_none() {
                    self.title = title_of(line);
                }
                self.note_setting(line);
            }
            kind::TURN_ENDED => {
                let begun = self.running.take().map_or(Seq::ZERO, |(_, begun)| begun);
                if let Some(ended) = entry::decode::<entry::TurnEnded>(bytes) {
                    let end = EndedPrompt { begun, ended: seq, outcome: ended.outcome };
                    self.ended.insert(ended.prompt, end);
                }
            }
            kind::QUESTION => {
                self.questions
                    .extend(entry::decode(bytes).map(|question: entry::Question| question.question));
            }
            kind::DECISION => {
                if let Some(decision) = entry::decode::<entry::Decision>(bytes) {
                    self.questions.retain(|question| *question != decision.question);
                }
            }
            _ => {}
        }
    }

    fn note_setting(&mut self, line: &[u8]) {
        match setting_of(line) {
            Some(Setting::Mode(mode)) => self.mode = Some(mode),
            Some(Setting::Options(options)) => self.options = Some(options),
            None => {}
        }
    }
}

/// A setting of a session that a line reports.
pub(crate) enum Setting {
    Mode(String),
    /// All config options.
    Options(Box<RawValue>),
}

/// Lines that report settings are shorter than this.
const SETTING_LINE: usize = 64 << 10;
/// The kind of an update stands within these bytes of its line.
const KIND: usize = 1024;

/// The setting that a line reports.
pub(crate) fn setting_of(line: &[u8]) -> Option<Setting> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update<'a> {
        session_update: String,
        current_mode_id: Option<String>,
        #[serde(borrow)]
        config_options: Option<&'a RawValue>,
    }
    if line.len() > SETTING_LINE {
        return None;
    }
    let head = String::from_utf8_lossy(line.get(..KIND).unwrap_or(line));
    if !head.contains("current_mode_update") && !head.contains("config_option_update") {
        return None;
    }
    let Message { params: Params { update } } = serde_json::from_slice(line).ok()?;
    match update.session_update.as_str() {
        "current_mode_update" => update.current_mode_id.map(Setting::Mode),
        "config_option_update" => update.config_options.map(|options| Setting::Options(options.to_owned())),
        _ => None,
    }
}

/// The title of a session whose first prompt is this message.
pub(crate) fn title_of(line: &[u8]) -> Option<String> {
    let message: serde_json::Value = serde_json::from_slice(line).ok()?;
    let text = message.pointer("/params/update/content/text")?.as_str()?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(TITLE).collect())
}
