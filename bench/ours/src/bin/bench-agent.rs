//! The bench agent on attache. `--multi-thread` runs it on the runtime that a bare `#[tokio::main]`
//! gives.

use attache::{Error, Link, Result};

fn main() -> Result<()> {
    let mut runtime = match bench_probe::multi_thread() {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let serve = bench_ours::agent().serve(Link::stdio());
    runtime.enable_all().build().map_err(Error::internal)?.block_on(serve)
}
