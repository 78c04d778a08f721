//! The checker against our server with the conformant agent behind it, in which it must find no
//! failure, and against a proxy before it that breaks a rule of the transports. Over sockets and in
//! real time.

use std::net::SocketAddr;
use std::time::Duration;

use attache_check::remote::Endpoint;
use attache_check::run::{Options, Report, run};
use attache_check::target::Server;
use attache_check::{Role, Scenario, Transport, Version, scenarios};
use attache_http::server::{self, Access, Limits, Tokens};
use attache_mutants::server::{proxy, variants};
use attache_mutants::{Variant, agent};

use crate::matrix;

const REMOTE: [Transport; 2] = [Transport::WebSocket, Transport::Http];
/// Far more than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// What never comes takes as long.
const HURRY: Duration = Duration::from_secs(3);

/// The scenario that takes all places of a server.
const TAKES_ALL_PLACES: &str = "ws-fault-connections";

/// Starts our server with an agent for each client. Returns its address and a token.
async fn serve() -> (SocketAddr, String) {
    serve_with(Limits::default()).await
}

/// Starts our server with few places.
async fn serve_few() -> (SocketAddr, String) {
    serve_with(Limits { connections: 8, ..Limits::default() }).await
}

async fn serve_with(limits: Limits) -> (SocketAddr, String) {
    let (token, entry) = Tokens::generate("check").unwrap();
    let access = Access::tokens(Tokens::parse(&entry).unwrap());
    let options = server::Options { access, limits, ..server::Options::default() };
    let mut server = server::Server::bind("127.0.0.1:0", options).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(async move {
        while let Ok(client) = server.accept().await {
            tokio::spawn(agent(client.link, None));
        }
    });
    (address, token)
}

async fn check(address: SocketAddr, token: String, options: &Options, over: Transport) -> Report {
    let endpoint = Endpoint::new(&format!("http://{address}/acp"), Some(token)).unwrap();
    run(&Server { endpoint, transport: over }, options, &mut |_| {}).await
}

fn about_transports() -> Vec<Scenario> {
    scenarios(Role::Agent).into_iter().filter(|scenario| scenario.transport().is_some()).collect()
}

fn options(deadline: Duration, wanted: impl Fn(&Scenario) -> bool) -> Options {
    let wanted = about_transports().into_iter().filter(|scenario| wanted(scenario));
    Options {
        transports: REMOTE.to_vec(),
        faults: true,
        deadline,
        // What a variant never does takes real time.
        retry_late: deadline > HURRY,
        scenarios: wanted.map(|scenario| scenario.name.to_owned()).collect(),
        ..Options::new(Role::Agent)
    }
}

#[tokio::test]
async fn our_server_keeps_every_rule_of_the_transports() {
    for version in Version::ALL {
        let (address, token) = serve().await;
        let takes_all = |scenario: &Scenario| scenario.name == TAKES_ALL_PLACES;
        let most = Options { version, ..options(PATIENCE, |scenario| !takes_all(scenario)) };
        let report = check(address, token, &most, Transport::WebSocket).await;
        let (address, token) = serve_few().await;
        let last = Options { version, ..options(PATIENCE, takes_all) };
        let full = check(address, token, &last, Transport::WebSocket).await;
        matrix::assert_kept(&[report, full], Role::Agent);
    }
}

#[test]
fn each_variant_of_a_server_is_found_out() {
    matrix::assert_each_remote(variants(), |_, variant: &'static Variant| async move {
        let (address, token) = match variant.rule() {
            "WS-18" | "HTTP-39" => serve_few().await,
            _ => serve().await,
        };
        let address = proxy(address, Some(variant.name)).await.unwrap();
        // A variant that dies of one fault is found by the scenario of that fault.
        let fault = variant.name.split_once('/').map(|(_, how)| format!("-fault-{how}"));
        let fault = fault.filter(|_| ["HTTP-37", "WS-16"].contains(&variant.rule()));
        let concerns = |scenario: &Scenario| {
            fault.as_ref().is_none_or(|fault| scenario.name.ends_with(fault))
                && matrix::concerns(variant, scenario)
        };
        let report = check(address, token, &options(HURRY, concerns), Transport::WebSocket).await;
        matrix::wrong(variant, &[report], false)
    });
}

#[tokio::test]
async fn the_proxy_breaks_nothing_by_itself() {
    let (address, token) = serve().await;
    let address = proxy(address, None).await.unwrap();
    let options = options(PATIENCE, |scenario| !scenario.fault);
    let report = check(address, token, &options, Transport::WebSocket).await;
    assert_eq!(matrix::failures(&[report]), Default::default());
}

/// Connections that a scenario leaves behind do not take the places of the next one.
#[tokio::test]
async fn connections_of_a_scenario_end_with_it() {
    let (address, token) = serve_with(Limits { connections: 16, ..Limits::default() }).await;
    for _ in 0..2 {
        let options = options(PATIENCE, |scenario| scenario.name == "http-fault-half-open");
        let report = check(address, token.clone(), &options, Transport::Http).await;
        assert_eq!(matrix::failure_list(&[report]), "");
    }
}

/// Ordinary conversations run over both transports too.
#[tokio::test]
async fn our_server_carries_every_conversation() {
    for over in REMOTE {
        let (address, token) = serve().await;
        let options = Options { transports: vec![over], ..options(PATIENCE, |_| false) };
        let report = check(address, token, &options, over).await;
        assert_eq!(matrix::failure_list(&[report]), "", "{over}");
    }
}
