//! A client and an agent joined by `bridge`.

use attache::{ClientEnd, Flow, FrameReader, FrameWriter, Link, bridge};

/// The far ends of a client and an agent, and the bridge between them.
fn joined(
    at_end: ClientEnd,
) -> ((FrameReader, FrameWriter), (FrameReader, FrameWriter), tokio::task::JoinHandle<attache::BridgeEnd>) {
    let (client, near_client) = Link::pair();
    let (agent, near_agent) = Link::pair();
    (client.split(), agent.split(), tokio::spawn(bridge(near_client, near_agent, at_end)))
}

const REQUEST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}}"#;
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

#[tokio::test]
async fn a_client_behind_a_pipe_gets_its_answers() {
    let ((mut from_agent, mut to_agent), (mut from_client, mut to_client), end) =
        joined(ClientEnd::AwaitAnswers);
    to_agent.send(REQUEST).await.unwrap();
    to_agent.close().await.unwrap();
    assert_eq!(from_client.next().await.unwrap(), Some(REQUEST));
    to_client.send(ANSWER).await.unwrap();
    assert_eq!(from_agent.next().await.unwrap(), Some(ANSWER));
    // Then the agent is asked to end.
    assert_eq!(from_client.next().await.unwrap(), None);
    drop((from_client, to_client));
    let end = end.await.unwrap();
    assert!(end.by_client && end.error.is_none());
}

#[tokio::test]
async fn taps_of_both_links_see_every_message() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tap = |name: &'static str, link: Link| {
        let seen = seen.clone();
        link.tap(move |flow, line| seen.lock().unwrap().push((name, flow, line.to_vec())))
    };
    let (client, near_client) = Link::pair();
    let (agent, near_agent) = Link::pair();
    let near_client = tap("second", tap("client", near_client));
    let end = tokio::spawn(bridge(near_client, tap("agent", near_agent), ClientEnd::EndAgent));
    let ((mut from_agent, mut to_agent), (mut from_client, mut to_client)) = (client.split(), agent.split());
    to_agent.send(REQUEST).await.unwrap();
    from_client.next().await.unwrap();
    to_client.send(ANSWER).await.unwrap();
    from_agent.next().await.unwrap();
    drop((from_agent, to_agent));
    assert!(end.await.unwrap().by_client);
    let expected = [
        ("client", Flow::In, REQUEST),
        ("second", Flow::In, REQUEST),
        ("agent", Flow::Out, REQUEST),
        ("client", Flow::Out, ANSWER),
        ("second", Flow::Out, ANSWER),
        ("agent", Flow::In, ANSWER),
    ];
    assert_eq!(*seen.lock().unwrap(), expected.map(|(name, flow, line)| (name, flow, line.to_vec())));
}

#[tokio::test]
async fn an_agent_that_ends_while_answers_are_due_ends_the_bridge() {
    let ((_from_agent, mut to_agent), (mut from_client, to_client), end) = joined(ClientEnd::AwaitAnswers);
    to_agent.send(REQUEST).await.unwrap();
    to_agent.close().await.unwrap();
    assert_eq!(from_client.next().await.unwrap(), Some(REQUEST));
    drop((from_client, to_client));
    assert!(end.await.unwrap().by_client);
}

#[tokio::test]
async fn final_messages_of_an_agent_reach_the_client() {
    let ((mut from_agent, _to_agent), (from_client, mut to_client), end) = joined(ClientEnd::EndAgent);
    to_client.send(ANSWER).await.unwrap();
    drop((from_client, to_client));
    assert_eq!(from_agent.next().await.unwrap(), Some(ANSWER));
    assert_eq!(from_agent.next().await.unwrap(), None);
    assert!(!end.await.unwrap().by_client);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_agent() {
    let ((from_agent, mut to_agent), (mut from_client, _to_client), end) = joined(ClientEnd::EndAgent);
    to_agent.send(REQUEST).await.unwrap();
    drop((from_agent, to_agent));
    assert_eq!(from_client.next().await.unwrap(), Some(REQUEST));
    assert_eq!(from_client.next().await.unwrap(), None);
    drop(from_client);
    assert!(end.await.unwrap().by_client);
}

#[tokio::test]
async fn protocol_notifications_of_a_client_end_at_the_bridge() {
    let ((_from_agent, mut to_agent), (mut from_client, _to_client), _end) = joined(ClientEnd::EndAgent);
    let passed = [
        // CANCEL-13
        &br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#[..],
        br#"{"jsonrpc":"2.0","id":2,"method":"$/ping"}"#,
        br#"{"jsonrpc":"2.0","method":"_x/$/ping"}"#,
        br#"{"method":"x"}"#,
        REQUEST,
    ];
    for line in passed {
        // CANCEL-14
        for dropped in [
            &br#"{"method":"$/ping"}"#[..],
            br#"{"jsonrpc":"2.0","method":"$/ping"}"#,
            br#"{"jsonrpc":"2.0","method":"$/progress","params":{"token":1}}"#,
        ] {
            to_agent.send(dropped).await.unwrap();
        }
        to_agent.send(line).await.unwrap();
    }
    for line in passed {
        assert_eq!(from_client.next().await.unwrap(), Some(line));
    }
}
