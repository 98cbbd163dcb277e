//! Runs seeds: `cargo xtask sim --help`.
#![expect(clippy::print_stdout, reason = "a tool for people: its output is its product")]

fn main() {
    println!("nothing yet");
}
