use super::*;

const FULL: Look = Look { colours: true, unicode: true };
const ASCII: Look = Look { colours: true, unicode: false };

/// Sequences and characters that must not arrive, each with the text that remains.
const HOSTILE: &[(&str, &str)] = &[
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq...\x1b\\after", "after"),
    ("\x1b_apc\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c", "abc"),
    ("\x1b(Bx\x1b=y\x1bcz", "xyz"),
    ("a\u{9b}31mb\u{9d}0;t\u{9c}c", "abc"),
    ("a\u{90}q\u{9c}b\u{98}q\x1b\\c\u{9e}q\x07d\u{9f}q\u{9c}e\u{85}f", "abcdef"),
    ("bell\x07 back\x08space \x00nul del\x7f vt\x0bff\x0c", "bell backspace nul del vtff"),
    ("over\u{202e}ride \u{2066}iso\u{2069} \u{200e}\u{200f}\u{61c}end", "override iso end"),
    ("pass\u{200b}wo\u{2060}rd\u{feff} soft\u{ad}hyphen", "password softhyphen"),
    ("tag\u{e0041}\u{e0042}\u{e007f} note\u{fff9}a\u{fffa}b\u{fffb}", "tag noteab"),
    ("one\u{2028}two\u{2029}three", "one\ntwo\nthree"),
    ("\x1b[", ""),
    ("\x1b", ""),
    ("\x1b\x1b[2Jx", "x"),
    ("\x1b[12\u{e9}t", "\u{e9}t"),
    ("\x1b]never ends\nnext", "\nnext"),
    ("\x1b]one\x1b[2Jtwo", "two"),
    ("a\tb\n\tc", "a   b\n    c"),
    ("cr\r\nlf", "cr\nlf"),
    ("10%\r20%\r", "10%\n20%\n"),
    // Latin words need no joiners; Persian, Hindi and emoji do.
    ("pay\u{200d}pal", "paypal"),
    ("\u{645}\u{6cc}\u{200c}\u{62e}", "\u{645}\u{6cc}\u{200c}\u{62e}"),
    ("\u{1f468}\u{200d}\u{1f469}", "\u{1f468}\u{200d}\u{1f469}"),
    ("\u{1f468}\u{200d}\u{200d}\u{200d}x", "\u{1f468}\u{200d}x"),
    ("\u{2764}\u{fe0f}\u{fe0f}\u{fe0f}x", "\u{2764}\u{fe0f}x"),
    ("a\u{fe00}\u{fe01}\u{e0100}\u{e0101}b", "a\u{fe00}b"),
    // A mark at the beginning would change the character before it.
    ("\u{336}\u{336}x \u{336}y", "x y"),
    (
        "z\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}!",
        "z\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}!",
    ),
];

#[test]
fn escape_sequences_and_controls_do_not_reach_the_terminal() {
    for (dirty, cleaned) in HOSTILE {
        assert_eq!(clean(dirty, FULL), *cleaned, "{dirty:?}");
        let again = clean(&clean(dirty, FULL), FULL).into_owned();
        assert_eq!(again, *cleaned, "clean twice: {dirty:?}");
    }
}

#[test]
fn sequences_are_found_also_in_pieces() {
    for (dirty, _) in HOSTILE {
        let filtered = |pieces: &[&str]| {
            let (mut out, mut filter) = (String::new(), Filter::default());
            pieces.iter().for_each(|piece| filter.push(piece, &mut |c| out.push(c)));
            filter.finish(&mut |c| out.push(c));
            out
        };
        let whole = filtered(&[dirty]);
        assert!(!whole.chars().any(|c| is_forbidden(c) && !matches!(c, '\n' | '\t')), "{whole:?}");
        for at in (0..dirty.len()).filter(|at| dirty.is_char_boundary(*at)) {
            assert_eq!(filtered(&[&dirty[..at], &dirty[at..]]), whole, "{dirty:?} at {at}");
        }
        let letters: Vec<String> = dirty.chars().map(String::from).collect();
        assert_eq!(filtered(&letters.iter().map(String::as_str).collect::<Vec<_>>()), whole, "{dirty:?}");
    }
}

#[test]
fn no_character_gets_through_that_is_not_harmless() {
    let planes = (0..0x3_0000).chain(0xe_0000..0xe_2000).chain([0xf_fffe, 0x10_ffff]);
    for c in planes.filter_map(char::from_u32) {
        let text = format!("a{c}b");
        for shown in [clean(&text, FULL), reveal(&text, FULL), line(&text), clean(&text, ASCII)] {
            let bad = shown.chars().find(|c| is_forbidden(*c) && !matches!(c, '\n' | '\t'));
            assert_eq!(bad, None, "U+{:04X} as {shown:?}", u32::from(c));
        }
        assert!(clean(&text, ASCII).is_ascii());
        assert!(!json(&text).chars().any(is_forbidden));
    }
}

#[test]
fn what_is_decided_about_is_shown_with_all_its_tricks() {
    assert_eq!(reveal("rm\x1b[2K\u{202e}x\u{200b}\x7f", FULL), "rm^[[2K<U+202E>x<U+200B>^?");
    assert_eq!(reveal("plain\ntext", FULL), "plain\ntext");
    assert_eq!(reveal("e\u{301}\x07", FULL), "e\u{301}^G");
    assert_eq!(reveal("a\rb\u{2028}c\u{ad}", FULL), "a^Mb<U+2028>c<U+00AD>");
    assert_eq!(reveal("p\u{430}ypal", ASCII), "p<U+0430>ypal");
}

#[test]
fn in_a_line_of_several_parts_no_part_hides_another() {
    // The title would swallow the next word, or everything up to the path.
    assert_eq!(line("x\x1b[ (completed)"), "x^[[ (completed)");
    assert_eq!(line("x\x1b] (denied) \x07y"), "x^[] (denied) ^Gy");
    assert_eq!(line("\u{9b}2J\u{9d}t\u{9c}"), "<U+009B>2J<U+009D>t<U+009C>");
    assert_eq!(line("a\rb\r\nc\td"), "a^Mb\nc\td");
    // Programs colour their messages, and nothing is lost with the colours.
    assert_eq!(line("\x1b[1;31merror\x1b[0m: \u{9b}38:5:1mno"), "error: no");
    assert_eq!(line("over\u{202e}ride"), "override");
}

#[test]
fn json_keeps_its_value() {
    let text = "{\"a\u{9b}\u{7f}\u{202e}\u{e0041}é\u{1f600}\":\t1\r}";
    let shown = json(text);
    assert_eq!(shown, "{\"a\\u009b\\u007f\\u202e\\udb40\\udc41é\u{1f600}\": 1 }");
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    assert!(value(text).is_some());
    assert_eq!(value(&shown), value(text));
}

#[test]
fn one_line_has_no_blanks_to_hide_behind() {
    assert_eq!(inline("a\n\n  b\t\tc\r d", FULL), "a b c d");
}
