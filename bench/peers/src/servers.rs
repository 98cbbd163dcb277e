//! The processes of a system under load: their start, their cost, their end.
//!
//! Owns: only processes that it started; they end with it. Never: a port that somebody else uses.

use anyhow::{Context, bail};
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Some processes, and what they used.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    children: Vec<Child>,
}

impl Servers {
    /// Starts one more; what it prints goes to `log`.
    pub(crate) fn start(&mut self, command: &mut Command, log: &Path) -> anyhow::Result<()> {
        let output = File::create(log).with_context(|| format!("create {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("share the log")?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        self.children.push(child);
        Ok(())
    }

    /// CPU time of all so far.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        self.children.iter().map(|child| cpu_of(child.id())).sum()
    }

    /// Resident memory of the largest, in bytes.
    pub(crate) fn memory_max(&self) -> anyhow::Result<u64> {
        self.children
            .iter()
            .map(|child| memory_of(child.id()))
            .try_fold(0, |most, memory| Ok(memory?.max(most)))
    }

    /// Kills one, as a machine that loses its power would.
    pub(crate) fn kill(&mut self, place: usize) -> anyhow::Result<()> {
        let child = self.children.get_mut(place).context("there is no such process")?;
        child.kill().context("kill it")?;
        child.wait().context("wait for its end")?;
        Ok(())
    }

    /// Ends all that still run.
    pub(crate) fn stop(&mut self) {
        for mut child in self.children.drain(..) {
            // One that has ended by itself is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ports on loopback that are free now.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
        *port = listener.local_addr().context("read the port")?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Tries until it goes well, for 60 s: what was just started takes a while.
pub(crate) async fn until<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let begun = tokio::time::Instant::now();
    loop {
        match tokio::time::timeout(Duration::from_secs(5), attempt()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) if begun.elapsed() > Duration::from_secs(60) => {
                return Err(error.context(format!("{what}, in vain for 60 s")));
            }
            Err(_) if begun.elapsed() > Duration::from_secs(60) => bail!("{what}: no answer for 60 s"),
            Ok(Err(_)) | Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// User and system time, from the kernel's own count.
fn cpu_of(pid: u32) -> anyhow::Result<Duration> {
    let stat = read(pid, "stat")?;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
    let fields = stat.rsplit_once(')').context("find the name's end in stat")?.1;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().context("read a CPU time"))
        .sum::<anyhow::Result<u64>>()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs(ticks) / u32::try_from(per_second).context("clock ticks per second")?)
}

fn memory_of(pid: u32) -> anyhow::Result<u64> {
    let pages = read(pid, "statm")?;
    let pages: u64 =
        pages.split_whitespace().nth(1).context("find the pages")?.parse().context("read them")?;
    Ok(pages * rustix::param::page_size() as u64)
}

fn read(pid: u32, what: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/{what}");
    std::fs::read_to_string(&path).with_context(|| format!("read {path}: the process has ended"))
}
