//! Prints the log of a tap in the form of protocol version 1, whichever version it was written in:
//! `log_as_v1 LOG`.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use attache::client::LinesAsV1;
use attache::{Error, Flow, Result};

fn main() -> Result<()> {
    let log = std::env::args().nth(1).ok_or_else(|| Error::internal("no log"))?;
    let mut lines = LinesAsV1::new();
    // Split at the line feed only: other line ends are ordinary characters in JSON texts.
    for line in std::fs::read(log)?.split(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let (flow, mark) = match text.get(..2) {
            Some("> ") => (Flow::Out, "> "),
            Some("< ") => (Flow::In, "< "),
            _ => {
                println!("{text}");
                continue;
            }
        };
        lines.line(flow, &line[2..], |line| println!("{mark}{}", String::from_utf8_lossy(line)));
    }
    Ok(())
}
