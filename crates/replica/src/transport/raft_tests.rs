//! The Raft connections under test: by a scripted other end, and by a cluster of three in one process.

mod appends;
mod asks;
mod cluster;
mod net;
mod rules;
mod snapshots;
mod streams;
mod succession;
