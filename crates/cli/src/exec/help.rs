//! What `kunci exec --help` says beyond its options.

macro_rules! codes {
    () => {
        "\
Exit codes: the command's own, or 128 + the signal that ended it; and of exec itself
    2  usage: an argument can't be used as given; the command was not started
   69  no quorum, or no node reachable; the command was not started
   75  somebody else has the lock; the command was not started (0 with --skip-ok)
   76  the lock was lost; the command was ended
   77  refused for another reason; the command was not started
  126  the command can't be executed
  127  the command isn't there
  128 + signal, such as 130 for Ctrl-C, when interrupted while waiting"
    };
}

/// The exit codes, for `-h`.
pub(crate) const CODES: &str = codes!();

/// The codes and what is and isn't promised, for `--help` and the manual page.
pub(crate) const LONG_HELP: &str = concat!(
    codes!(),
    "

",
    crate::args::doors!(),
    "

The command finds in its environment:
  KUNCI_FENCING_TOKEN, KUNCI_LEASE_ID, KUNCI_RESOURCE, KUNCI_OWNER,
  and KUNCI_ENDPOINTS and KUNCI_URL as far as they name the cluster of its lock;
  with --fence-postgres resource and token in PGOPTIONS too, after what was there
Hand the fencing token to whatever the lock protects, and let that refuse smaller ones: only this
makes a paused or cut-off job harmless.

While the command runs, its lease is renewed at a third of the TTL. A failed renewal is repeated
and stops nothing. When the lease's end comes near all the same, the command's whole process group
gets TERM, after the grace KILL, and is dead before anybody else can be granted the lock. When the
server says that the lease is over, TERM comes at once and KILL half a second later at most. When
this process itself was paused past the deadline (by STOP, or by a suspended machine), KILL comes
at once. A leader change can take a second: with a --ttl of 5s or more no job notices.

TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are passed on to the group. On a terminal the command
has the foreground, and Ctrl-Z stops command and wrapper together; the lease isn't renewed
meanwhile, so going on after its end kills the command. An interrupt while waiting cancels the
wait on the server and gives back what was granted meanwhile.

When the command has ended, processes that it left in its group get TERM, after the grace KILL;
then the lock is released, tried for at most 5s. A failed release doesn't change the exit code: the
lease ends by itself.

What can't be promised:
- While this process is stopped, it neither renews nor ends the command. The command may then run
  on after the lease has ended, until this process goes on.
- When this process gets KILL, the kernel kills the command itself, but not what the command
  started; and the lock stays taken until its TTL is over.
- A process that leaves the group (setsid, a daemon) isn't followed.
- A command that takes other rights (set-user-ID) may be out of reach for our signals."
);
