use super::*;
use crate::server::{Metrics, Options};
use bytes::Bytes;
use http_body_util::Full;
use tokio::sync::mpsc;

#[tokio::test]
async fn status_pages_are_for_programs_on_this_machine() {
    let options = Options { metrics: Some(Metrics::new(|| "up 1".to_owned())), ..Options::default() };
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let shared = Arc::new(Shared::new(options, address, mpsc::channel(1).0));
    let away = SocketAddr::from(([192, 0, 2, 1], 80));
    for page in ["/health", "/ready", "/metrics"] {
        for (remote, is_near) in [(address, true), (away, false)] {
            let request =
                Request::get(page).header("host", "localhost").body(Full::<Bytes>::default()).unwrap();
            let status = respond(&shared, remote, request).await.status();
            assert_eq!(status != StatusCode::NOT_FOUND, is_near, "{page}");
        }
    }
}
