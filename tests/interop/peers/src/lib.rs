//! Files and terminals that both clients provide to agents. The peers are the programs in `bin/`.

pub mod host;
