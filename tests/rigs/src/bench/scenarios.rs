//! What is measured, and what ours must reach: data, read top to bottom like the table it becomes.

/// Which side of the protocol the peer plays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Under `bench-driver`.
    Agent,
    /// Against `raw-agent`.
    Client,
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
    Count,
}

impl Unit {
    /// Is more better?
    pub(super) fn is_rate(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::MegabytesPerSecond)
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
    /// At least this part of the same figure in another scenario: it must not depend on what differs.
    Flat { from: &'static str, part: f64 },
}

const fn figure(key: &'static str, what: &'static str, unit: Unit, target: Target) -> Figure {
    Figure { key, what, unit, target }
}

const CPU: Figure = figure("cpu_us_per", "CPU each", Unit::MicrosCpu, Target::Open);
const PEAK: Figure = figure("hwm_kb", "peak memory", Unit::Megabytes, Target::Open);

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "startup",
        title: "start to the answer to initialize",
        side: Side::Agent,
        args: "startup 15",
        quick: "startup 9",
        light: None,
        figures: &[
            figure("median_ms", "time", Unit::Millis, Target::Times(1.0)),
            figure("cpu_ms", "CPU", Unit::Millis, Target::Open),
        ],
    },
    Scenario {
        name: "rtt",
        title: "session/new round trips, one at a time",
        side: Side::Agent,
        args: "rtt 5000",
        quick: "rtt 2000",
        light: None,
        figures: &[figure("p50_us", "median", Unit::Micros, Target::Times(4.0)), CPU],
    },
    Scenario {
        name: "in-flight",
        title: "session/new, 64 in flight",
        side: Side::Agent,
        args: "pipe 30000 64",
        quick: "pipe 10000 64",
        light: None,
        figures: &[figure("per_s", "rate", Unit::PerSecond, Target::Times(30.0)), CPU],
    },
    Scenario {
        name: "stream",
        title: "200,000 small updates out of an agent",
        side: Side::Agent,
        args: "stream 200000 40",
        quick: "stream 50000 40",
        light: None,
        figures: &[
            figure("msgs_per_s", "rate", Unit::PerSecond, Target::Times(25.0)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(8.0)),
            CPU,
            figure("first_ms", "first update after", Unit::Millis, Target::Open),
        ],
    },
    Scenario {
        name: "streamy",
        title: "the same, the author yields after each",
        side: Side::Agent,
        args: "stream 200000 40 streamy",
        quick: "stream 50000 40 streamy",
        light: None,
        figures: &[figure("msgs_per_s", "rate", Unit::PerSecond, Target::Open), PEAK],
    },
    Scenario {
        name: "stalled",
        title: "the same while the reader stalls 3 s",
        side: Side::Agent,
        args: "slowread 200000 40 3",
        quick: "slowread 50000 40 2",
        light: None,
        figures: &[figure("rss_stalled_kb", "memory held", Unit::Megabytes, Target::AtMost(8.0))],
    },
    Scenario {
        name: "chunks",
        title: "200 chunks of 1 MiB out of an agent",
        side: Side::Agent,
        args: "stream 200 1048576",
        quick: "stream 60 1048576",
        light: None,
        figures: &[
            figure("mb_per_s", "rate", Unit::MegabytesPerSecond, Target::Times(1.6)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(24.0)),
        ],
    },
    Scenario {
        name: "client-stream",
        title: "200,000 updates into a client's typed handler",
        side: Side::Client,
        args: "stream 200000 40",
        quick: "stream 50000 40",
        light: None,
        figures: &[
            figure("per_s", "rate", Unit::PerSecond, Target::Times(12.0)),
            figure("hwm_kb", "peak memory", Unit::Megabytes, Target::AtMost(8.0)),
            CPU,
        ],
    },
    Scenario {
        name: "read",
        title: "agent to client fs/read_text_file round trips",
        side: Side::Agent,
        args: "call 10000 read",
        quick: "call 3000 read",
        light: None,
        figures: &[figure("per_s", "rate", Unit::PerSecond, Target::Times(7.0)), CPU],
    },
    Scenario {
        name: "permission",
        title: "agent to client request_permission round trips",
        side: Side::Agent,
        args: "call 10000 perm",
        quick: "call 3000 perm",
        light: None,
        figures: &[figure("per_s", "rate", Unit::PerSecond, Target::Open), CPU],
    },
    Scenario {
        name: "burst",
        title: "another request during a burst of 200,000 updates",
        side: Side::Agent,
        args: "hol 200000",
        quick: "hol 50000",
        light: None,
        figures: &[figure("other_request_ms", "answered after", Unit::Millis, Target::AtMost(20.0))],
    },
    Scenario {
        name: "client-rtt",
        title: "session/new round trips of a client",
        side: Side::Client,
        args: "rtt 5000",
        quick: "rtt 2000",
        light: None,
        figures: &[figure("p50_us", "median", Unit::Micros, Target::Open), CPU],
    },
    Scenario {
        name: "client-read",
        title: "a client that answers fs/read_text_file",
        side: Side::Client,
        args: "call 10000",
        quick: "call 3000",
        light: None,
        figures: &[figure("per_s", "rate", Unit::PerSecond, Target::Open), CPU],
    },
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
    Scenario {
        name: "sessions",
        title: "an agent with 1,000 open sessions",
        side: Side::Agent,
        args: "sessions 1000",
        quick: "sessions 1000",
        light: None,
        figures: &[
            figure("rss_s_kb", "memory", Unit::Megabytes, Target::Times(1.0)),
            figure("p50_us", "an empty turn", Unit::Micros, Target::Open),
        ],
    },
    Scenario {
        name: "idle",
        title: "an agent at rest for 5 s",
        side: Side::Agent,
        args: "idle 5",
        quick: "idle 2",
        light: None,
        figures: &[
            figure("rss_kb", "memory", Unit::Megabytes, Target::Open),
            figure("cpu_ms", "CPU", Unit::Millis, Target::Open),
            figure("ctxsw", "wakeups", Unit::Count, Target::Open),
            figure("threads", "threads", Unit::Count, Target::Open),
        ],
    },
];

/// The same measurement over a growing number of open sessions.
const fn sessions(
    name: &'static str,
    title: &'static str,
    args: &'static str,
    light: &'static str,
    figures: &'static [Figure],
) -> Scenario {
    Scenario { name, title, side: Side::Client, args, quick: args, light: Some(light), figures }
}

const SOME_SESSIONS: &[Figure] = &[figure("per_s", "rate", Unit::PerSecond, Target::Open)];
const MANY_SESSIONS: &[Figure] = &[
    figure("per_s", "rate", Unit::PerSecond, Target::Flat { from: "sess-1", part: 0.8 }),
    CPU,
    figure("rss_s_kb", "memory with them open", Unit::Megabytes, Target::Open),
];

pub(super) const BUILD: Scenario = Scenario {
    name: "build",
    title: "clean debug build of a minimal agent",
    side: Side::Build,
    args: "",
    quick: "",
    light: None,
    figures: &[
        figure("cpu_s", "CPU", Unit::SecondsCpu, Target::AtMost(40.0)),
        figure("crates", "crates", Unit::Count, Target::AtMost(50.0)),
    ],
};
