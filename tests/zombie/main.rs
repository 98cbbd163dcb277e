//! What it is all for, on real servers: a worker that was stopped for longer than its lease wakes up and writes late. With
//! the fence its write is refused and the data is intact; without it, the newer holder's work is lost.
//!
//! Read `round` for what happens, `target` for what a protected resource shows of itself, and one file for each of
//! them. `cargo xtask zombie` runs it; it needs no root, and the programs that the targets start.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by a panic, in its helpers too; words on stderr are what a worker tells the test"
)]

mod cluster;
mod file;
mod postgres;
#[path = "../../crates/fence/tests/support/postgres/mod.rs"]
mod postgres_server;
mod proxy;
#[path = "../../crates/cli/tests/fence_proxy/process.rs"]
#[expect(
    dead_code,
    reason = "this test neither kills a proxy nor asks for its metrics; the proxy's own does"
)]
mod proxy_process;
mod redis;
#[path = "../../crates/fence/tests/redis_server/mod.rs"]
mod redis_server;
mod report;
mod round;
mod run;
mod target;
mod worker;
