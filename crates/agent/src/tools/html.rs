//! Web pages as plain text.
//!
//! One pass over the bytes, with no lookahead beyond a name or a character reference, because a
//! page may try to waste time.

/// Returns the text of a page without its markup, at most as long as the page: enough to read it,
/// not to render it.
pub(super) fn to_text(html: &str) -> String {
    let mut page = Page { html, at: 0, steps: 0 };
    page.convert()
}

/// Elements whose content is not text for a reader.
const HIDDEN: &str = "script style noscript svg template";
/// Elements that begin and end a line.
const BLOCKS: &str = "address article aside blockquote body br dd details div dl dt fieldset figcaption figure footer form \
    h1 h2 h3 h4 h5 h6 head header hr html li main nav ol option p pre section summary table title tr ul";
/// Longer than every name above.
const LONGEST_NAME: usize = 16;
/// Longer than every character reference that is known, from `&` to `;`.
const LONGEST_REFERENCE: usize = 12;

struct Page<'a> {
    html: &'a str,
    /// The position.
    at: usize,
    /// How many bytes were looked at, some of them twice; tests compare it with the length.
    steps: usize,
}

/// A tag.
struct Tag {
    name: Option<&'static str>,
    closes: bool,
    /// Whether it ends with `/>`.
    empty: bool,
}

impl Page<'_> {
    fn convert(&mut self) -> String {
        let mut text = Text::default();
        while let Some(byte) = self.peek(0) {
            match byte {
                b'<' => self.markup(&mut text),
                b'&' => match self.reference() {
                    Some(char) => text.push(char),
                    None => {
                        self.skip(1);
                        text.push('&');
                    }
                },
                _ => {
                    let Some(char) = self.html.get(self.at..).and_then(|rest| rest.chars().next()) else {
                        break;
                    };
                    self.skip(char.len_utf8());
                    text.push(char);
                }
            }
        }
        text.out
    }

    /// At `<`: a comment, a declaration, a tag, or the character itself.
    fn markup(&mut self, text: &mut Text) {
        match (self.peek(1), self.peek(2), self.peek(3)) {
            (Some(b'!'), Some(b'-'), Some(b'-')) => self.comment(),
            (Some(b'!' | b'?'), ..) => self.skip_past(b'>'),
            (Some(b'/'), Some(byte), _) if byte.is_ascii_alphabetic() => self.element(text),
            (Some(byte), ..) if byte.is_ascii_alphabetic() => self.element(text),
            _ => {
                self.skip(1);
                text.push('<');
            }
        }
    }

    fn element(&mut self, text: &mut Text) {
        let tag = self.tag();
        let Some(name) = tag.name else { return };
        if BLOCKS.split(' ').any(|block| block == name) {
            text.push('\n');
        } else if !(tag.closes || tag.empty && name == "svg") {
            self.skip_hidden(name);
        }
    }

    /// Reads a tag to its end. A `>` inside of quotes does not end it.
    fn tag(&mut self) -> Tag {
        self.skip(1);
        let closes = self.peek(0) == Some(b'/');
        if closes {
            self.skip(1);
        }
        let name = self.name();
        let mut before = b' ';
        let mut quote = None;
        while let Some(byte) = self.next() {
            match (quote, byte) {
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'>') => break,
                // Only a value is quoted.
                (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
                (None, _) => {}
            }
            if !byte.is_ascii_whitespace() {
                before = byte;
            }
        }
        Tag { name, closes, empty: before == b'/' }
    }

    /// Reads the name of an element, if it is a known one.
    fn name(&mut self) -> Option<&'static str> {
        let mut name = [0; LONGEST_NAME];
        let mut length = 0;
        while let Some(byte) = self.peek(0)
            && !byte.is_ascii_whitespace()
            && !matches!(byte, b'>' | b'/')
        {
            if let Some(place) = name.get_mut(length) {
                *place = byte.to_ascii_lowercase();
            }
            length += 1;
            self.skip(1);
        }
        let name = name.get(..length)?;
        BLOCKS.split(' ').chain(HIDDEN.split(' ')).find(|known| known.as_bytes() == name)
    }

    /// Skips the content of an element, and its end. Without an end everything belongs to it.
    fn skip_hidden(&mut self, name: &str) {
        while let Some(byte) = self.next() {
            if byte != b'<' || self.peek(0) != Some(b'/') {
                continue;
            }
            self.skip(1);
            let rest = self.html.as_bytes().get(self.at..).unwrap_or_default();
            self.steps += name.len();
            let ends = rest.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
                && !rest.get(name.len()).is_some_and(u8::is_ascii_alphanumeric);
            if ends {
                return self.skip_past(b'>');
            }
        }
    }

    /// Skips a comment. `<!-->` and `<!--->` are whole ones.
    fn comment(&mut self) {
        self.skip(2);
        let mut dashes = 0;
        while let Some(byte) = self.next() {
            match byte {
                b'-' => dashes += 1,
                b'>' if dashes >= 2 => return,
                _ => dashes = 0,
            }
        }
    }

    /// At `&`: reads a character reference, if it is a known one.
    fn reference(&mut self) -> Option<char> {
        let rest = self.html.as_bytes().get(self.at..)?;
        let rest = rest.get(..LONGEST_REFERENCE).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == b';');
        self.steps += end.unwrap_or(rest.len());
        let end = end?;
        let char = match rest.get(1..end)? {
            b"nbsp" => ' ',
            b"lt" => '<',
            b"gt" => '>',
            b"amp" => '&',
            b"quot" => '"',
            b"apos" => '\'',
            b"ndash" => '–',
            b"mdash" => '—',
            b"hellip" => '…',
            [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
            [b'#', digits @ ..] => number(digits, 10)?,
            _ => return None,
        };
        self.skip(end + 1);
        Some(char)
    }

    fn peek(&mut self, ahead: usize) -> Option<u8> {
        self.steps += 1;
        self.html.as_bytes().get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek(0)?;
        self.skip(1);
        Some(byte)
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn skip_past(&mut self, end: u8) {
        while let Some(byte) = self.next() {
            if byte == end {
                return;
            }
        }
    }
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    if !digits.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    char::from_u32(number).filter(|char| *char != '\0')
}

/// Text with single spaces between words and at most one empty line in a row.
#[derive(Default)]
struct Text {
    out: String,
    blank: bool,
    line_ends: usize,
}

impl Text {
    fn push(&mut self, char: char) {
        if char == '\n' {
            self.line_ends += 1;
        } else if char.is_whitespace() {
            self.blank = true;
        } else {
            // Whitespace before the first word is dropped.
            if !self.out.is_empty() {
                match self.line_ends {
                    0 if self.blank => self.out.push(' '),
                    0 => {}
                    1 => self.out.push('\n'),
                    _ => self.out.push_str("\n\n"),
                }
            }
            (self.blank, self.line_ends) = (false, 0);
            self.out.push(char);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Converts a page and checks the invariants.
    fn checked(html: &str) -> String {
        let mut page = Page { html, at: 0, steps: 0 };
        let text = page.convert();
        // No byte is looked at more often than the lookahead of a name or a reference asks for.
        let most = html.len() * (LONGEST_REFERENCE + LONGEST_NAME) + 8;
        assert!(page.steps <= most, "{} steps for {} bytes", page.steps, html.len());
        assert!(text.len() <= html.len(), "{} bytes of text from {}", text.len(), html.len());
        assert_eq!(text.trim(), text);
        text
    }

    #[test]
    fn pages_become_text() {
        let page = "<html><head><style>p{}</style><script>if (a<b) {}</script></head><body><!-- <p>no --><h1>Title</h1>\
                    <p>One &amp; <b>two</b><br>three</p><ul><li>x</li></ul></body></html>";
        assert_eq!(checked(page), "Title\n\nOne & two\nthree\n\nx");
        assert_eq!(checked("a < b"), "a < b");
        assert_eq!(checked("<"), "<");
        assert_eq!(checked("a <b"), "a");
        assert_eq!(checked("<a title='x > y' href=\"z\">a</a> > b"), "a > b");
        assert_eq!(checked("<p title=it's>a"), "a");
        assert_eq!(checked("<!DOCTYPE html><?xml version='1'?><!-->a<!--->b<!-- - -- c --> d"), "ab d");
        assert_eq!(checked("<SCRIPT>a</scripted></Script >b<svg/>c<svg>d</svg>e"), "bce");
        assert_eq!(checked("<script/>a</script>b"), "b");
    }

    #[test]
    fn character_references_are_read_once() {
        assert_eq!(checked("&amp;lt; &lt;b&gt; &#60;&#x3C; &nbsp; x&#8212;y"), "&lt; <b> << x—y");
        assert_eq!(checked("& &; &x &unknown; &#; &#x; &#xD800; &#0; &#99999999; &#+5;"), {
            "& &; &x &unknown; &#; &#x; &#xD800; &#0; &#99999999; &#+5;"
        });
    }

    #[test]
    fn hostile_pages_take_one_pass() {
        let unit = |text: &str| checked(&text.repeat(240_000));
        assert_eq!(unit("<script></script>"), "");
        assert_eq!(unit("<script>"), "");
        assert_eq!(unit("<script></scrip"), "");
        assert_eq!(unit("<!--"), "");
        assert_eq!(unit("<!-- --"), "");
        assert_eq!(unit("<div><svg></div>"), "");
        assert_eq!(unit("<div>"), "");
        assert_eq!(unit("<p a='"), "");
        assert_eq!(unit("&").len(), 240_000);
        assert_eq!(unit("<").len(), 240_000);
        assert_eq!(unit("&#").len(), 480_000);
        assert_eq!(unit("</"), "</".repeat(240_000));
        assert_eq!(unit("<a"), "");
    }

    proptest! {
        #[test]
        fn every_text_is_converted(html in any::<String>()) {
            checked(&html);
        }

        #[test]
        fn every_mixture_of_markup_is_converted(
            parts in proptest::collection::vec(
                prop::sample::select(vec![
                    "<", ">", "</", "/>", "<!--", "-->", "-", "<!", "<?", "\"", "'", "=", "&", ";", "&#", "&#x2014;", "&lt;",
                    "<script>", "</script>", "<style", "</style>", "<svg/>", "<p>", "</p>", "<br/>", "a", " ", "\n", "é", "€", "😀",
                ]),
                0..200,
            )
        ) {
            checked(&parts.concat());
        }
    }
}
