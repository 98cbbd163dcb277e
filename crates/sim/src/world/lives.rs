//! Who lives and who is dead.
//!
//! Owns: starting and killing processes of nodes, and starting again what ended by itself. Never: decides which; faults
//! do.

use super::World;
use crate::disk::{Disk, Loss};
use crate::network::{Leaving, NATIVE};
use crate::node::{Life, Machine};
use crate::randomness::Seeded;
use kunci_server::node::{Ended, Founding};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long after its end a process is started again, as a supervisor of the system does.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How a node dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Its process is killed. The system goes on, with what it had in its page cache.
    Process,
    /// Its machine loses power.
    Machine(Loss),
}

/// A machine in the hand of one fault: no other touches it until this is dropped.
pub struct Grip {
    world: World,
    /// The machine.
    pub name: String,
}

impl Drop for Grip {
    fn drop(&mut self) {
        self.world.with_machine(&self.name, |machine| machine.is_gripped = false);
    }
}

impl World {
    /// Does something with a machine.
    pub fn with_machine<R>(&self, name: &str, work: impl FnOnce(&mut Machine) -> R) -> Option<R> {
        self.machines().get_mut(name).map(work)
    }

    /// Every machine that belongs to the world, by name.
    pub fn names(&self) -> Vec<String> {
        self.machines().keys().cloned().collect()
    }

    /// The addresses of all native doors.
    pub fn native_addresses(&self) -> Vec<String> {
        self.machines().keys().map(|name| format!("{name}:{NATIVE}")).collect()
    }

    /// Every machine with a process, and that process.
    pub fn lives(&self) -> Vec<(String, Life)> {
        let machines = self.machines();
        machines.iter().filter_map(|(name, machine)| Some((name.clone(), machine.life.clone()?))).collect()
    }

    /// Takes one of the machines that nothing is done to and that live.
    pub fn grip(&self, random: &mut Seeded) -> Option<Grip> {
        let free: Vec<String> = self
            .machines()
            .iter()
            .filter(|(_, machine)| !machine.is_gripped && machine.life.is_some())
            .map(|(name, _)| name.clone())
            .collect();
        let name = random.pick(&free)?.clone();
        self.grip_named(&name)
    }

    /// Takes this machine, if nothing is done to it.
    pub fn grip_named(&self, name: &str) -> Option<Grip> {
        let is_free = self.with_machine(name, |machine| !std::mem::replace(&mut machine.is_gripped, true));
        is_free?.then(|| Grip { world: self.clone(), name: name.to_owned() })
    }

    /// Sets up a machine that is off.
    pub fn add_machine(&self) -> String {
        let mut machines = self.machines();
        let number =
            machines.keys().filter_map(|name| name.get(1..)?.parse::<u64>().ok()).max().unwrap_or(0) + 1;
        let name = format!("n{number}");
        let disk = Disk::new(self.random(&format!("disk of {name}")));
        machines.insert(name.clone(), Machine::new(&name, disk));
        name
    }

    /// Takes a machine that is off out of the world.
    pub fn remove_machine(&self, name: &str) {
        self.machines().remove(name);
    }

    /// Starts the node of a machine that has no process.
    pub fn start(&self, name: &str, founding: Founding) {
        let (entering, ending) = (self.clone(), self.clone());
        let (entering_name, ending_name) = (name.to_owned(), name.to_owned());
        self.with_machine(name, |machine| {
            if machine.life.is_some() {
                return;
            }
            let number = machine.lives + 1;
            machine.start(
                self.plan(),
                self.network(),
                founding,
                move |replica| entering.entered(&entering_name, replica.clone()),
                move |ended| {
                    // The process is over; what comes after it isn't part of it.
                    tokio::spawn(async move { ending.ended(&ending_name, number, Some(ended)).await });
                },
            );
            self.trace().tell(name, || format!("process {number} starts"));
        });
    }

    /// Kills the node of a machine, if it lives.
    pub fn kill(&self, name: &str, death: Death) {
        let leaving = if death == Death::Process { Leaving::Process } else { Leaving::Machine };
        self.network().unplug(name, leaving);
        self.with_machine(name, |machine| {
            let lost = match death {
                Death::Process => {
                    machine.disk.cut();
                    String::new()
                }
                Death::Machine(loss) => machine.disk.lose_power(loss),
            };
            if let Some(life) = machine.life.take() {
                life.process.kill();
                life.forget();
            }
            self.trace().tell(name, || format!("dies: {death:?}. {lost}"));
        });
    }

    /// Asks the node of a machine to stop in good order, and waits for that, and no longer than a supervisor does.
    pub async fn stop(&self, name: &str) {
        const STOPS_WITHIN: Duration = Duration::from_secs(30);
        let Some(Some(life)) = self.with_machine(name, |machine| machine.life.clone()) else { return };
        self.trace().tell(name, || "is asked to stop".to_owned());
        life.ask_to_stop();
        let end = Instant::now() + STOPS_WITHIN;
        while !life.process.is_killed() && Instant::now() < end {
            sleep(Duration::from_millis(20)).await;
        }
        if !life.process.is_killed() {
            self.kill(name, Death::Process);
        }
    }

    /// A process came to its end by itself; without `ended` by a panic.
    pub(super) async fn ended(&self, name: &str, number: u64, ended: Option<Ended>) {
        let is_it = |machine: &mut Machine| {
            let is_it = machine.life.as_ref().is_some_and(|life| life.number == number);
            (is_it, machine.is_excused)
        };
        let Some((true, is_excused)) = self.with_machine(name, is_it) else { return };
        self.trace().tell(name, || format!("process {number} ended: {ended:?}"));
        if ended != Some(Ended::Stopped) && !is_excused {
            self.broken("node_lives", || {
                format!("{name} ended by itself, though nothing ails it: {ended:?}")
            });
        }
        self.kill(name, Death::Process);
        sleep(AGAIN_AFTER).await;
        let wants_start = |machine: &mut Machine| machine.life.is_none() && !machine.is_gripped;
        if self.with_machine(name, wants_start) == Some(true) {
            self.start(name, Founding::WhenAsked);
        }
    }

    /// Mends everything, and starts whoever is dead.
    pub(super) async fn heal(&self) {
        self.network().mend_all();
        for name in self.names() {
            self.with_machine(&name, |machine| {
                machine.disk.set_failing(false);
                machine.disk.set_hanging(false);
                machine.disk.set_room(None);
                machine.disk.set_sync_time(None);
                machine.rate_ppm = 0;
                if let Some(life) = &machine.life {
                    life.process.set_rate(0);
                    life.process.resume();
                }
            });
        }
        // What strikes still undoes itself first.
        drop(self.changing().await);
        for name in self.names() {
            if self.with_machine(&name, |machine| machine.life.is_none()) == Some(true) {
                self.start(&name, Founding::WhenAsked);
            }
        }
    }
}
