//! The good client, or a variant of it, with an agent that it starts.

fn main() -> std::io::Result<std::process::ExitCode> {
    attache_mutants::programs::client::run()
}
