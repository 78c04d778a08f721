//! What is measured, and what ours must reach: data, read top to bottom like the table it becomes.

/// Which side of the protocol the peer plays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Under `bench-driver`.
    Agent,
    /// Against `raw-agent`.
    Client,
    /// Under `bench-driver`, over a socket.
    Server,
    /// Neither runs: the build itself is measured.
    Build,
}

pub(super) struct Scenario {
    pub name: &'static str,
    pub title: &'static str,
    pub side: Side,
    pub args: &'static str,
    /// With `--quick`.
    pub quick: &'static str,
    /// For peers so slow here that the full size would take minutes; rates compare all the same.
    pub light: Option<&'static str>,
    /// Measured in version 2, too: the part of the figures of version 1 that it must reach.
    pub in_v2: Option<f64>,
    /// The other peers have no such program. TLS, for example, is left to proxies by the servers of
    /// the SDKs.
    pub only_ours: bool,
    pub figures: &'static [Figure],
}

/// One number of the report line, and one row of the table.
pub(super) struct Figure {
    pub key: &'static str,
    pub what: &'static str,
    pub unit: Unit,
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Millis,
    Micros,
    MicrosCpu,
    SecondsCpu,
    PerSecond,
    MegabytesPerSecond,
    /// The figure itself is in kB, as the kernel counts.
    Megabytes,
    Kilobytes,
    Count,
}

impl Unit {
    /// Is more better?
    pub(super) fn is_rate(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::MegabytesPerSecond)
    }
}

impl Unit {
    /// Does version 2 have to keep up with version 1 in it? Times of starts and single waits vary
    /// too much.
    pub(super) fn is_judged_in_v2(self) -> bool {
        self.is_rate() || matches!(self, Unit::Micros | Unit::MicrosCpu)
    }
}

#[derive(Clone, Copy)]
pub(super) enum Target {
    /// Shown, not judged.
    Open,
    /// So many times better than the official Rust SDK in the same run.
    Times(f64),
    /// At most this, in the unit shown.
    AtMost(f64),
    /// At most so many times the sum of the same figure in other scenarios.
    Sum { of: &'static [&'static str], times: f64 },
    /// At least this part of the same figure in another scenario: it must not depend on what
    /// differs.
    Flat { from: &'static str, part: f64 },
}

const fn figure(key: &'static str, what: &'static str, unit: Unit, target: Target) -> Figure {
    Figure { key, what, unit, target }
}

const CPU: Figure = figure("cpu_us_per", "CPU each", Unit::MicrosCpu, Target::Open);
const PEAK: Figure = figure("hwm_kb", "peak memory", Unit::Megabytes, Target::Open);

/// The part of the figures of version 1 that version 2 must reach.
const KEPT: f64 = 0.8;

pub(super) const SCENARIOS: &[Scenario] = &[
    agent(
        "startup",
        "start to the answer to initialize",
        "startup 15",
        "startup 9",
        &[
            figure("median_ms", "time", Unit::Millis, Target::Times(1.0)),
            figure("cpu_ms", "CPU", Unit::Millis, Target::Open),
        ],
    )
    .in_v2(KEPT),
    agent(
        "rtt",
        "session/new round trips, one at a time",
        "rtt 5000",
        "rtt 2000",
        &[figure("p50_us", "median", Unit::Micros, Target::Times(4.0)), CPU],
    )
    .in_v2(KEPT),
    agent(
        "turns",
        "empty turns, one at a time",
        "turns 5000",
        "turns 2000",
        &[figure("p50_us", "median", Unit::Micros, Target::Open), CPU],
    )
    .in_v2(KEPT),
    agent(
        "in-flight",
        "session/new, 64 in flight",
        "pipe 30000 64",
        "pipe 10000 64",
        &[figure("per_s", "rate", Unit::PerSecond, Target::Times(30.0)), CPU],
    )
    .in_v2(KEPT),
    agent(
        "stream",
        "200,000 small updates out of an agent",
        "stream 200000 40",
        "stream 50000 40",
        &[
            figure("msgs_per_s", "rate", Unit::PerSecond, Target::Times(25.0)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(8.0)),
            CPU,
            figure("first_ms", "first update after", Unit::Millis, Target::Open),
        ],
    )
    .in_v2(KEPT),
    agent(
        "streamy",
        "the same, the author yields after each",
        "stream 200000 40 streamy",
        "stream 50000 40 streamy",
        &[figure("msgs_per_s", "rate", Unit::PerSecond, Target::Times(30.0)), PEAK],
    )
    .in_v2(KEPT),
    agent(
        "stalled",
        "the same while the reader stalls 3 s",
        "slowread 200000 40 3",
        "slowread 50000 40 2",
        &[figure("rss_stalled_kb", "memory held", Unit::Megabytes, Target::AtMost(8.0))],
    )
    .in_v2(KEPT),
    agent(
        "chunks",
        "200 chunks of 1 MiB out of an agent",
        "stream 200 1048576",
        "stream 60 1048576",
        &[
            figure("mb_per_s", "rate", Unit::MegabytesPerSecond, Target::Times(1.6)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(24.0)),
        ],
    )
    .in_v2(KEPT),
    agent(
        "large-prompt",
        "a prompt of 10 MiB",
        "large 10485760 15",
        "large 10485760 7",
        &[figure("median_ms", "median", Unit::Millis, Target::Times(1.8)), PEAK],
    ),
    client(
        "client-stream",
        "200,000 updates into a client's typed handler",
        "stream 200000 40",
        "stream 50000 40",
        &[
            figure("per_s", "rate", Unit::PerSecond, Target::Times(12.0)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(8.0)),
            CPU,
        ],
    )
    .in_v2(KEPT),
    client(
        "client-chunks",
        "200 chunks of 1 MiB into a client",
        "stream 200 1048576",
        "stream 60 1048576",
        &[figure("per_s", "rate", Unit::PerSecond, Target::Times(1.6)), PEAK, CPU],
    ),
    agent(
        "read",
        "agent to client fs/read_text_file round trips",
        "call 10000 read",
        "call 3000 read",
        &[figure("per_s", "rate", Unit::PerSecond, Target::Times(7.0)), CPU],
    ),
    agent(
        "permission",
        "agent to client request_permission round trips",
        "call 10000 perm",
        "call 3000 perm",
        &[figure("per_s", "rate", Unit::PerSecond, Target::Open), CPU],
    )
    .in_v2(KEPT),
    agent(
        "burst",
        "another request during a burst of 200,000 updates",
        "hol 200000",
        "hol 50000",
        &[figure("other_request_ms", "answered after", Unit::Millis, Target::AtMost(20.0))],
    )
    .in_v2(KEPT),
    client(
        "client-rtt",
        "session/new round trips of a client",
        "rtt 5000",
        "rtt 2000",
        &[figure("p50_us", "median", Unit::Micros, Target::Times(2.6)), CPU],
    )
    .in_v2(KEPT),
    client(
        "client-turns",
        "empty turns of a client",
        "turns 5000",
        "turns 2000",
        &[figure("p50_us", "median", Unit::Micros, Target::Open), CPU],
    )
    .in_v2(KEPT)
    .only_ours(),
    client(
        "client-read",
        "a client that answers fs/read_text_file",
        "call 10000",
        "call 3000",
        &[figure("per_s", "rate", Unit::PerSecond, Target::Open), CPU],
    ),
    sessions(
        "sess-1",
        "updates into a client with 1 open session",
        "sess 1 100000 40",
        "sess 1 5000 40",
        SOME_SESSIONS,
    ),
    sessions(
        "sess-10",
        "updates into a client with 10",
        "sess 10 100000 40",
        "sess 10 5000 40",
        SOME_SESSIONS,
    ),
    sessions(
        "sess-100",
        "updates into a client with 100",
        "sess 100 100000 40",
        "sess 100 5000 40",
        SOME_SESSIONS,
    ),
    sessions(
        "sess-1000",
        "updates into a client with 1,000",
        "sess 1000 100000 40",
        "sess 1000 1000 40",
        MANY_SESSIONS,
    ),
    agent(
        "sessions",
        "an agent with 1,000 open sessions",
        "sessions 1000",
        "sessions 1000",
        &[
            figure("rss_s_kb", "memory", Unit::Megabytes, Target::Times(1.0)),
            figure("p50_us", "an empty turn", Unit::Micros, Target::Open),
        ],
    )
    .in_v2(KEPT),
    agent(
        "idle",
        "an agent at rest for 5 s",
        "idle 5",
        "idle 2",
        &[
            figure("rss_kb", "memory", Unit::Megabytes, Target::Open),
            figure("cpu_ms", "CPU", Unit::Millis, Target::Open),
            figure("ctxsw", "wakeups", Unit::Count, Target::Open),
            figure("threads", "threads", Unit::Count, Target::Open),
        ],
    ),
    agent(
        "loopback",
        "a line and back over loopback TCP, no ACP",
        "loopback 5000",
        "loopback 2000",
        &[figure("p50_us", "median", Unit::Micros, Target::Open)],
    )
    .only_ours(),
    server(
        "ws-rtt",
        "session/new round trips over WebSocket",
        "ws-rtt 5000",
        "ws-rtt 2000",
        &[
            figure("p50_us", "median", Unit::Micros, Target::Sum { of: &["rtt", "loopback"], times: 1.2 }),
            CPU,
        ],
    ),
    server(
        "ws-stream",
        "100,000 updates over WebSocket",
        "ws-stream 100000 40",
        "ws-stream 30000 40",
        NET_STREAM,
    ),
    server(
        "ws-chunks",
        "60 chunks of 1 MiB over WebSocket",
        "ws-stream 60 1048576",
        "ws-stream 20 1048576",
        &[figure("mb_per_s", "rate", Unit::MegabytesPerSecond, Target::Open), PEAK],
    ),
    server(
        "ws-held",
        "10,000 idle connections over WebSocket",
        "ws-conns 10000",
        "ws-conns 500",
        &[
            figure("held", "held", Unit::Count, Target::Open),
            figure("kb_each", "memory each", Unit::Kilobytes, Target::AtMost(20.0)),
            figure("open_per_s", "opened", Unit::PerSecond, Target::Open),
        ],
    ),
    server(
        "ws-paced",
        "1,000 connections with 10 updates a second each over WebSocket",
        "ws-paced 1000 10 10",
        "ws-paced 300 10 3",
        &[figure("p99_ms", "99 % delivered within", Unit::Millis, Target::AtMost(50.0)), CPU],
    ),
    server(
        "wss-rtt",
        "session/new round trips over WebSocket with TLS",
        "wss-rtt 5000",
        "wss-rtt 2000",
        SECURE_TRIPS,
    )
    .only_ours(),
    server(
        "wss-stream",
        "100,000 updates over WebSocket with TLS",
        "wss-stream 100000 40",
        "wss-stream 30000 40",
        SECURE_STREAM,
    )
    .only_ours(),
    server(
        "wss-chunks",
        "60 chunks of 1 MiB over WebSocket with TLS",
        "wss-stream 60 1048576",
        "wss-stream 20 1048576",
        &[figure("mb_per_s", "rate", Unit::MegabytesPerSecond, Target::Open), PEAK],
    )
    .only_ours(),
    server(
        "wss-paced",
        "1,000 connections with 10 updates a second each over WebSocket with TLS",
        "wss-paced 1000 10 10",
        "wss-paced 300 10 3",
        &[figure("p99_ms", "99 % delivered within", Unit::Millis, Target::AtMost(50.0)), CPU],
    )
    .only_ours(),
    server(
        "wss-held",
        "10,000 idle connections over WebSocket with TLS",
        "wss-conns 10000",
        "wss-conns 500",
        HELD,
    )
    .only_ours(),
    server("http-rtt", "session/new round trips over HTTP", "http-rtt 2000", "http-rtt 1000", NET_TRIPS),
    server(
        "http-stream",
        "100,000 updates over HTTP",
        "http-stream 100000 40",
        "http-stream 30000 40",
        NET_STREAM,
    ),
    server(
        "https-rtt",
        "session/new round trips over HTTP with TLS",
        "https-rtt 2000",
        "https-rtt 1000",
        SECURE_TRIPS,
    )
    .only_ours(),
    server(
        "https-stream",
        "100,000 updates over HTTP with TLS",
        "https-stream 100000 40",
        "https-stream 30000 40",
        SECURE_STREAM,
    )
    .only_ours(),
    server("http-held", "1,000 idle connections over HTTP", "http-conns 1000", "http-conns 500", HELD),
];

const fn agent(
    name: &'static str,
    title: &'static str,
    args: &'static str,
    quick: &'static str,
    figures: &'static [Figure],
) -> Scenario {
    Scenario {
        name,
        title,
        side: Side::Agent,
        args,
        quick,
        light: None,
        in_v2: None,
        only_ours: false,
        figures,
    }
}

const fn client(
    name: &'static str,
    title: &'static str,
    args: &'static str,
    quick: &'static str,
    figures: &'static [Figure],
) -> Scenario {
    Scenario { side: Side::Client, ..agent(name, title, args, quick, figures) }
}

/// Over WebSocket and Streamable HTTP.
const fn server(
    name: &'static str,
    title: &'static str,
    args: &'static str,
    quick: &'static str,
    figures: &'static [Figure],
) -> Scenario {
    Scenario { side: Side::Server, ..agent(name, title, args, quick, figures) }
}

impl Scenario {
    const fn in_v2(self, part: f64) -> Scenario {
        Scenario { in_v2: Some(part), ..self }
    }

    const fn only_ours(self) -> Scenario {
        Scenario { only_ours: true, ..self }
    }
}

const SECURE_TRIPS: &[Figure] = &[figure("p50_us", "median", Unit::Micros, Target::Open), CPU];
const SECURE_STREAM: &[Figure] = &[figure("msgs_per_s", "rate", Unit::PerSecond, Target::Open), PEAK, CPU];
const HELD: &[Figure] = &[
    figure("kb_each", "memory each", Unit::Kilobytes, Target::Open),
    figure("open_per_s", "opened", Unit::PerSecond, Target::Open),
];
const NET_STREAM: &[Figure] = &[
    figure("msgs_per_s", "rate", Unit::PerSecond, Target::Times(4.0)),
    figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(10.0)),
    CPU,
];
const NET_TRIPS: &[Figure] = &[figure("p50_us", "median", Unit::Micros, Target::Times(1.0)), CPU];

/// The same measurement over a growing number of open sessions.
const fn sessions(
    name: &'static str,
    title: &'static str,
    args: &'static str,
    light: &'static str,
    figures: &'static [Figure],
) -> Scenario {
    Scenario { light: Some(light), ..client(name, title, args, args, figures) }
}

const SOME_SESSIONS: &[Figure] = &[figure("per_s", "rate", Unit::PerSecond, Target::Open)];
const MANY_SESSIONS: &[Figure] = &[
    figure("per_s", "rate", Unit::PerSecond, Target::Flat { from: "sess-1", part: 0.8 }),
    CPU,
    figure("rss_s_kb", "memory with them open", Unit::Megabytes, Target::Open),
];

pub(super) const BUILD: Scenario = Scenario {
    side: Side::Build,
    ..agent(
        "build",
        "clean debug build of a minimal agent",
        "",
        "",
        &[
            figure("cpu_s", "CPU", Unit::SecondsCpu, Target::AtMost(40.0)),
            figure("crates", "crates", Unit::Count, Target::AtMost(50.0)),
        ],
    )
};
