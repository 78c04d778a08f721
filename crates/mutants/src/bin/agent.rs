//! The good agent on standard streams, or a variant of it: `mutant-agent [VARIANT]`.

use attache_conn::Link;

fn main() -> std::io::Result<()> {
    let variant = std::env::args().nth(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(attache_mutants::agent(Link::stdio(), variant.as_deref()));
    Ok(())
}
