//! As little ACP as the scenarios need, typed with serde, one blocking thread. There is no
//! concurrency, no cancelling and no error path worth the name: this is a bound to aim at, not
//! something to build on.

pub mod messages;

use messages::Envelope;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Reads and writes lines; output is buffered until it has to be flushed.
pub struct Wire<R, W> {
    input: BufReader<R>,
    out: W,
    buffer: Vec<u8>,
}

impl<R: Read, W: Write> Wire<R, W> {
    pub fn new(input: R, out: W) -> Self {
        Wire { input: BufReader::with_capacity(64 << 10, input), out, buffer: Vec::with_capacity(128 << 10) }
    }

    /// Reads a line, after everything gathered has been written if that means waiting.
    pub fn receive(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        if self.input.buffer().is_empty() {
            self.flush()?;
        }
        line.clear();
        Ok(self.input.read_until(b'\n', line)? > 0)
    }

    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.buffer, message)?;
        self.buffer.push(b'\n');
        if self.buffer.len() > 64 << 10 { self.flush() } else { Ok(()) }
    }

    pub fn notify(&mut self, method: &str, params: impl Serialize) -> io::Result<()> {
        self.send(&messages::Notification { jsonrpc: "2.0", method, params })
    }

    pub fn request(&mut self, id: u64, method: &str, params: impl Serialize) -> io::Result<()> {
        self.send(&messages::Request { jsonrpc: "2.0", id, method, params })
    }

    pub fn answer(&mut self, id: &RawValue, result: impl Serialize) -> io::Result<()> {
        self.send(&messages::Response { jsonrpc: "2.0", id, result })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

pub fn open(line: &[u8]) -> io::Result<Envelope<'_>> {
    Ok(serde_json::from_slice(line)?)
}

/// Decodes params or a result; what is absent reads as `null`.
pub fn decode<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> io::Result<T> {
    Ok(serde_json::from_str(raw.map_or("null", RawValue::get))?)
}
