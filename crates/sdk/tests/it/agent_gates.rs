//! Small promises of the agent's side that have no other home.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, OpenRequest};
use attache::wire::v1::{
    Notice, NoticeSeverity, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
};
use attache::{Error, Meta, StopReason};
use serde_json::json;

use crate::agent_rig::{Rig, acts, agent, echo, full_client};

#[tokio::test(start_paused = true)]
async fn a_loaded_session_has_the_roots_of_its_request() {
    // shows ROOT-07, ROOT-12
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = {
        let seen = seen.clone();
        move |request: OpenRequest| {
            seen.lock().unwrap().push((request.cwd.clone(), request.additional_directories.clone()));
            async { Ok(acts(|_, _| Box::pin(async { Ok(StopReason::EndTurn) }))) }
        }
    };
    let mut rig =
        Rig::initialized(echo().additional_directories().load(record.clone()).resume(record), json!({}))
            .await;
    let params =
        json!({"sessionId": "old", "cwd": "/work", "mcpServers": [], "additionalDirectories": ["/lib"]});
    rig.call("1", "session/load", params).await;
    rig.call("2", "session/load", json!({"sessionId": "old", "cwd": "/work", "mcpServers": []})).await;
    rig.call("3", "session/resume", json!({"sessionId": "old", "cwd": "/work"})).await;
    let roots: Vec<_> = seen.lock().unwrap().iter().map(|(_, roots)| roots.len()).collect();
    assert_eq!(roots, [1, 0, 0]);
    assert!(seen.lock().unwrap().iter().all(|(cwd, _)| cwd.as_os_str() == "/work"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cancels_itself_ends_as_cancelled() {
    // shows CANCEL-19
    let mut rig = Rig::open(agent(|_, _| Box::pin(async { Err(Error::Cancelled) })), json!({})).await;
    rig.prompt("p", "s1", "x").await;
    rig.client.error("p", -32800).await;
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_by_further_plans() {
    // shows PLAN-02, PLAN-03
    let entry = |status| vec![PlanEntry::new("step", PlanEntryPriority::High, status)];
    let planner = agent(move |turn, _| {
        Box::pin(async move {
            turn.plan(entry(PlanEntryStatus::Pending)).await?;
            turn.plan(entry(PlanEntryStatus::Completed)).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let mut rig = Rig::open(planner, json!({})).await;
    rig.prompt("p", "s1", "x").await;
    for status in ["pending", "completed"] {
        let entries = json!([{"content": "step", "priority": "high", "status": status}]);
        rig.expect_update("s1", json!({"sessionUpdate": "plan", "entries": entries})).await;
    }
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_notice_has_a_title() {
    // shows NOTE-02
    let noticing = agent(|turn, _| {
        Box::pin(async move {
            let notice = |title: &str| SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, title));
            assert!(turn.send(notice(" ")).await.is_err());
            turn.send(notice("here")).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let mut rig = Rig::open(noticing, json!({"session": {"notices": {}}})).await;
    rig.prompt("p", "s1", "x").await;
    rig.expect_update("s1", json!({"sessionUpdate": "notice", "severity": "info", "title": "here"})).await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_completion_of_a_link_is_reported_to_the_same_client() {
    // shows ELIC-06, ELIC-21, ELIC-24
    let asking = agent(|turn, _| {
        Box::pin(async move {
            let links = turn.links().ok_or(Error::Unsupported("links"))?;
            links.ask("sign in", "e1", "https://example.org/login").await?;
            links.complete("e1").await?;
            Ok(StopReason::EndTurn)
        })
    });
    let mut rig = Rig::open(asking, full_client()).await;
    rig.prompt("p", "s1", "x").await;
    let request = rig.client.expect("elicitation/create").await;
    assert_eq!(request["params"]["elicitationId"], "e1");
    rig.client.answer(&request, json!({"action": "accept"})).await;
    let done = rig.client.expect("elicitation/complete").await;
    assert_eq!(done["params"], json!({"elicitationId": "e1"}));
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn error_messages_stay_short_whatever_the_peer_sends() {
    // shows RPC-17
    let mut rig = Rig::initialized(echo(), json!({})).await;
    let error = rig.expect_error(&"x".repeat(100_000), json!({}), -32601).await;
    assert!(error["message"].as_str().unwrap().len() < 300);
}

#[tokio::test(start_paused = true)]
async fn trace_context_reaches_the_handler() {
    // shows EXT-10
    let seen = Arc::new(Mutex::new(None));
    let tracing: Agent = {
        let seen = seen.clone();
        agent(move |turn, _| {
            *seen.lock().unwrap() = turn.meta().and_then(|meta: &Meta| meta.get::<String>("traceparent"));
            Box::pin(async { Ok(StopReason::EndTurn) })
        })
    };
    let mut rig = Rig::open(tracing, json!({})).await;
    let params =
        json!({"sessionId": "s1", "prompt": [], "_meta": {"traceparent": "00-ab-cd-01", "other": [1]}});
    rig.call("p", "session/prompt", params).await;
    assert_eq!(seen.lock().unwrap().as_deref(), Some("00-ab-cd-01"));
}
