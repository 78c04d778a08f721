//! What a prompt wants.
//!
//! The first word says what, so that an English sentence works as well as the bare name of a wish; what stands in backticks, or
//! looks like a path, says with what.

use serde_json::Value;

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To hear something: the words again.
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
}

impl Wish {
    pub(crate) fn read(blocks: &[Value]) -> Wish {
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
            "read" => Wish::Read(path().unwrap_or_else(|| "notes.txt".to_owned())),
            "write" => Wish::Write {
                text: quoted.first().cloned().unwrap_or_else(|| "done".to_owned()),
                path: path().unwrap_or_else(|| "out.txt".to_owned()),
            },
            "run" => {
                let command = quoted.first().map_or("echo attache", String::as_str);
                Wish::Run(command.split_whitespace().map(str::to_owned).collect())
            }
            "run-long" => Wish::Run(vec!["sleep".to_owned(), "600".to_owned()]),
            "elicit-url" => Wish::Visit,
            "elicit" => Wish::Form,
            "ask" if has("log in") => Wish::Visit,
            "ask" if has("form") => Wish::Form,
            "ask" | "delete" => Wish::Ask,
            "think" | "count" => Wish::Think,
            "plan" => Wish::Plan,
            "make" if has("keep the plan up to date") => Wish::Carry(paths()),
            "make" if has("plan") => Wish::Plan,
            "show" => Wish::Show,
            "compare" => Wish::Compare(quoted),
            "obtain" => Wish::Secret,
            "notice" => Wish::Notice,
            "compact" => Wish::Compact,
            "delegate" => Wish::Subagent,
            "title" => Wish::Title,
            "mode" | "switch" => Wish::Mode,
            "config" | "change" => Wish::Option,
            "use" => Wish::Mcp,
            "fail" => Wish::Fail,
            "say" => Wish::Say("hello".to_owned()),
            "lines" => Wish::Say("grüße\n世界".to_owned()),
            "answer" if has("two lines") => Wish::Say("grüße\n世界".to_owned()),
            "answer" => Wish::Say("hello".to_owned()),
            _ => Wish::Say(text),
        }
    }
}
