//! `kunci exec`: what the command gets, and which code comes out.

use crate::fake::{Fake, Weather};
use crate::support::{exec, kunci, run};
use std::os::unix::fs::PermissionsExt as _;

/// C90
#[test]
fn the_commands_own_end_is_the_end_of_exec() {
    let fake = Fake::start();
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
    {
        let ran = run(&mut exec(&fake, "", script));
        assert_eq!(ran.code, Some(code), "{script}: {ran:?}");
        assert!(fake.is_free(), "{script}");
    }
}

/// C90
#[test]
fn a_command_that_is_not_there_is_127_and_one_that_cannot_be_executed_126() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "echo no").unwrap();
    assert_eq!(run(&mut kunci(&fake, "exec r -- no-such-command-here")).code, Some(127));
    assert_eq!(run(kunci(&fake, "exec r --").arg(&plain)).code, Some(126));
    assert!(fake.state().log.is_empty(), "the lock wasn't asked for");

    // Only starting it shows that its interpreter isn't there.
    std::fs::write(&plain, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(kunci(&fake, "exec r --").arg(&plain)).code, Some(127));
    assert!(fake.is_free(), "the lock was given back");
}

/// C73, C90: the command never starts without the lock.
#[test]
fn without_the_lock_the_command_is_not_started() {
    let fake = Fake::start();
    fake.take();
    let none = "--patience 300ms --try";
    for (weather, options, code) in [
        (Weather::Fine, "--try", 75),
        (Weather::Fine, "--wait 200ms", 75),
        (Weather::Fine, "--try --skip-ok", 0),
        (Weather::NoQuorum, none, 69),
        (Weather::Broken, none, 69),
        (Weather::Teapot, none, 77),
    ] {
        fake.set(weather);
        let ran = run(&mut exec(&fake, options, "echo started"));
        assert_eq!(ran.code, Some(code), "{weather:?} {options}: {ran:?}");
        assert!(ran.stdout.is_empty(), "{weather:?} {options}: {ran:?}");
    }
    let ran = run(&mut kunci(&fake, "exec r --url http://127.0.0.1:9 --patience 300ms -- echo started"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(69), ""), "{ran:?}");
}

#[test]
fn the_command_finds_token_lease_resource_owner_and_url_in_its_environment() {
    let fake = Fake::start();
    let script = "echo $KUNCI_FENCING_TOKEN $KUNCI_LEASE_ID $KUNCI_RESOURCE $KUNCI_OWNER $KUNCI_URL";
    let ran = run(&mut exec(&fake, "--owner w-7", script));
    assert_eq!(ran.stdout, format!("1 -000000000000000000001 r w-7 {}\n", fake.url()));
}

/// C68, C90
#[test]
fn a_release_that_fails_takes_5_s_at_most_and_does_not_hide_the_commands_code() {
    let fake = Fake::start();
    let began_at = tokio::time::Instant::now();
    let running = exec(&fake, "", "sleep 0.3; exit 3").spawn().unwrap();
    crate::support::until("it holds", || !fake.is_free());
    fake.set(Weather::NoQuorum);
    let ran = crate::support::finish(running);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("release r: no_quorum"), "{ran:?}");
    assert!(began_at.elapsed().as_secs_f64() < 6.5, "took {:?}", began_at.elapsed());
}

/// Contract, section 4: a lease that may be half over is renewed before anything relies on it.
#[test]
fn after_a_blocked_acquire_the_lease_is_renewed_before_the_command_starts() {
    let fake = Fake::start();
    fake.take();
    let waiting = exec(&fake, "", "echo started").spawn().unwrap();
    crate::support::until("it waits", || !fake.state().queue.is_empty());
    std::thread::sleep(std::time::Duration::from_millis(100));
    fake.end_lease("released");
    let ran = crate::support::finish(waiting);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "started\n"));
    let verbs: Vec<String> = fake.state().log.iter().map(|(verb, _)| verb.clone()).collect();
    assert_eq!(verbs, ["acquire", "renew", "release"]);
}
