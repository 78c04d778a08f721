//! The hub: as `attache hub`, a server and a Unix socket.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use attache_conn::Link;
use attache_http::server::{Limits, Options as ServerOptions, Server};
use attache_hub::{Hub, Identity, Options};
use attache_journal::{Journal, sqlite};

pub(crate) fn run(directory: &Path) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(directory))
}

async fn serve(directory: &Path) -> io::Result<()> {
    let options = sqlite::Options::default().poll_interval(None);
    let journal = Journal::sqlite(&directory.join("hub.db"), options).await.map_err(io::Error::other)?;
    let program = std::env::current_exe()?;
    let options = Options::new("bench", move || {
        let command = attache_conn::process::Command::new(&program).arg("agent");
        async move { Link::command(command) }
    })
    .stall(Duration::from_secs(5));
    let hub = Hub::new(journal, options);
    let most = 20_000;
    let limits = Limits { connections: most, connections_per_identity: most, ..Limits::default() };
    let mut server =
        Server::bind("127.0.0.1:0", ServerOptions { limits, ..ServerOptions::default() }).await?;
    let socket = attache_conn::listen_unix(directory.join("hub.sock"))?;
    println!("{}", server.url());
    io::stdout().flush()?;
    loop {
        let (link, hub) = tokio::select! {
            client = server.accept() => (client?.link, hub.clone()),
            link = socket.accept() => (link?, hub.clone()),
        };
        tokio::spawn(async move { hub.serve(link, Identity::new("bench")).await });
    }
}
