//! The bench agent on attache over WebSocket and Streamable HTTP, on one thread. Prints its port.
//! `BENCH_TLS=self` turns TLS on.

use attache_http::server::{Limits, Options, Server, Tls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> attache::Result<()> {
    let tls = match std::env::var_os("BENCH_TLS") {
        Some(_) => {
            let made = Tls::self_signed(vec!["localhost".to_owned()])?;
            let file =
                |kind: &str| std::env::temp_dir().join(format!("bench-{kind}-{}.pem", std::process::id()));
            let (certificate, key) = (file("cert"), file("key"));
            std::fs::write(&certificate, made.certificate)?;
            std::fs::write(&key, made.key)?;
            let tls = Tls::from_files(&certificate, &key)?;
            std::fs::remove_file(certificate)?;
            std::fs::remove_file(key)?;
            Some(tls)
        }
        None => None,
    };
    let limits = Limits { connections: 100_000, ..Limits::default() };
    let server = Server::bind("127.0.0.1:0", Options { tls, limits, ..Options::default() }).await?;
    println!("{}", server.local_addr().port());
    bench_ours::agent().serve_clients(server).await
}
