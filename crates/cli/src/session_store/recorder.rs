//! Appends the messages of a turn to a history, without secrets.

use std::fs::File;
use std::io::{self, Write as _};

use attache::Flow;
use attache_host::secrets::{Mask, StreamMask};
use attache_rpc::{Frame, Id};
use serde_json::Value;

/// Appends to a history.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    /// The open prompt: only messages of turns are kept.
    prompt: Option<Id>,
    /// Id of the next prompt's request, from the caller.
    request: Option<String>,
    buffer: Vec<u8>,
    mask: Mask,
    /// The text of the open message, whose chunks may hold parts of one secret.
    masker: StreamMask,
    /// The session and the kind of the open message.
    message: Option<(Value, Value)>,
    /// The last chunk, if the end of its text is held back.
    held: Option<Chunk>,
}

/// A chunk of a message.
#[derive(Debug)]
struct Chunk {
    line: Value,
    text: String,
}

const TEXT: &str = "/params/update/content/text";

impl Chunk {
    /// Returns the chunk, and the session and kind of its message. `None` for other lines.
    fn read(line: &[u8]) -> Option<(Chunk, (Value, Value))> {
        // Most other lines need not be parsed.
        line.windows(7).find(|part| part == b"_chunk\"")?;
        let line: Value = serde_json::from_slice(line).ok()?;
        let kind = line.pointer("/params/update/sessionUpdate")?.clone();
        kind.as_str().filter(|kind| kind.ends_with("_chunk"))?;
        let text = line.pointer(TEXT)?.as_str()?.to_owned();
        let session = line.pointer("/params/sessionId").cloned().unwrap_or_default();
        Some((Chunk { line, text }, (session, kind)))
    }
}

impl Recorder {
    pub(super) fn new(file: File, mask: Mask) -> Recorder {
        let masker = StreamMask::new(mask.clone());
        Recorder {
            file,
            prompt: None,
            request: None,
            buffer: Vec::new(),
            mask,
            masker,
            message: None,
            held: None,
        }
    }

    /// Sets the id of the next prompt's request.
    pub(crate) fn set_request(&mut self, request: Option<String>) {
        self.request = request;
    }

    /// Records a line of the wire. Prompts and their answers get the time.
    pub(crate) fn line(&mut self, flow: Flow, line: &[u8], now: impl FnOnce() -> String) {
        match (flow, Frame::parse(line, 1024)) {
            (Flow::Out, Frame::Request { id, method, .. }) if method == "session/prompt" => {
                self.prompt = Some(id);
                self.stamp(line, now());
            }
            (Flow::In, Frame::Response { id, .. }) if self.prompt.as_ref() == Some(&id) => {
                self.stamp(line, now());
                self.prompt = None;
            }
            (_, Frame::Malformed(_)) => {}
            _ if self.prompt.is_some() => match Chunk::read(line) {
                Some((chunk, message)) => self.put_chunk(chunk, message),
                None => self.put(line),
            },
            _ => {}
        }
    }

    /// Writes a line with the members `at` and `request`, which no message has.
    fn stamp(&mut self, line: &[u8], now: String) {
        let Some(open) = line.trim_ascii_end().strip_suffix(b"}") else { return self.put(line) };
        let request =
            self.request.as_ref().map(|request| format!(",\"request\":{}", Value::from(request.as_str())));
        let stamp = format!(",\"at\":\"{now}\"{}}}", request.unwrap_or_default());
        self.put(&[open, stamp.as_bytes()].concat());
    }

    fn put(&mut self, line: &[u8]) {
        self.end_message();
        let line = String::from_utf8_lossy(line);
        self.buffer.extend_from_slice(self.mask.frame(&line).as_bytes());
        self.buffer.push(b'\n');
    }

    fn put_chunk(&mut self, mut chunk: Chunk, message: (Value, Value)) {
        if self.message.as_ref() != Some(&message) {
            self.end_message();
            self.message = Some(message);
        }
        chunk.text = self.masker.push(&chunk.text);
        if let Some(held) = self.held.take() {
            self.write_chunk(held);
        }
        match self.masker.is_empty() {
            true => self.write_chunk(chunk),
            false => self.held = Some(chunk),
        }
    }

    /// Writes the text that was held back.
    fn end_message(&mut self) {
        self.message = None;
        let rest = self.masker.finish();
        if let Some(mut held) = self.held.take() {
            held.text.push_str(&rest);
            self.write_chunk(held);
        }
    }

    fn write_chunk(&mut self, chunk: Chunk) {
        let Chunk { mut line, text, .. } = chunk;
        if let Some(place) = line.pointer_mut(TEXT) {
            *place = Value::String(text);
        }
        self.buffer.extend_from_slice(self.mask.frame(&line.to_string()).as_bytes());
        self.buffer.push(b'\n');
    }

    /// Writes the buffer to the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        written
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end_message();
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use attache_conn::private::{TempDir, create_log};
    use serde_json::json;

    use super::*;

    const KEY: &str = "sk-ant-REDACTED0123456789abcdef";

    /// Returns the lines that a recorder with a mask for `plain-secret-1` writes of a turn.
    fn recorded(lines: &[Value]) -> Vec<Value> {
        let dir = TempDir::new("attache-recorder").unwrap();
        let path = dir.path().join("history");
        let mask = Mask::new().with(["plain-secret-1"]);
        let mut recorder = Recorder::new(create_log(&path).unwrap(), mask);
        let prompt = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {} });
        recorder.line(Flow::Out, prompt.to_string().as_bytes(), || "now".to_owned());
        for line in lines {
            recorder.line(Flow::In, line.to_string().as_bytes(), || "now".to_owned());
            recorder.flush().unwrap();
        }
        drop(recorder);
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn chunk(session: &str, kind: &str, text: &str) -> Value {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": {
            "sessionUpdate": kind, "content": { "type": "text", "text": text },
        } } })
    }

    fn text_of(lines: &[Value]) -> String {
        lines.iter().filter_map(|line| line.pointer(TEXT)?.as_str()).collect()
    }

    #[test]
    fn a_key_in_several_chunks_is_hidden() {
        for width in [1, 2, 3, 5, 40] {
            let said = format!("your key {KEY} and plain-secret-1, é");
            let letters: Vec<char> = said.chars().collect();
            let lines: Vec<Value> = letters
                .chunks(width)
                .map(|part| chunk("s", "agent_message_chunk", &part.iter().collect::<String>()))
                .collect();
            let written = recorded(&lines);
            assert_eq!(text_of(&written), "your key *** and ***, é");
            assert_eq!(written.len(), lines.len(), "a line was lost");
        }
    }

    #[test]
    fn messages_do_not_mix_and_nothing_is_lost() {
        let lines = [
            chunk("s", "agent_thought_chunk", "hm"),
            chunk("s", "agent_message_chunk", "one "),
            chunk("other", "agent_message_chunk", "two"),
            json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "update": {
                "sessionUpdate": "tool_call_update", "toolCallId": "t", "rawOutput": format!("KEY={KEY}") } } }),
            chunk("s", "agent_message_chunk", "three"),
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": format!("bad key {KEY}") } }),
        ];
        let written = recorded(&lines);
        let texts: Vec<String> = written.iter().map(|line| text_of(std::slice::from_ref(line))).collect();
        assert_eq!(texts, ["hm", "one ", "two", "", "three", ""]);
        assert_eq!(written[3].pointer("/params/update/rawOutput").unwrap(), "KEY=***");
        assert_eq!(written[5].pointer("/error/message").unwrap(), "bad key ***");
        assert_eq!(written[5]["at"], "now");
    }
}
