//! What a call asked for that nobody got to decide, for the audit log.
//!
//! Owns: which calls those are. Never: whether a call is well formed; what can't be read is left out.

use super::query::decode;
use crate::audit::{Action, Denied};
use http::Method;
use kunci_types::{Origin, Owner, ResourceName};
use serde::Deserialize;

/// None for a call that only reads.
pub(super) fn of_call(method: &Method, path: &str, body: &[u8]) -> Option<Denied> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Named {
        client_id: Option<String>,
    }
    let mut segments = path.split('/').skip(1);
    let (first, second, third) = (segments.next()?, segments.next(), segments.next());
    let action = match (first, third) {
        ("locks", Some("acquire")) => Action::Acquire,
        ("locks", Some("renew")) => Action::Renew,
        ("locks", Some("release")) => Action::Release,
        ("locks", Some("cancel")) => Action::Cancel,
        ("locks", Some("force-release")) => Action::ForceRelease,
        ("locks", None) if *method == Method::DELETE => Action::Release,
        ("leases", None) => Action::Renew,
        ("policy", None) if *method == Method::PUT => Action::Policy,
        ("cluster", None) if *method == Method::POST => Action::Members,
        _ => return None,
    };
    let resource = second.filter(|_| first == "locks").and_then(|segment| decode("resource", segment).ok());
    let named: Named = serde_json::from_slice(body).unwrap_or_default();
    Some(Denied {
        action,
        outcome: "",
        resource: resource.and_then(|name| ResourceName::parse(&name).ok()),
        owner: named.client_id.and_then(|owner| Owner::parse(&owner).ok()),
        token: None,
        lease_id: None,
        origin: Origin::UNKNOWN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_changes_something_is_known_by_its_path() {
        let denied =
            of_call(&Method::POST, "/locks/a%2Fb/acquire", br#"{"clientId":"w","requestId":"q"}"#).unwrap();
        assert_eq!((denied.action, denied.resource.unwrap().as_str()), (Action::Acquire, "a/b"));
        assert_eq!(denied.owner.unwrap().as_str(), "w");
        assert_eq!(of_call(&Method::DELETE, "/locks/a", b"").unwrap().action, Action::Release);
        for (method, path) in [(Method::GET, "/locks/a"), (Method::GET, "/policy"), (Method::GET, "/hot")] {
            assert!(of_call(&method, path, b"").is_none(), "{path}");
        }
    }
}
