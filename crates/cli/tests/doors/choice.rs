//! Which door is taken: option, environment, default.

use crate::support::{Server, kunci, run};

/// Two nodes: a lock that is held at one of them only shows which one was asked.
struct Two {
    native: Server,
    http: Server,
}

impl Two {
    fn start() -> Self {
        let two = Self { native: Server::start(), http: Server::start() };
        let held = run(kunci("acquire r --owner w-n").args(two.native.option("--endpoints")));
        assert_eq!(held.code, Some(0), "{held:?}");
        let held = run(kunci("acquire r --owner w-h").args(two.http.option("--url")));
        assert_eq!(held.code, Some(0), "{held:?}");
        two
    }

    /// What is said with both in the environment.
    fn says(&self, words: &str) -> String {
        let mut command = kunci(words);
        let ran = run(command.env("KUNCI_ENDPOINTS", &self.native.native).env("KUNCI_URL", &self.http.url));
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        ran.stdout
    }
}

#[test]
fn an_option_beats_the_environment_and_there_the_endpoints_win() {
    let two = Two::start();
    assert!(two.says("status r").contains("w-n"));
    assert!(two.says(&format!("status r --url {}", two.http.url)).contains("w-h"));
    assert!(two.says(&format!("status r --url {}", two.native.url)).contains("w-n"));
    assert!(two.says(&format!("status r --endpoints {}", two.native.native)).contains("w-n"));
    let ran = run(kunci("status r").env("KUNCI_URL", &two.http.url));
    assert!(ran.stdout.contains("w-h"), "{ran:?}");
    let ran = run(kunci("status r").env("KUNCI_URL", &two.http.url).env("KUNCI_ENDPOINTS", ""));
    assert!(ran.stdout.contains("w-h"), "an empty variable says nothing: {ran:?}");
}

#[test]
fn what_only_http_can_do_takes_the_url_that_is_there() {
    let two = Two::start();
    assert!(two.says("ls").contains("w-h"));
    assert!(two.says("exec with-note --metadata note -- sh -c true").is_empty());
    assert!(two.says("acquire noted --metadata note --json").contains("\"acquired\":true"));
    assert_eq!(two.http.status("noted")["metadata"], "note");
    let token = two.http.status("r")["fencingToken"].clone();
    let renewed = two.says(&format!("renew r --owner w-h --token {token}"));
    assert!(renewed.contains("renewed"), "{renewed}");
}

/// C90: a request that can't go through the door that was named is a mistake in the arguments, and the fix is named.
#[test]
fn what_only_http_can_do_is_refused_where_only_native_doors_are_named() {
    let server = Server::start();
    for words in [
        "ls",
        "queue r",
        "watch",
        "force-release r --token 1 --reason x",
        "cluster status",
        "cluster init",
        "acquire r --metadata x",
        "renew r --owner w --token 1",
        "exec r --metadata x -- true",
    ] {
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        let (verb, rest) = if verb == "cluster" { (words, "") } else { (verb, rest) };
        let by_option = run(&mut kunci(&format!("{verb} --endpoints {} {rest}", server.native)));
        let by_variable = run(kunci(words).env("KUNCI_ENDPOINTS", &server.native));
        for (ran, named_by) in [(by_option, "--endpoints"), (by_variable, "KUNCI_ENDPOINTS")] {
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words}: {ran:?}");
            let says = format!(
                "goes over HTTP only, and {named_by} names native doors; name the HTTP of a node with --url"
            );
            assert!(ran.stderr.contains(&says), "{words}: {ran:?}");
        }
    }
    assert!(server.is_free("r"));
}

#[test]
fn a_door_that_cannot_be_meant_is_a_mistake_in_the_arguments() {
    for (words, says) in [
        ("status r --endpoints a:1 --url http://a:1", "cannot be used with"),
        ("exec r --endpoints a:1 --url http://a:1 -- true", "cannot be used with"),
        ("status r --endpoints http://a:1", "`http://a:1` is no native door; expected host:port"),
        ("status r --endpoints a:1,", "`` is no native door"),
        ("status r --endpoints a:99999", "`a:99999` is no native door"),
        ("exec r --endpoints a -- true", "`a` is no native door"),
        ("bench reads --connections 2 --url http://127.0.0.1:1", "over HTTP each client has one of its own"),
    ] {
        let ran = run(&mut kunci(words));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words}: {ran:?}");
        assert!(ran.stderr.contains(says), "{words}: {ran:?}");
    }
    let ran = run(kunci("bench reads").env("KUNCI_URL", "http://192.0.2.1:1"));
    assert!(ran.code == Some(2) && ran.stderr.contains("cluster outright with --url"), "{ran:?}");
    let ran = run(kunci("status r").env("KUNCI_ENDPOINTS", "nonsense"));
    assert!(ran.code == Some(2) && ran.stderr.contains("KUNCI_ENDPOINTS: `nonsense`"), "{ran:?}");
}

/// C90
#[test]
fn no_node_behind_the_native_doors_is_69_and_one_of_several_is_enough() {
    let server = Server::start();
    for words in ["acquire r --patience 300ms", "renew r AAAAAAAAAAAAAAAAAAAAAA --patience 300ms", "status r"]
    {
        let ran = run(&mut kunci(&format!("{words} --json --endpoints 127.0.0.1:9,127.0.0.1:10")));
        assert_eq!((ran.code, ran.json()["applied"].as_str()), (Some(69), Some("no")), "{words}: {ran:?}");
        assert!(ran.stderr.contains("check --endpoints or --url"), "{words}: {ran:?}");
    }
    let some = format!("127.0.0.1:9,{}", server.native);
    let ran = run(&mut kunci(&format!("status r --endpoints {some}")));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "r is free\n  waiting  0\n"), "{ran:?}");
}

#[test]
fn help_says_which_cluster_is_asked() {
    for verb in ["acquire", "status", "exec"] {
        let ran = run(&mut kunci(&format!("{verb} --help")));
        assert!(ran.stdout.contains("of both in the environment the endpoints are taken"), "{verb}: {ran:?}");
    }
    for verb in ["ls", "watch", "cluster status", "cluster add"] {
        let ran = run(&mut kunci(&format!("{verb} --help")));
        assert!(
            !ran.stdout.contains("--endpoints") && ran.stdout.contains("http://127.0.0.1:7400"),
            "{verb}: {ran:?}"
        );
    }
    let ran = run(&mut kunci("bench --help"));
    assert!(ran.stdout.contains("--url") && ran.stdout.contains("--endpoints"), "{ran:?}");
}
