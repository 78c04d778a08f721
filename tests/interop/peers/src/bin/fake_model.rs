//! The scripted model of `attache check --fake-model` as a program: `fake_model [--log FILE]`.
//!
//! It prints its address on standard output and serves until its standard input ends.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::io::{self, Read, Write};
use std::path::Path;

use attache_check::model::FakeModel;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let log = match &args[..] {
        [] => None,
        [flag, file] if flag == "--log" => Some(Path::new(file)),
        _ => return Err(io::Error::other("usage: fake_model [--log FILE]")),
    };
    let model = FakeModel::start(log)?;
    println!("{}", model.url());
    io::stdout().flush()?;
    // The parent process holds the other end, so this program ends with it in every case.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
