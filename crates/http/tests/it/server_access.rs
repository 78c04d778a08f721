//! Tokens, hosts and origins.

use crate::kit::{Http, request, serve, upgrade};
use attache_http::server::{Access, Metrics, Options, Server, Tokens};
use hyper::{Method, StatusCode};
use serde_json::json;

async fn two_users() -> (Http, Http, Http) {
    let (first, first_entry) = Tokens::generate("first").unwrap();
    let (second, second_entry) = Tokens::generate("second").unwrap();
    let tokens = Tokens::parse(&(first_entry + &second_entry)).unwrap();
    let anonymous = Http::new(serve(Options { access: Access::tokens(tokens), ..Options::default() }).await);
    let user = |token: &str| anonymous.with("authorization", &format!("Bearer {token}"));
    (user(&first), user(&second), anonymous)
}

#[tokio::test]
async fn a_token_is_needed() {
    let (first, _, anonymous) = two_users().await;
    let refused = anonymous.post(request(0, "initialize", json!({}))).await;
    assert_eq!(
        (refused.status, refused.headers["www-authenticate"].to_str().unwrap()),
        (StatusCode::UNAUTHORIZED, "Bearer")
    );
    let wrong =
        anonymous.with("authorization", "Bearer wrong").post(request(0, "initialize", json!({}))).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(!wrong.text().await.contains("wrong"));
    assert_eq!(upgrade(first.address, &[]).await.err(), Some(StatusCode::UNAUTHORIZED));
    first.initialize().await;
    let token = first.headers.iter().find(|(name, _)| name == "authorization").unwrap().1.clone();
    upgrade(first.address, &[("authorization", &token)]).await.unwrap();
}

#[tokio::test]
async fn connections_belong_to_the_user_who_made_them() {
    // HTTP-36: a connection of another user is unknown.
    let (first, second, _) = two_users().await;
    let first = first.initialize().await;
    let id = first.headers.iter().find(|(name, _)| name == "acp-connection-id").unwrap().1.clone();
    let thief = second.with("acp-connection-id", &id);
    assert_eq!(thief.open(None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(thief.post(request(1, "session/new", json!({}))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(thief.send(Method::DELETE, "/acp", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(first.open(None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_sites_are_refused_on_every_method() {
    let metrics = Some(Metrics::new(|| "up 1\n".to_owned()));
    let client = Http::new(serve(Options { metrics, ..Options::default() }).await);
    let open = client.initialize().await;
    let status_pages = ["/health", "/ready", "/metrics"];
    for evil in [open.with("origin", "https://evil.example"), open.with("host", "evil.example")] {
        assert_eq!(evil.open(None).await.status, StatusCode::FORBIDDEN);
        assert_eq!(evil.post(request(1, "session/new", json!({}))).await.status, StatusCode::FORBIDDEN);
        assert_eq!(evil.send(Method::DELETE, "/acp", "").await.status, StatusCode::FORBIDDEN);
        assert_eq!(evil.send(Method::OPTIONS, "/acp", "").await.status, StatusCode::FORBIDDEN);
        for page in status_pages {
            let refused = evil.send(Method::GET, page, "").await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{page}");
            assert!(!refused.text().await.contains("up 1"), "{page}");
        }
    }
    assert_eq!(open.open(None).await.status, StatusCode::OK);
    for page in status_pages {
        assert_eq!(client.send(Method::GET, page, "").await.status, StatusCode::OK, "{page}");
    }
}

#[tokio::test]
async fn status_pages_need_no_token() {
    let (_, _, anonymous) = two_users().await;
    assert_eq!(anonymous.send(Method::GET, "/health", "").await.status, StatusCode::OK);
    assert_eq!(anonymous.send(Method::GET, "/ready", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_listed_origin_may_connect_and_read_the_headers() {
    let page = "https://app.example";
    let options = Options { origins: vec![page.to_owned()], ..Options::default() };
    let client = Http::new(serve(options).await).with("origin", page);
    let preflight = client.send(Method::OPTIONS, "/acp", "").await;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    let allowed = preflight.headers["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("Authorization") && allowed.contains("Acp-Session-Id"));
    let reply = client.post(request(0, "initialize", json!({}))).await;
    assert_eq!(reply.headers["access-control-allow-origin"], page);
    assert!(reply.headers["access-control-expose-headers"].to_str().unwrap().contains("Acp-Connection-Id"));
}

#[tokio::test]
async fn nothing_is_open_by_accident() {
    let refused =
        |options: Options| async { Server::bind("0.0.0.0:0", options).await.unwrap_err().to_string() };
    assert!(refused(Options::default()).await.contains("token"));
    let (_, entry) = Tokens::generate("me").unwrap();
    let access = Access::tokens(Tokens::parse(&entry).unwrap());
    assert!(refused(Options { access: access.clone(), ..Options::default() }).await.contains("TLS"));
    Server::bind("0.0.0.0:0", Options { access, behind_proxy: true, ..Options::default() }).await.unwrap();
}
