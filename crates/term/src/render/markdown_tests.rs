use super::*;
use crate::render::style::{marked, plain};

const FULL: Look = Look { colours: true, unicode: true };
const ASCII: Look = Look { colours: false, unicode: false };

fn shown(text: &str, columns: usize) -> String {
    plain(&render(text, columns, Style::PLAIN, FULL))
}

#[test]
fn headings_paragraphs_and_emphasis() {
    let text =
        "# Title\n\nSome *soft*, **strong**, ~~gone~~ and `code` text.\nSame paragraph.\n\n## Next\nText.\n";
    assert_eq!(
        marked(&render(text, 80, Style::PLAIN, FULL)),
        "{bold underline blue|Title}\n\n\
         Some {italic|soft}, {bold|strong}, {strike|gone} and {cyan|code} text.\nSame paragraph.\n\n\
         {bold blue|Next}\n\nText.\n"
    );
}

#[test]
fn lists_nest_and_wrap_under_their_text() {
    let text = "Intro:\n\n- one two three four\n- two\n  - inner\n  - more\n- three\n\n3. third\n4. fourth\n";
    assert_eq!(
        shown(text, 16),
        "Intro:\n\n• one two three\n  four\n• two\n  • inner\n  • more\n• three\n\n3. third\n4. fourth\n"
    );
    assert_eq!(shown("- a\n\n  b\n\n- c\n", 20), "• a\n\n  b\n\n• c\n");
    assert_eq!(shown("- [x] done\n- [ ] open\n", 20), "• ☑ done\n• ☐ open\n");
    assert_eq!(shown("1. a\n   ```\n   code\n   ```\n2. b\n", 20), "1. a\n     code\n2. b\n");
}

#[test]
fn code_blocks_keep_their_blanks_and_have_colours() {
    let text = "Look:\n```rust\nfn main() {\n    x();\n}\n```\ndone";
    assert_eq!(
        marked(&render(text, 40, Style::PLAIN, FULL)),
        "Look:\n\n  {magenta|fn} {blue|main}() {\n      {blue|x}();\n  }\n\ndone\n"
    );
    // A fence that is still open is code already.
    assert_eq!(shown("```\na  b", 40), "  a  b\n");
}

#[test]
fn tables_fit_the_width() {
    let text = "| Name | What it is |\n|:--|--:|\n| a | first thing |\n| bb | x |\n";
    assert_eq!(
        shown(text, 40),
        "Name │  What it is\n─────┼────────────\na    │ first thing\nbb   │           x\n"
    );
    assert_eq!(
        shown(text, 14),
        "Name │ What it\n─────┼────────\na    │   first\n     │   thing\nbb   │       x\n"
            .replace("What it\n", "What it\n     │      is\n")
    );
    assert_eq!(
        shown(text, 9),
        "Name: a\nWhat it\n  is:\n  first\n  thing\n\nName:\n  bb\nWhat it\n  is: x\n"
    );
}

#[test]
fn wide_characters_count_double() {
    assert_eq!(shown("| 日本 | b |\n|--|--|\n| a | c |\n", 40), "日本 │ b\n─────┼──\na    │ c\n");
    assert_eq!(shown("日本語 日本語", 7), "日本語\n日本語\n");
}

#[test]
fn links_say_where_they_lead() {
    assert_eq!(shown("[docs](https://x.y/z) <https://a.b>", 60), "docs (https://x.y/z) https://a.b\n");
    assert_eq!(shown("![pic](a.png)", 60), "pic (a.png)\n");
}

#[test]
fn quotes_rules_and_tags() {
    assert_eq!(shown("> a\n> b\n\nc\n\n---\n\nd", 20), format!("▌ a\n▌ b\n\nc\n\n{}\n\nd\n", "─".repeat(20)));
    assert_eq!(shown("Vec<T> and <b>x</b>", 40), "Vec<T> and <b>x</b>\n");
}

#[test]
fn ascii_terminals_get_ascii() {
    let text = "# Tïtle\n\n- “a”\n\n> q\n\n| x | y |\n|--|--|\n| 1 | 2 |\n";
    let out = plain(&render(text, 30, Style::PLAIN, ASCII));
    assert_eq!(out, "# Title\n\n- \"a\"\n\n> q\n\nx | y\n--+--\n1 | 2\n");
    assert!(out.is_ascii());
}

#[test]
fn agents_cannot_write_escape_sequences() {
    for text in
        ["\x1b[2J\x1b]0;x\x07hi", "`\x1b[31m`", "```\n\x1b[31mred\n```", "[\x1b[1m](\x1b[2J)", "&#27;[31m"]
    {
        let out = shown(text, 40);
        assert!(!out.contains('\x1b'), "{text:?} gave {out:?}");
    }
}

#[test]
fn only_the_last_block_can_still_change() {
    for (text, at) in [
        ("", 0),
        ("one paragraph", 0),
        ("para\n\nnext", 0),
        ("para\n\nnext\n", 6),
        ("- a\n- b\n- c", 0),
        ("# h\ntext\n", 4),
        ("a\n\n```\ncode\n\nmore", 3),
        ("| a |\n|--|\n|", 0),
        ("a\n\n---\n", 3),
        ("a\n\n    indented\n", 3),
    ] {
        assert_eq!(settled(text), at, "{text:?}");
    }
    // Whatever is settled looks the same when the rest has come.
    let whole = "# T\n\npara *x*\n\n- a\n- b\n\n```rs\nfn x\n\ny\n```\n| a | b |\n|-|-|\n| 1 | 2 |\n\nend\n";
    for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
        let at = settled(&whole[..cut]);
        let (before, after) = whole.split_at(at);
        let mut parts = shown(before, 40).trim_end().to_owned();
        if !parts.is_empty() {
            parts.push_str("\n\n");
        }
        assert_eq!(parts + &shown(after, 40), shown(whole, 40), "cut at {cut}, settled {at}");
    }
}

#[test]
fn open_fences_are_found() {
    assert_eq!(open_fence("a\n```rust\ncode\n"), Some("```rust"));
    assert_eq!(open_fence("```\ncode\n```\n"), None);
    assert_eq!(open_fence("````\n```\n"), Some("````"));
    assert_eq!(open_fence("~~~ x\n```\n"), Some("~~~ x"));
    assert_eq!(open_fence("```\n``` not the end\n"), Some("```"));
}

#[test]
fn whatever_is_written_fits_and_is_harmless() {
    const PIECES: [&str; 30] = [
        "# ",
        "- ",
        "1. ",
        "> ",
        "```",
        "```rust\n",
        "~~~\n",
        "|",
        "|--|--|\n",
        "| a | b |\n",
        "**",
        "*",
        "`",
        "[x](",
        ")",
        "\n",
        "\n\n",
        "    ",
        "word ",
        "日本",
        "e\u{301}",
        "👩‍👩‍👧",
        "\x1b[31m",
        "\x1b]0;t\x07",
        "\r",
        "\t",
        "<b>",
        "&#27;",
        "---\n",
        "- [x] ",
    ];
    let mut seed = 7_u64;
    let mut next = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    for _ in 0..3_000 {
        let text: String = (0..next(40)).map(|_| PIECES[next(PIECES.len())]).collect();
        let columns = 8 + next(60);
        for look in [FULL, ASCII] {
            for line in render(&text, columns, Style::PLAIN, look) {
                let plain = line.plain();
                assert!(!plain.chars().any(char::is_control), "{text:?} gave {plain:?}");
                // A wide character is never cut in two.
                assert!(line.width() <= columns + 1, "{text:?} in {columns} gave {plain:?}");
                assert!(look.unicode || plain.is_ascii(), "{text:?} gave {plain:?}");
            }
        }
        assert!(text.is_char_boundary(settled(&text)), "{text:?}");
    }
}
