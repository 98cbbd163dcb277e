//! What an earlier run left behind that was killed before it could tidy up.
//!
//! Owns: finding it by the name of a process that is gone, and removing it. Never: touches what a living one made.

use super::inside::NAMESPACES;
use super::network::PREFIX;
use std::path::Path;
use std::process::Command;

/// Removes namespaces, the processes in them, mounts and folders of dead runs.
pub(crate) fn clean(runs: &Path) {
    for name in names_in(Path::new(NAMESPACES)) {
        if is_of_a_dead_run(&name, PREFIX) {
            end_processes(&name);
            drop(Command::new("ip").args(["netns", "delete", &name]).output());
        }
    }
    for name in names_in(runs) {
        if is_of_a_dead_run(&name, "run-") {
            let folder = runs.join(&name);
            for mount in mounts().filter(|mount| mount.contains(&name)) {
                drop(Command::new("umount").args(["--lazy", &mount]).output());
            }
            drop(std::fs::remove_dir_all(folder));
        }
    }
}

/// Nodes end with the thread that started them; this is for what doesn't.
fn end_processes(namespace: &str) {
    let Ok(output) = Command::new("ip").args(["netns", "pids", namespace]).output() else { return };
    for process in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        drop(Command::new("kill").args(["-s", "KILL", process]).output());
    }
}

fn is_of_a_dead_run(name: &str, prefix: &str) -> bool {
    let process = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next());
    let process = process.and_then(|number| number.parse::<u32>().ok());
    process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn mounts() -> impl Iterator<Item = String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points: Vec<String> =
        mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect();
    points.into_iter()
}
