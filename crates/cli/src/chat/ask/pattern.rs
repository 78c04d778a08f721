//! The `pattern` of a form's text: the part of regular expressions that people use in schemas.
//!
//! A pattern that goes beyond it is not judged: the agent checks again anyway (ELIC-12), and a good answer must not be refused here.

use std::slice::from_ref;

/// Steps after which a pattern is given up: some take for ever.
const STEPS: usize = 50_000;
/// The longest text that is judged.
const LONGEST: usize = 1_000;

#[derive(Debug, Clone)]
enum Node {
    Char(char),
    Any,
    Class(Vec<Item>, bool),
    Start,
    End,
    Group(Vec<Vec<Node>>),
    Repeat(Box<Node>, usize, usize),
}

#[derive(Debug, Clone)]
enum Item {
    Range(char, char),
    /// `d`, `w` or `s`, and whether it is the opposite.
    Kind(char, bool),
}

impl Item {
    fn has(&self, c: char) -> bool {
        match *self {
            Item::Range(from, to) => (from..=to).contains(&c),
            Item::Kind(kind, opposite) => {
                let is = match kind {
                    'd' => c.is_ascii_digit(),
                    'w' => c.is_ascii_alphanumeric() || c == '_',
                    _ => c.is_whitespace(),
                };
                is != opposite
            }
        }
    }
}

/// Whether a text fits a pattern; `None` if that is not known here.
pub(super) fn fits(pattern: &str, text: &str) -> Option<bool> {
    let mut reader = Reader { rest: pattern.chars().collect(), at: 0 };
    let all = reader.alternatives()?;
    if reader.at < reader.rest.len() {
        return None;
    }
    let text: Vec<char> = text.chars().take(LONGEST + 1).collect();
    if text.len() > LONGEST {
        return None;
    }
    let mut steps = STEPS;
    let node = Node::Group(all);
    // A pattern may fit anywhere in the text, unless it says otherwise.
    let found = (0..=text.len()).any(|at| run(from_ref(&node), &text, at, &mut steps, &mut |_, _| true));
    (found || steps > 0).then_some(found)
}

struct Reader {
    rest: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let is = self.peek() == Some(c);
        self.at += usize::from(is);
        is
    }

    fn alternatives(&mut self) -> Option<Vec<Vec<Node>>> {
        let mut all = vec![Vec::new()];
        while let Some(c) = self.peek() {
            match c {
                ')' => break,
                '|' => {
                    self.at += 1;
                    all.push(Vec::new());
                }
                _ => {
                    let node = self.atom()?;
                    let node = self.repeated(node)?;
                    all.last_mut()?.push(node);
                }
            }
        }
        Some(all)
    }

    fn atom(&mut self) -> Option<Node> {
        Some(match self.next()? {
            '.' => Node::Any,
            '^' => Node::Start,
            '$' => Node::End,
            '[' => self.class()?,
            '(' => {
                if self.eat('?') && !self.eat(':') {
                    return None;
                }
                let inner = self.alternatives()?;
                if !self.eat(')') {
                    return None;
                }
                Node::Group(inner)
            }
            '\\' => match self.escape()? {
                Item::Range(c, _) => Node::Char(c),
                kind => Node::Class(vec![kind], false),
            },
            '*' | '+' | '?' | '{' | ')' => return None,
            c => Node::Char(c),
        })
    }

    fn escape(&mut self) -> Option<Item> {
        let one = |c: char| Item::Range(c, c);
        Some(match self.next()? {
            c @ ('d' | 'w' | 's') => Item::Kind(c, false),
            c @ ('D' | 'W' | 'S') => Item::Kind(c.to_ascii_lowercase(), true),
            'n' => one('\n'),
            't' => one('\t'),
            'r' => one('\r'),
            // Boundaries, references back, code points: somebody else's business.
            c if c.is_ascii_alphanumeric() => return None,
            c => one(c),
        })
    }

    fn class(&mut self) -> Option<Node> {
        let opposite = self.eat('^');
        let mut items = Vec::new();
        while !self.eat(']') {
            let item = match self.next()? {
                '\\' => self.escape()?,
                c => Item::Range(c, c),
            };
            let item = match item {
                Item::Range(from, _)
                    if self.peek() == Some('-') && self.rest.get(self.at + 1) != Some(&']') =>
                {
                    self.at += 1;
                    match self.next()? {
                        '\\' => match self.escape()? {
                            Item::Range(to, _) => Item::Range(from, to),
                            Item::Kind(..) => return None,
                        },
                        to => Item::Range(from, to),
                    }
                }
                item => item,
            };
            items.push(item);
        }
        Some(Node::Class(items, opposite))
    }

    fn repeated(&mut self, node: Node) -> Option<Node> {
        let (least, most) = match self.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                self.at += 1;
                let least = self.number()?;
                let most = match self.eat(',') {
                    false => least,
                    true if self.peek() == Some('}') => usize::MAX,
                    true => self.number()?,
                };
                if self.peek() != Some('}') || most < least {
                    return None;
                }
                (least, most)
            }
            _ => return Some(node),
        };
        self.at += 1;
        // How eager it is does not matter for whether it fits.
        self.eat('?');
        Some(Node::Repeat(Box::new(node), least, most))
    }

    fn number(&mut self) -> Option<usize> {
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        digits.parse().ok().filter(|number| *number <= LONGEST)
    }
}

/// What comes behind a part that fits.
type Then<'a> = &'a mut dyn FnMut(usize, &mut usize) -> bool;

fn run(nodes: &[Node], text: &[char], at: usize, steps: &mut usize, then: Then<'_>) -> bool {
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    let Some((first, rest)) = nodes.split_first() else { return then(at, steps) };
    let one = |fits: bool, steps: &mut usize, then: Then<'_>| fits && run(rest, text, at + 1, steps, then);
    match first {
        Node::Char(c) => one(text.get(at) == Some(c), steps, then),
        Node::Any => one(text.get(at).is_some_and(|c| *c != '\n'), steps, then),
        Node::Class(items, opposite) => {
            let fits = text.get(at).is_some_and(|c| items.iter().any(|item| item.has(*c)) != *opposite);
            one(fits, steps, then)
        }
        Node::Start => at == 0 && run(rest, text, at, steps, then),
        Node::End => at == text.len() && run(rest, text, at, steps, then),
        Node::Group(all) => all.iter().any(|nodes| {
            run(nodes, text, at, steps, &mut |at, steps| run(rest, text, at, steps, &mut *then))
        }),
        Node::Repeat(node, least, most) => {
            let again = Again { node, least: *least, most: *most, rest, text };
            again.run(0, at, steps, then)
        }
    }
}

struct Again<'a> {
    node: &'a Node,
    least: usize,
    most: usize,
    rest: &'a [Node],
    text: &'a [char],
}

impl Again<'_> {
    fn run(&self, count: usize, at: usize, steps: &mut usize, then: Then<'_>) -> bool {
        let more = count < self.most
            && run(from_ref(self.node), self.text, at, steps, &mut |next, steps| {
                // What takes nothing can be taken for ever.
                (next > at || count < self.least) && self.run(count + 1, next, steps, &mut *then)
            });
        more || (count >= self.least && run(self.rest, self.text, at, steps, then))
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn usual_patterns_are_judged() {
        for (pattern, good, bad) in [
            ("^[a-z]+$", "abc", "Abc"),
            ("^[A-Z]{2}-\\d{3,5}$", "AB-1234", "AB-12"),
            ("^(main|release/\\d+(\\.\\d+)*)$", "release/1.2.3", "release/"),
            ("^(?:a|b)?c$", "c", "dc"),
            ("b", "abc", "ac"),
            ("^[^\\s@]+@[^\\s@]+$", "a@b", "a b@c"),
            ("^\\w[\\w.-]*$", "a.b-c", "-a"),
            ("^[0-9a-fA-F]{8}$", "deadBEEF", "deadbee"),
            ("^.{0,3}$", "日本語", "abcd"),
            ("^a+?b$", "aab", "aac"),
            ("^$", "", "x"),
            ("^[-a]+$", "a-a", "b"),
            ("^\\$\\d+$", "$5", "5"),
        ] {
            assert_eq!(fits(pattern, good), Some(true), "{pattern} {good}");
            assert_eq!(fits(pattern, bad), Some(false), "{pattern} {bad}");
        }
    }

    #[test]
    fn what_goes_beyond_is_not_judged() {
        for pattern in ["^(?=a)b", "(a)\\1", "\\bword", "[", "(", "a)", "*", "a{2", "a{3,1}", "\\u0041"] {
            assert_eq!(fits(pattern, "anything"), None, "{pattern}");
        }
        assert_eq!(fits("^a*$", &"a".repeat(5_000)), None);
    }

    #[test]
    fn a_pattern_that_takes_for_ever_is_given_up() {
        assert_eq!(fits("^(a+)+$", &format!("{}b", "a".repeat(60))), None);
        assert_eq!(fits("^(a*)*$", "aaa"), Some(true));
    }
}
