//! Tenants and tokens of a hub behind a real server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_http::client::HttpClient;
use attache_http::client::remote::{Options, Transport, connect};
use attache_http::server::{self, Access, Limits, Server, TokenFile, Tokens};
use attache_hub::Identity;
use serde_json::{Value, json};

use crate::rig::{Rig, TestClient, prompt, stop_reason};

/// A hub whose clients have tokens of the tenants `a` and `b`.
struct Guarded {
    rig: Rig,
    address: SocketAddr,
    file: PathBuf,
    entries: Vec<String>,
    tokens: Vec<String>,
}

impl Guarded {
    async fn start(name: &str) -> Guarded {
        let rig = Rig::new();
        let file = std::env::temp_dir().join(format!("attache-hub-{name}-{}", std::process::id()));
        let (mut entries, mut tokens) = (Vec::new(), Vec::new());
        for tenant in ["a", "b"] {
            let (token, entry) = Tokens::generate(tenant).unwrap();
            entries.push(format!("{} tenant={tenant}\n", entry.trim_end()));
            tokens.push(token);
        }
        std::fs::write(&file, entries.concat()).unwrap();
        let access = Access::Token(Arc::new(TokenFile::open(&file).unwrap()));
        let limits = Limits { sweep: Duration::from_millis(10), ..Limits::default() };
        let options = server::Options { access, limits, ..server::Options::default() };
        let mut server = Server::bind("127.0.0.1:0", options).await.unwrap();
        let address = server.local_addr();
        let hub = rig.hub.clone();
        tokio::spawn(async move {
            while let Ok(client) = server.accept().await {
                let owner = client.identity.unwrap();
                let identity = Identity::new(owner.name()).tenant(owner.attribute("tenant").unwrap());
                let hub = hub.clone();
                tokio::spawn(async move { hub.serve(client.link, identity).await });
            }
        });
        Guarded { rig, address, file, entries, tokens }
    }

    async fn client(&self, tenant: usize, transport: Transport) -> TestClient {
        let options = Options {
            client: Some(HttpClient::new(None).unwrap()),
            transport: Some(transport),
            token: Some(self.tokens[tenant].clone()),
            ..Options::default()
        };
        TestClient::over(connect(&format!("http://{}", self.address), &options).await.unwrap(), false).await
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

const TRANSPORTS: [Transport; 2] = [Transport::WebSocket, Transport::StreamableHttp];

#[tokio::test]
async fn a_tenant_does_not_see_the_sessions_of_another() {
    let guarded = Guarded::start("tenants").await;
    let mut mine = guarded.client(0, Transport::WebSocket).await;
    let session = mine.new_session().await;
    mine.prompt(&session, "secret").await;
    for transport in TRANSPORTS {
        let mut theirs = guarded.client(1, transport).await;
        assert_eq!(theirs.call("session/list", json!({})).await["result"]["sessions"], json!([]));
        for method in ["session/load", "session/resume", "session/prompt", "session/close", "session/delete"]
        {
            let mut params = prompt(&session, "x");
            params["cwd"] = json!("/");
            params["mcpServers"] = json!([]);
            let foreign = theirs.call(method, params.clone()).await;
            params["sessionId"] = json!("none");
            let unknown = theirs.call(method, params).await;
            let text = foreign["error"].to_string().replace(&format!("\"{session}\""), "\"none\"");
            assert!(foreign["error"].is_object(), "{transport:?} {method}: {foreign}");
            assert_eq!(text, unknown["error"].to_string(), "{transport:?} {method}");
        }
        assert!(theirs.texts().is_empty());
        // The owner's other client sees it.
        let mut other = guarded.client(0, transport).await;
        let list = other.call("session/list", json!({})).await;
        assert_eq!(list["result"]["sessions"][0]["sessionId"], json!(session));
        other.load(&session).await;
        assert_eq!(other.texts(), ["> secret", "secret"]);
    }
    assert_eq!(stop_reason(&mine.prompt(&session, "hello").await), "end_turn");
    assert_eq!(guarded.rig.record.of("prompt"), ["secret", "hello"]);
}

/// An open connection ends in the middle of a turn. The session and other clients stay.
#[tokio::test]
async fn a_revoked_token_ends_open_connections() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(&format!("revoked-{transport:?}")).await;
        let mut revoked = guarded.client(0, transport).await;
        let mut other = guarded.client(1, transport).await;
        let session = revoked.new_session().await;
        let is_text = |message: &Value| message["method"] == "session/update";
        revoked.start_prompt(&session, "wait").await;
        revoked.until(is_text).await;
        std::fs::write(&guarded.file, format!("# a is gone\n{}", guarded.entries[1])).unwrap();
        // Its turn would go on for ever.
        while revoked.next().await.is_some() {}
        let options = Options {
            client: Some(HttpClient::new(None).unwrap()),
            transport: Some(Transport::WebSocket),
            token: Some(guarded.tokens[0].clone()),
            ..Options::default()
        };
        assert!(connect(&format!("http://{}", guarded.address), &options).await.is_err());
        let theirs = other.new_session().await;
        assert_eq!(stop_reason(&other.prompt(&theirs, "hello").await), "end_turn");
    }
}
