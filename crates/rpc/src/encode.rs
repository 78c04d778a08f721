//! Encoding of messages as lines, straight into the write buffer.
//!
//! Nothing allocates except the growth of `out`. A value that fails or panics while it is
//! serialized leaves `out` unchanged.
// RPC-01: every line carries `"jsonrpc":"2.0"`. STDIO-04: every message is one line that ends with
// a line feed. STDIO-05: a message contains no other line break.

use crate::{ErrorObject, Id};
use serde::Serialize;
use serde_json::Error;

/// Writes a request. Params that serialize to `null`, such as `()`, are left out.
pub fn request<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &Id,
    method: &str,
    params: &P,
) -> Result<(), Error> {
    Line::with_id(out, id)?.call(method, params)
}

/// Writes a notification. Params that serialize to `null` are left out.
pub fn notification<P: Serialize + ?Sized>(out: &mut Vec<u8>, method: &str, params: &P) -> Result<(), Error> {
    Line::begin(out).call(method, params)
}

/// Writes a success response. `result` is present even if it is null.
// RPC-02
pub fn result<T: Serialize + ?Sized>(out: &mut Vec<u8>, id: &Id, result: &T) -> Result<(), Error> {
    let mut line = Line::with_id(out, id)?;
    line.text(br#","result":"#);
    line.value(result)?;
    line.end();
    Ok(())
}

/// Writes an error response.
pub fn error(out: &mut Vec<u8>, id: &Id, error: &ErrorObject) -> Result<(), Error> {
    let mut line = Line::with_id(out, id)?;
    line.text(br#","error":"#);
    line.value(error)?;
    line.end();
    Ok(())
}

/// A line under construction. Dropping it before `end` removes everything it wrote, so the buffer
/// never holds half a message, even if the caller's `Serialize` panics.
struct Line<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    ended: bool,
}

impl<'o> Line<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        Line::with(out, br#"{"jsonrpc":"2.0""#)
    }

    fn with_id(out: &'o mut Vec<u8>, id: &Id) -> Result<Self, Error> {
        let mut line = Line::with(out, br#"{"jsonrpc":"2.0","id":"#);
        line.value(id)?;
        Ok(line)
    }

    fn with(out: &'o mut Vec<u8>, opening: &[u8]) -> Self {
        let start = out.len();
        // Enough for most lines.
        out.reserve(128);
        out.extend_from_slice(opening);
        Line { out, start, ended: false }
    }

    fn text(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        serde_json::to_writer(&mut *self.out, value)
    }

    fn call<P: Serialize + ?Sized>(mut self, method: &str, params: &P) -> Result<(), Error> {
        self.text(br#","method":"#);
        self.value(method)?;
        let before = self.out.len();
        self.text(br#","params":"#);
        let from = self.out.len();
        self.value(params)?;
        if self.out.get(from..) == Some(b"null") {
            self.out.truncate(before);
        }
        self.end();
        Ok(())
    }

    fn end(mut self) {
        // STDIO-05: serde_json escapes line breaks in strings, so a raw one can only be whitespace
        // in a `RawValue` of the caller.
        let body = self.out.get_mut(self.start..).unwrap_or_default();
        let mut at = 0;
        while let Some(found) = body.get(at..).and_then(|rest| memchr::memchr2(b'\n', b'\r', rest)) {
            at += found;
            if let Some(byte) = body.get_mut(at) {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"}\n");
        self.ended = true;
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.out.truncate(self.start);
        }
    }
}
