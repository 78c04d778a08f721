//! The good agent on standard streams, or a variant of it: `mutant-agent [--locked] [VARIANT]`.

use attache_conn::Link;

/// Runs the program.
pub fn run() -> std::io::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let locked = words.iter().any(|word| word == "--locked");
    words.retain(|word| word != "--locked");
    let variant = words.first().map(String::as_str);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if locked {
            crate::agent::locked_agent(Link::stdio(), variant).await;
        } else {
            crate::agent(Link::stdio(), variant).await;
        }
    });
    Ok(())
}
