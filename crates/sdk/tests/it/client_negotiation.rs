//! Which version a client and its agent agree on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::client::{Client, Protocol, ReadFiles, RequestContext};
use attache::wire::v1::ReadTextFileRequest;
use attache::{Error, Link, Result};
use serde_json::{Value, json};

use crate::client_v2::{both, greeted, hello};
use crate::script::Script;

struct NoFiles;

impl ReadFiles for NoFiles {
    async fn read(&self, _: RequestContext, _: ReadTextFileRequest) -> Result<String> {
        Ok(String::new())
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_common_version_is_spoken() {
    // shows V2-03, V2-04
    let (agent, _script) = greeted(both(), json!({"session": {"prompt": {"image": {}}}})).await;
    assert_eq!(agent.protocol_version().to_string(), "2");
    assert_eq!(agent.info().unwrap().name, "scripted");
    assert!(agent.capabilities().prompt_capabilities.image && agent.loader().is_some());
    assert!(agent.logout().is_none());

    // An agent of version 1 is used on the same connection if nothing is lost by that.
    let (link, mut script) = Script::pair();
    let client = both();
    let (agent, _) = tokio::join!(client.connect(link), script.initialize(json!({"loadSession": true})));
    let agent = agent.unwrap();
    assert_eq!(agent.protocol_version().to_string(), "1");
    let (session, request) = tokio::join!(agent.new_session("/work"), script.new_session("s1"));
    assert_eq!(request["params"]["mcpServers"], json!([]));
    drop(session);

    // An agent that repeats the number, but answers in the form of version 1, speaks version 1.
    let (link, mut script) = Script::pair();
    let client = both();
    let (agent, ()) = tokio::join!(client.connect(link), async {
        let request = script.expect("initialize").await;
        script
            .answer(&request, json!({"protocolVersion": 2, "agentCapabilities": {"loadSession": true}}))
            .await;
    });
    assert_eq!(agent.unwrap().protocol_version().to_string(), "1");

    // An agent of version 2 may answer an offer of 1 with its own version, as in the draft of
    // August.
    for (client, spoken) in [(both().read_files(NoFiles), Some("2")), (Client::new(), None)] {
        let (link, mut script) = Script::pair();
        let (agent, ()) = tokio::join!(client.connect(link), async {
            let request = script.expect("initialize").await;
            assert_eq!(request["params"]["protocolVersion"], 1);
            script.answer(&request, hello(json!({"session": {}}))).await;
            if spoken.is_none() {
                script.expect_eof().await;
            }
        });
        match spoken {
            Some(version) => assert_eq!(agent.unwrap().protocol_version().to_string(), version),
            None => assert!(matches!(agent, Err(Error::Version { .. }))),
        }
    }

    // Only version 2 is good enough.
    let (link, mut script) = Script::pair();
    let client = Client::new().protocol(Protocol::V2);
    let (agent, _) = tokio::join!(client.connect(link), script.initialize(json!({})));
    assert!(matches!(agent, Err(Error::Version { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_answered_with_another_offer() {
    for (refusal, client, next) in [
        (
            json!({"code": -32022, "message": "x", "data": {"requested": 2, "supported": [1]}}),
            both(),
            Some(1),
        ),
        (json!({"code": -32602, "message": "clientCapabilities is missing"}), both(), Some(1)),
        (
            json!({"code": -32022, "message": "x", "data": {"requested": 1, "supported": [2]}}),
            both().read_files(NoFiles),
            Some(2),
        ),
        (
            json!({"code": -32022, "message": "x", "data": {"requested": 1, "supported": [2]}}),
            Client::new(),
            None,
        ),
        (json!({"code": -32022, "message": "x", "data": {"requested": 2, "supported": [7]}}), both(), None),
    ] {
        let (link, mut script) = Script::pair();
        let answer = async {
            let request = script.expect("initialize").await;
            script.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": refusal})).await;
            match next {
                None => script.expect_eof().await,
                Some(version) => {
                    let request = script.expect("initialize").await;
                    assert_eq!(request["params"]["protocolVersion"], version, "{refusal}");
                    let mut answer = hello(json!({}));
                    answer["protocolVersion"] = version.into();
                    script.answer(&request, answer).await;
                }
            }
        };
        let (agent, ()) = tokio::join!(client.connect(link), answer);
        assert_eq!(agent.is_ok(), next.is_some(), "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_version_1_is_started_again_for_files() {
    let starts = Arc::new(AtomicUsize::new(0));
    let (sender, mut scripts) = tokio::sync::mpsc::channel(2);
    let serve = tokio::spawn(async move {
        let mut offers = Vec::new();
        while let Some(mut script) = scripts.recv().await {
            let script: &mut Script = &mut script;
            let hello = script.initialize(json!({})).await;
            offers.push((
                hello["params"]["protocolVersion"].clone(),
                hello["params"]["clientCapabilities"]["fs"].clone(),
            ));
            if offers.len() == 1 {
                script.expect_eof().await;
            }
        }
        offers
    });
    let counted = starts.clone();
    let agent = both()
        .read_files(NoFiles)
        .connect_with(async || {
            counted.fetch_add(1, Ordering::Relaxed);
            let (link, script): (Link, Script) = Script::pair();
            sender.try_send(script).unwrap();
            Ok(link)
        })
        .await
        .unwrap();
    assert_eq!((agent.protocol_version().to_string().as_str(), starts.load(Ordering::Relaxed)), ("1", 2));
    drop(sender);
    let offers = serve.await.unwrap();
    assert_eq!(offers[0], (json!(2), Value::Null));
    assert_eq!(offers[1], (json!(1), json!({"readTextFile": true})));
}
