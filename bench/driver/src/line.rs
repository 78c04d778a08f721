//! Looks at one line of JSON-RPC without building anything.

/// The members of the envelope that decide what a line is. Values are the bytes as written.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub id: Option<&'a [u8]>,
    /// Without its quotes.
    pub method: Option<&'a [u8]>,
    pub is_error: bool,
}

impl<'a> Head<'a> {
    /// Walks the top-level members; whatever is not an object gives an empty head.
    pub fn of(line: &'a [u8]) -> Head<'a> {
        let mut head = Head::default();
        let mut scan = Scan { bytes: line, at: 0 };
        if !scan.take(b'{') {
            return head;
        }
        loop {
            let Some(name) = scan.value() else { return head };
            if !scan.take(b':') {
                return head;
            }
            let Some(value) = scan.value() else { return head };
            match name {
                b"\"id\"" => head.id = Some(value),
                b"\"method\"" => head.method = value.get(1..value.len().saturating_sub(1)),
                b"\"error\"" => head.is_error = true,
                _ => {}
            }
            if !scan.take(b',') {
                return head;
            }
        }
    }

    pub fn answers(&self, id: &[u8]) -> bool {
        self.method.is_none() && self.id == Some(id)
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// Steps over one value of any kind and returns its bytes.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        let start = self.at;
        match self.bytes.get(start)? {
            b'"' => self.string(),
            b'{' | b'[' => self.nested(),
            _ => {
                while self.bytes.get(self.at).is_some_and(|b| !b",]} \t\r\n".contains(b)) {
                    self.at += 1;
                }
            }
        }
        self.bytes.get(start..self.at).filter(|value| !value.is_empty())
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                return;
            }
        }
    }

    fn nested(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

/// Where something was found in the last line. Peers write every update alike, so looking there
/// first makes the driver cost next to nothing per update.
#[derive(Default)]
pub struct Hint(usize);

impl Hint {
    fn find(&mut self, line: &[u8], wanted: &[u8], within: usize) -> Option<usize> {
        if line.get(self.0..self.0 + wanted.len()) != Some(wanted) {
            self.0 = position(&line[..line.len().min(within)], wanted)?;
        }
        Some(self.0 + wanted.len())
    }
}

/// Is this line a `session/update`?
pub fn is_update(line: &[u8], hint: &mut Hint) -> bool {
    hint.find(line, b"\"session/update\"", 96).is_some()
}

/// The eight digits with which the text of every chunk begins.
pub fn sequence(line: &[u8], hint: &mut Hint) -> Option<u64> {
    let start = hint.find(line, b"\"text\":\"", 600).or_else(|| hint.find(line, b"\"text\": \"", 600))?;
    let digits = line.get(start..start + 8)?;
    digits.iter().try_fold(0, |sum, d| d.is_ascii_digit().then(|| sum * 10 + u64::from(d - b'0')))
}

/// Finds the state idle of version 2, by where it stood before.
#[derive(Default)]
pub struct States {
    method: Hint,
    kind: Hint,
    state: Hint,
}

impl States {
    pub fn is_update(&mut self, line: &[u8]) -> bool {
        is_update(line, &mut self.method)
    }

    pub fn is_idle(&mut self, line: &[u8]) -> bool {
        let after = |at: Option<usize>, word: &[u8]| at.is_some_and(|at| line[at..].starts_with(word));
        after(self.kind.find(line, b"\"sessionUpdate\":\"", 600), b"state_update\"")
            && after(self.state.find(line, b"\"state\":\"", 600), b"idle\"")
    }
}

/// The string member `name`, wherever it stands, escapes left as they are.
pub fn text_member<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\"");
    let mut scan = Scan { bytes: line, at: 0 };
    loop {
        scan.at += position(&line[scan.at..], name.as_bytes())? + name.len();
        // The same word may stand there as a value first: `"type":"text","text":…`.
        if scan.take(b':') {
            return scan.value()?.strip_prefix(b"\"")?.strip_suffix(b"\"");
        }
    }
}

fn position(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_found_around_any_params() {
        let head =
            Head::of(br#" {"params":{"id":1,"a":["}",{"method":"no"}]}, "method" : "m" ,"id":"x\"y"}"#);
        assert_eq!(head.method, Some(&b"m"[..]));
        assert_eq!(head.id, Some(&br#""x\"y""#[..]));
        assert!(!head.is_error);
        let head = Head::of(br#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#);
        assert!(head.answers(b"7") && head.is_error);
        assert_eq!(Head::of(b"a log line"), Head::default());
        assert_eq!(Head::of(b"{\"id\""), Head::default());
    }

    #[test]
    fn updates_are_recognised_and_numbered() {
        let (mut at, mut text) = (Hint::default(), Hint::default());
        for line in [
            &br#"{"method":"session/update","params":{"content":{"text":"00000042xx"}}}"#[..],
            &br#"{"jsonrpc": "2.0", "method": "session/update", "params": {"text": "00000042xx"}}"#[..],
        ] {
            assert!(is_update(line, &mut at));
            assert_eq!(sequence(line, &mut text), Some(42));
        }
        let mut states = States::default();
        for (line, is_idle) in [
            (&br#"{"params":{"update":{"sessionUpdate":"user_message","state":"idle"}}}"#[..], false),
            (&br#"{"params":{"update":{"sessionUpdate":"state_update","state":"running"}}}"#[..], false),
            (&br#"{"params":{"update":{"sessionUpdate":"state_update","state":"idle"}}}"#[..], true),
        ] {
            assert_eq!(states.is_idle(line), is_idle);
        }
        assert!(!is_update(br#"{"id":1,"result":{}}"#, &mut at));
        assert_eq!(text_member(br#"{"result":{"sessionId": "s-1"}}"#, "sessionId"), Some(&b"s-1"[..]));
        assert_eq!(text_member(br#"{"type":"text","text":"read 1"}"#, "text"), Some(&b"read 1"[..]));
        assert_eq!(text_member(br#"{"type":"text"}"#, "text"), None);
    }
}
