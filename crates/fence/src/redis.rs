//! The fence in Redis 7: a function library, and the same as one script.
//!
//! Owns: the Lua, the names of fence keys, and what a refusal says. Never: a connection; any Redis client can call it.

use crate::gate::Rejected;
use kunci_types::{FencingToken, ResourceName};

/// The function library `kunci`: `kunci_admit`, `kunci_set`, `kunci_do`, `kunci_kept`. `FUNCTION LOAD REPLACE` takes it as
/// it is.
pub const LIBRARY: &str = concat!(
    include_str!("redis/head.lua"),
    include_str!("redis/core.lua"),
    include_str!("redis/register.lua")
);

/// The same as a script for `EVAL` and `EVALSHA`, for servers where functions aren't to be loaded.
pub const SCRIPT: &str = concat!(include_str!("redis/core.lua"), include_str!("redis/dispatch.lua"));

/// The code of a rejection, the first word of its error.
pub const REJECTED: &str = "KUNCI_REJECTED";

/// The fence key of a resource, `kunci:fence:{orders/42}`: in a cluster it is in the slot of the key `orders/42`, and of all
/// keys with the hash tag `{orders/42}`.
///
/// None for a name with a `}`, which would end the hash tag early: choose a key yourself then. Any key will do that is in
/// the slot of the data and that nothing else writes.
///
/// # Example
/// ```
/// use kunci_fence::redis::fence_key;
///
/// assert_eq!(fence_key("orders/42").as_deref(), Some("kunci:fence:{orders/42}"));
/// assert_eq!(fence_key("{orders}/42"), None);
/// ```
pub fn fence_key(resource: &str) -> Option<String> {
    let can_be_a_tag = !resource.is_empty() && !resource.contains('}');
    can_be_a_tag.then(|| format!("kunci:fence:{{{resource}}}"))
}

/// Reads an error of the functions or the script; none when it is no rejection, but a fault that isn't about who came
/// first.
///
/// # Example
/// ```
/// let rejected = kunci_fence::redis::rejected("KUNCI_REJECTED resource=orders/42 found=11 kept=12").unwrap();
/// assert_eq!((rejected.found.get(), rejected.kept.get()), (11, 12));
/// assert_eq!(kunci_fence::redis::rejected("WRONGTYPE Operation against a key holding the wrong kind of value"), None);
/// ```
pub fn rejected(error: &str) -> Option<Rejected> {
    let facts = error.strip_prefix(REJECTED)?.strip_prefix(" resource=")?;
    // A name may hold anything, the words that follow it too.
    let (facts, kept) = facts.rsplit_once(" kept=")?;
    let (resource, found) = facts.rsplit_once(" found=")?;
    let token = |text: &str| FencingToken::presented(text.trim_end().parse().ok()?).ok();
    Some(Rejected { resource: ResourceName::parse(resource).ok()?, found: token(found)?, kept: token(kept)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_is_read_whatever_its_resource_is_called() {
        let name = "a found=1 kept=2 resource=b";
        let read = rejected(&format!("KUNCI_REJECTED resource={name} found=11 kept=12")).unwrap();
        assert_eq!((read.resource.as_str(), read.found.get(), read.kept.get()), (name, 11, 12));
    }

    #[test]
    fn other_errors_are_no_rejections() {
        for error in [
            "",
            "KUNCI_REJECTED",
            "KUNCI_REJECTED resource=r found=x kept=12",
            "KUNCI_REJECTED resource=r found=11 kept=9007199254740992",
            "KUNCI_INVALID found token 07: expected 1 to 9007199254740991 in plain digits",
        ] {
            assert_eq!(rejected(error), None, "{error}");
        }
    }
}
