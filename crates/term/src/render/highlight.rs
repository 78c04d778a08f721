//! Syntax colours: words, strings, numbers and comments, without a parser.

use super::style::{Colour, Line, Style};

const KEYWORD: Style = Style::of(Colour::Magenta);
const STRING: Style = Style::of(Colour::Green);
const NUMBER: Style = Style::of(Colour::Cyan);
const COMMENT: Style = Style::DIM;
const NAME: Style = Style::of(Colour::Blue);

/// The lexical rules of a language.
struct Language {
    names: &'static [&'static str],
    keywords: &'static str,
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Quotes of strings on one line.
    quotes: &'static str,
    /// Quotes of strings over several lines.
    long_quotes: &'static [&'static str],
}

const C_LIKE: Language = Language {
    names: &[],
    keywords: "",
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: "\"'",
    long_quotes: &[],
};

const HASH_LIKE: Language = Language { line_comments: &["#"], block_comment: None, ..C_LIKE };

static LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        keywords: "as async await box break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                   move mut pub ref return self Self static struct super trait true type unsafe use where while",
        // A quote is as often a lifetime as a character.
        quotes: "\"",
        ..C_LIKE
    },
    Language {
        names: &["python", "py", "python3"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in \
                   is lambda match None nonlocal not or pass raise return self True try while with yield",
        long_quotes: &["\"\"\"", "'''"],
        ..HASH_LIKE
    },
    Language {
        names: &["javascript", "js", "jsx", "mjs", "typescript", "ts", "tsx"],
        keywords: "abstract any as async await boolean break case catch class const continue debugger default delete do else enum \
                   export extends false finally for from function if implements import in instanceof interface let new null \
                   number of private public readonly return static string super switch this throw true try type typeof \
                   undefined var void while with yield",
        long_quotes: &["`"],
        ..C_LIKE
    },
    Language {
        names: &["go", "golang"],
        keywords: "bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int \
                   interface map nil package range return rune select string struct switch true type var",
        long_quotes: &["`"],
        ..C_LIKE
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "csharp", "cs", "c#", "kotlin", "kt", "swift",
            "scala", "dart", "php",
        ],
        keywords: "abstract auto bool boolean break case catch char class const constexpr continue default delete do double else enum \
                   explicit extends extern false final float for fun func goto if implements import in inline int interface \
                   internal let long namespace new null nullptr object operator override package private protected public \
                   return short signed sizeof static string struct super switch template this throw throws true try typedef \
                   typename union unsigned using val var virtual void volatile when while",
        ..C_LIKE
    },
    Language {
        names: &["sh", "bash", "zsh", "shell", "console", "fish"],
        keywords: "case do done elif else esac exit export fi for function if in local return set then until while",
        ..HASH_LIKE
    },
    Language { names: &["json", "jsonc", "json5"], keywords: "true false null", quotes: "\"", ..C_LIKE },
    Language {
        names: &["toml", "yaml", "yml", "ini", "conf"],
        keywords: "true false null yes no on off",
        ..HASH_LIKE
    },
    Language {
        names: &["ruby", "rb", "elixir", "ex"],
        keywords: "alias and begin break case class def defmodule do else elsif end ensure false fn for if in module next nil not or \
                   raise redo require rescue retry return self super then true unless until when while yield",
        ..HASH_LIKE
    },
    Language {
        names: &["sql"],
        keywords: "ADD ALTER AND AS ASC BY CASE CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS FROM FULL GROUP HAVING IN INDEX INNER \
                   INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER PRIMARY KEY RIGHT SELECT SET TABLE THEN UNION \
                   UPDATE VALUES WHEN WHERE WITH",
        line_comments: &["--"],
        ..C_LIKE
    },
    Language {
        names: &["lua"],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
        line_comments: &["--"],
        block_comment: Some(("--[[", "]]")),
        ..C_LIKE
    },
    Language {
        names: &["html", "xml", "svg", "vue"],
        line_comments: &[],
        block_comment: Some(("<!--", "-->")),
        quotes: "\"",
        ..C_LIKE
    },
    Language { names: &["css", "scss", "less"], line_comments: &[], ..C_LIKE },
];

/// Colours the lines of one piece of code, in order.
pub(super) struct Highlighter {
    language: Option<&'static Language>,
    diff: bool,
    /// The end of a comment or string that an earlier line opened.
    open: Option<(&'static str, Style)>,
}

impl Highlighter {
    /// Finds a language by the name after a fence, or by a file extension.
    pub(super) fn new(name: &str) -> Highlighter {
        let name = name.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
        let language = LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()));
        Highlighter { language, diff: matches!(name.as_str(), "diff" | "patch"), open: None }
    }

    pub(super) fn line(&mut self, text: &str) -> Line {
        if self.diff {
            return Line::styled(text, diff_style(text));
        }
        let Some(language) = self.language else { return Line::from(text) };
        let mut line = Line::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (length, style) = self.token(language, rest);
            let (token, after) = rest.split_at(length.clamp(1, rest.len()));
            line.push(token, style);
            rest = after;
        }
        line
    }

    /// Returns length and style of the first token of `rest`. Lengths end at character boundaries:
    /// they come from text searches and from counting characters.
    fn token(&mut self, language: &'static Language, rest: &str) -> (usize, Style) {
        if let Some((end, style)) = self.open {
            return match rest.find(end) {
                Some(at) => {
                    self.open = None;
                    (at + end.len(), style)
                }
                None => (rest.len(), style),
            };
        }
        if let Some((begin, end)) = language.block_comment.filter(|(begin, _)| rest.starts_with(begin)) {
            self.open = Some((end, COMMENT));
            return (begin.len(), COMMENT);
        }
        if language.line_comments.iter().any(|begin| rest.starts_with(begin)) {
            return (rest.len(), COMMENT);
        }
        if let Some(quote) = language.long_quotes.iter().find(|quote| rest.starts_with(**quote)) {
            self.open = Some((quote, STRING));
            return (quote.len(), STRING);
        }
        let Some(c) = rest.chars().next() else { return (0, Style::PLAIN) };
        if language.quotes.contains(c) {
            return (quoted(rest, c), STRING);
        }
        if c.is_ascii_digit() {
            let number = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            return (rest.find(|c| !number(c)).unwrap_or(rest.len()), NUMBER);
        }
        if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            return (end, word_style(language, word, after));
        }
        (c.len_utf8(), Style::PLAIN)
    }
}

fn word_style(language: &Language, word: &str, after: &str) -> Style {
    let is =
        |keyword: &str| keyword == word || (language.names == ["sql"] && keyword.eq_ignore_ascii_case(word));
    if language.keywords.split(' ').any(is) {
        KEYWORD
    } else if after.starts_with('(') || after.starts_with("!(") {
        NAME
    } else {
        Style::PLAIN
    }
}

/// Returns the length of a string; an unclosed one ends with its line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn diff_style(text: &str) -> Style {
    match text.as_bytes() {
        [b'+', ..] => Style::of(Colour::Green),
        [b'-', ..] => Style::of(Colour::Red),
        [b'@', b'@', ..] => Style::of(Colour::Cyan),
        _ => Style::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::marked;

    fn coloured(name: &str, code: &str) -> String {
        let mut highlighter = Highlighter::new(name);
        let lines: Vec<Line> = code.lines().map(|line| highlighter.line(line)).collect();
        assert_eq!(lines.iter().map(Line::plain).collect::<Vec<_>>(), code.lines().collect::<Vec<_>>());
        marked(&lines)
    }

    #[test]
    fn rust() {
        assert_eq!(
            coloured("rust", "pub fn a<'x>(s: &'x str) -> u8 { b(\"é\\\"\", 0x1f) } // é"),
            "{magenta|pub} {magenta|fn} a<'x>(s: &'x str) -> u8 { {blue|b}({green|\"é\\\"\"}, {cyan|0x1f}) } {dim|// é}\n"
        );
        assert_eq!(coloured("rs", "/* a\nb */ let"), "{dim|/* a}\n{dim|b */} {magenta|let}\n");
    }

    #[test]
    fn others() {
        assert_eq!(coloured("py", "x = '''a\nb''' # c"), "x = {green|'''a}\n{green|b'''} {dim|# c}\n");
        assert_eq!(coloured("json", "{\"a\": [1, true]}"), "{{green|\"a\"}: [{cyan|1}, {magenta|true}]}\n");
        assert_eq!(coloured("sql", "select 1 -- x"), "{magenta|select} {cyan|1} {dim|-- x}\n");
        assert_eq!(coloured("diff", "+a\n-b\n@@ c"), "{green|+a}\n{red|-b}\n{cyan|@@ c}\n");
        assert_eq!(coloured("what", "fn \"x\""), "fn \"x\"\n");
        assert_eq!(coloured("sh", "echo \"open"), "echo {green|\"open}\n");
    }
}
