//! The intent of a prompt.
//!
//! The first word selects the intent, so that an English sentence works as well as the bare name.
//! Words in backticks, or that look like a path, are its arguments.

use serde_json::Value;

/// The intent of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Text: the words of the prompt again.
    Say(String),
    Read(String),
    Write {
        path: String,
        text: String,
    },
    Run(Vec<String>),
    /// Something that needs a permission.
    Ask,
    /// Something that takes long.
    Think,
    Plan,
    /// A plan that is carried out: files to write, each a step.
    Carry(Vec<String>),
    /// Content of every type.
    Show,
    /// Two files at once.
    Compare(Vec<String>),
    /// Something that the user knows.
    Form,
    /// Something that the user does elsewhere.
    Visit,
    /// Something that belongs into no form.
    Secret,
    Notice,
    Compact,
    Subagent,
    Title,
    Mode,
    Option,
    Mcp,
    Fail,
    /// A command that goes on after the turn.
    Background,
}

impl Intent {
    pub(crate) fn read(blocks: &[Value]) -> Intent {
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let text = texts.join("\n");
        let quoted: Vec<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let paths = || {
            let bare = |word: &str| word.trim_matches(['`', ',', '"', '\'']).trim_end_matches('.').to_owned();
            let words = text.split_whitespace().map(bare);
            words.filter(|word| word.contains('/') || word.ends_with(".txt")).collect::<Vec<_>>()
        };
        let path = || paths().into_iter().next();
        let words = text.to_lowercase();
        let has = |word: &str| words.contains(word);
        let first = words.split_whitespace().next().unwrap_or_default().trim_matches([':', '/']);
        match first {
            "read" => Intent::Read(path().unwrap_or_else(|| "notes.txt".to_owned())),
            "write" => Intent::Write {
                text: quoted.first().cloned().unwrap_or_else(|| "done".to_owned()),
                path: path().unwrap_or_else(|| "out.txt".to_owned()),
            },
            "run" => {
                let command = quoted.first().map_or("touch ran.txt && echo attache", String::as_str);
                // More than one command is for a shell.
                Intent::Run(match command.contains("&&") {
                    true => ["sh", "-c", command].map(str::to_owned).into(),
                    false => command.split_whitespace().map(str::to_owned).collect(),
                })
            }
            "run-long" => Intent::Run(vec!["sleep".to_owned(), "600".to_owned()]),
            "elicit-url" => Intent::Visit,
            "elicit" => Intent::Form,
            "ask" if has("log in") => Intent::Visit,
            "ask" if has("form") => Intent::Form,
            "ask" | "delete" => Intent::Ask,
            "think" | "count" => Intent::Think,
            "plan" => Intent::Plan,
            "make" if has("keep the plan up to date") => Intent::Carry(paths()),
            "make" if has("plan") => Intent::Plan,
            "show" => Intent::Show,
            "compare" => Intent::Compare(quoted),
            "obtain" => Intent::Secret,
            "notice" => Intent::Notice,
            "compact" => Intent::Compact,
            "delegate" => Intent::Subagent,
            "title" => Intent::Title,
            "mode" | "switch" => Intent::Mode,
            "config" | "change" => Intent::Option,
            "use" => Intent::Mcp,
            "fail" => Intent::Fail,
            "background" | "start" => Intent::Background,
            "say" => Intent::Say("hello".to_owned()),
            "lines" => Intent::Say("grüße\n世界".to_owned()),
            "answer" if has("two lines") => Intent::Say("grüße\n世界".to_owned()),
            "answer" => Intent::Say("hello".to_owned()),
            _ => Intent::Say(text),
        }
    }
}
