//! The checker against a conformant client over our transports, in which it must find no failure,
//! and against a proxy behind it that breaks a rule of the transports. Over sockets and in real
//! time.

use std::net::SocketAddr;
use std::time::Duration;

use attache_check::run::{Options, Report, run};
use attache_check::target::Connecting;
use attache_check::{Role, Scenario, StartOptions, Transport, scenarios};
use attache_http::client::HttpClient;
use attache_http::client::remote::{self, connect};
use attache_mutants::Variant;
use attache_mutants::client::{Setup, client};
use attache_mutants::server::{client_proxy, client_variants};

use crate::matrix;

const REMOTE: [Transport; 2] = [Transport::WebSocket, Transport::Http];
/// Far more than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// What never comes takes as long.
const HURRY: Duration = Duration::from_secs(3);

fn target(transport: Transport, variant: Option<&'static str>) -> Connecting {
    Connecting::new(transport, move |url, fresh: &StartOptions| {
        let setup = Setup {
            protocol: 1,
            act: fresh.act.to_owned(),
            prompt: fresh.prompt.clone(),
            cwd: fresh.cwd.clone(),
            session: Some(attache_check::target::SESSION.to_owned()),
            roots: attache_check::target::roots(&fresh.cwd).into_iter().chain([fresh.cwd.clone()]).collect(),
            ..Setup::default()
        };
        async move {
            let (scheme, rest) = url.split_once("://").unwrap();
            let address: SocketAddr = rest.trim_end_matches("/acp").parse().unwrap();
            let address = client_proxy(address, variant).await.unwrap();
            let options = remote::Options {
                client: Some(HttpClient::new(None).unwrap()),
                ..remote::Options::default()
            };
            // A client that cannot connect ends.
            if let Ok(link) = connect(&format!("{scheme}://{address}/acp"), &options).await {
                client(link, setup).await;
            }
        }
    })
}

async fn check(
    variant: Option<&'static str>,
    deadline: Duration,
    wanted: impl Fn(&Scenario) -> bool,
) -> Vec<Report> {
    let mut reports = Vec::new();
    for transport in REMOTE {
        let about =
            scenarios(Role::Client).into_iter().filter(|scenario| scenario.transport() == Some(transport));
        let names: Vec<String> =
            about.filter(|scenario| wanted(scenario)).map(|scenario| scenario.name.to_owned()).collect();
        if names.is_empty() {
            continue;
        }
        let options = Options {
            transports: vec![transport],
            deadline,
            // What a variant never does takes real time.
            retry_late: deadline > HURRY,
            scenarios: names,
            faults: true,
            ..Options::new(Role::Client)
        };
        reports.push(run(&target(transport, variant), &options, &mut |_| {}).await);
    }
    reports
}

#[tokio::test]
async fn our_client_keeps_every_rule_of_the_transports() {
    matrix::assert_kept(&check(None, PATIENCE, |_| true).await, Role::Client);
}

#[test]
fn each_variant_of_a_remote_client_is_found_out() {
    matrix::assert_each_remote(client_variants(), |_, variant: &'static Variant| async move {
        let concerns = |scenario: &Scenario| matrix::concerns(variant, scenario);
        matrix::wrong(variant, &check(Some(variant.name), HURRY, concerns).await, false)
    });
}

/// Ordinary conversations run over both transports too.
#[tokio::test]
async fn our_client_takes_part_in_every_conversation() {
    for transport in REMOTE {
        let options = Options {
            transports: vec![transport],
            deadline: Duration::from_secs(10),
            jobs: 16,
            ..Options::new(Role::Client)
        };
        let report = run(&target(transport, None), &options, &mut |_| {}).await;
        assert_eq!(matrix::failure_list(&[report]), "", "{transport}");
    }
}
