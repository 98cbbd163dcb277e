//! Locks of a kunci cluster for Rust programs.
#![deny(rustdoc::broken_intra_doc_links)]

mod clock;
mod connector;
mod links;
mod renewer;
mod state;
mod timing;
mod wire;
