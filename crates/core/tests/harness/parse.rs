//! A line of a transcript as an entry.
//!
//! `@<time> <command> & <command>…`; `a/q1` is request `q1` of owner `a`, `a@svc/q1` the same asked for by the
//! authenticated caller `svc`; `a#3` is owner and token as proof.

use super::names::Names;
use kunci_core::command::{
    Abandon, Acquire, Cancel, Command, Departure, Detach, Entry, ForceRelease, Proof, RaiseFeatureLevel,
    RaiseRevision, Release, Renew, Renewal, RequestIdFrom, SetPolicy,
};
use kunci_core::{LockTable, RequestKey};
use kunci_types::{
    Caller, ClusterTime, FencingToken, LockDelay, Metadata, Owner, Policy, Reason, RequestId, ResourceName,
    Revision, Ttl, Wait,
};

/// Reads `<time> <command> & <command>…`.
pub(crate) fn entry(line: &str, table: &LockTable, names: &mut Names) -> Entry {
    let (now, commands) = line.split_once(' ').expect("a time and commands");
    let commands = commands.split(" & ").filter(|text| *text != "tick");
    let commands = commands.map(|text| command(text, table, names)).collect();
    Entry::new(ClusterTime::from_ms(duration_ms(now)), commands)
}

fn command(text: &str, table: &LockTable, names: &mut Names) -> Command {
    let words: Vec<&str> = text.split(' ').collect();
    let (verb, words) = words.split_first().expect("a verb");
    match *verb {
        "acquire" => Command::Acquire(acquire(words, names)),
        "renew" => Command::Renew(Renew {
            leases: words.split(|word| *word == "+").map(|words| renewal(words, names)).collect(),
        }),
        "release" => {
            Command::Release(Release { resource: resource(words[0]), proof: proof(words[1], names) })
        }
        "cancel" => {
            let (caller, _, request_id) = request(words[1]);
            Command::Cancel(Cancel { resource: resource(words[0]), caller, request_id })
        }
        "detach" => {
            let (caller, _, request_id) = request(words[0]);
            Command::Detach(Detach {
                request: RequestKey::new(&caller, &request_id),
                attempt: names.attempt(&call(words, &request_id)),
                departure: if words.contains(&"told") { Departure::Told } else { Departure::Lost },
            })
        }
        "abandon" => {
            let (caller, _, request_id) = request(words[0]);
            Command::Abandon(Abandon {
                request: RequestKey::new(&caller, &request_id),
                attempt: names.attempt(&call(words, &request_id)),
            })
        }
        "force" => Command::ForceRelease(ForceRelease {
            resource: resource(words[0]),
            token: token(words[1]),
            reason: Reason::parse(words[2]).expect("a reason"),
        }),
        "take-over" => Command::TakeOver,
        "policy" => Command::SetPolicy(SetPolicy {
            replaces: revision(option(words, "replaces").expect("replaces=")),
            policy: policy(&words[1..], table.policy()),
        }),
        "raise" => Command::RaiseRevision(RaiseRevision { floor: revision(words[0]) }),
        "level" => {
            Command::RaiseFeatureLevel(RaiseFeatureLevel { level: words[0].parse().expect("a level") })
        }
        other => panic!("no such command: {other}"),
    }
}

fn acquire(words: &[&str], names: &mut Names) -> Acquire {
    let (caller, owner, request_id) = request(words[1]);
    let call = call(words, &request_id);
    Acquire {
        resource: resource(words[0]),
        caller,
        owner,
        request_id_from: if words.contains(&"server-id") {
            RequestIdFrom::Server
        } else {
            RequestIdFrom::Client
        },
        ttl: option(words, "ttl").map(|text| Ttl::from_ms(duration_ms(text))),
        wait: Wait::from_ms(option(words, "wait").map_or(0, duration_ms)),
        lock_delay: LockDelay::from_ms(option(words, "delay").map_or(0, duration_ms)),
        metadata: option(words, "meta").map(|text| Metadata::parse(text).expect("metadata")),
        lease_id: names.lease_id(&call),
        attempt: names.attempt(&call),
        request_id,
    }
}

fn renewal(words: &[&str], names: &mut Names) -> Renewal {
    Renewal {
        resource: resource(words[0]),
        proof: proof(words[1], names),
        ttl: option(words, "ttl").map(|text| Ttl::from_ms(duration_ms(text))),
    }
}

fn proof(word: &str, names: &mut Names) -> Proof {
    match word.split_once('#') {
        None => Proof::LeaseId(names.lease_id(word)),
        Some((who, number)) => {
            let (caller, owner) = who_asks(who);
            Proof::OwnerToken { caller, owner, token: token(number) }
        }
    }
}

fn request(word: &str) -> (Caller, Owner, RequestId) {
    let (who, request_id) = word.split_once('/').expect("<owner>/<request id>");
    let (caller, owner) = who_asks(who);
    (caller, owner, RequestId::parse(request_id).expect("a request id"))
}

fn who_asks(who: &str) -> (Caller, Owner) {
    match who.split_once('@') {
        None => (Caller::Unproven(owner(who)), owner(who)),
        Some((shown, caller)) => (Caller::Proven(owner(caller)), owner(shown)),
    }
}

fn call(words: &[&str], request_id: &RequestId) -> String {
    format!("{request_id}.{}", option(words, "call").unwrap_or("1"))
}

fn policy(words: &[&str], current: &Policy) -> Policy {
    let mut policy = current.clone();
    for word in words {
        let (field, value) = word.split_once('=').expect("<field>=<value>");
        let number = duration_ms(value);
        match field {
            "ttl_min" => policy.ttl_ms_min = number,
            "ttl_max" => policy.ttl_ms_max = number,
            "ttl_default" => policy.ttl_ms_default = number,
            "total_hold" => policy.total_hold_ms_max = number,
            "wait_max" => policy.wait_ms_max = number,
            "delay_max" => policy.lock_delay_ms_max = number,
            "window" => policy.retry_window_ms = number,
            "outcomes" => policy.outcomes_max = number,
            "waiters_per_resource" => policy.waiters_per_resource_max = number,
            "waiters_per_namespace" => policy.waiters_per_namespace_max = number,
            "waiters" => policy.waiters_max = number,
            "leases_per_namespace" => policy.leases_per_namespace_max = number,
            "leases" => policy.leases_max = number,
            "waiter_grace" => policy.waiter_grace_ms = number,
            "failover_grace" => policy.failover_grace_ms = number,
            "owner_token" => policy.owner_token_proof = number == 1,
            other => panic!("no such policy field: {other}"),
        }
    }
    policy
}

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// `500`, `5s`, `1m`, `2h`, with `+` or `-` and milliseconds behind (`1m+1`); `max` is the type's largest.
pub(crate) fn duration_ms(text: &str) -> u64 {
    if text == "max" {
        return u64::MAX;
    }
    if let Some((left, right)) = text.split_once('+') {
        return duration_ms(left) + duration_ms(right);
    }
    if let Some((left, right)) = text.split_once('-') {
        return duration_ms(left) - duration_ms(right);
    }
    let unit = |suffix: char, ms: u64| text.strip_suffix(suffix).map(|number| (number, ms));
    let (number, ms) = unit('s', 1_000).or(unit('m', 60_000)).or(unit('h', 3_600_000)).unwrap_or((text, 1));
    number.parse::<u64>().unwrap_or_else(|_| panic!("not a duration: {text}")) * ms
}

/// A resource name.
pub(crate) fn resource(text: &str) -> ResourceName {
    ResourceName::parse(text).expect("a resource name")
}

fn owner(text: &str) -> Owner {
    Owner::parse(text).expect("an owner")
}

fn revision(text: &str) -> Revision {
    Revision::new(duration_ms(text)).expect("a revision")
}

fn token(text: &str) -> FencingToken {
    FencingToken::presented(text.parse().expect("a token")).expect("a token")
}
