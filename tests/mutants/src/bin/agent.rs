//! The good agent on standard streams, or a variant of it.

fn main() -> std::io::Result<()> {
    attache_mutants::programs::agent::run()
}
