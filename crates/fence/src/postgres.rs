//! The fence in PostgreSQL: one SQL file.
//!
//! Owns: the SQL, its version, its SQLSTATEs, and what a refusal says. Never: a connection; any client can run it.

use crate::gate::Rejected;
use kunci_types::{FencingToken, ResourceName};

/// Schema `kunci`: `kunci.admit`, the guard of tables, and what belongs to them. Any client can run it, again too: it is one
/// transaction, and it changes nothing that is there.
pub const SQL: &str = include_str!("postgres/fence.sql");

/// The version of [`SQL`], which `kunci.fence_version()` answers once it is installed.
pub const VERSION: u32 = 1;

/// SQLSTATE: a newer token was admitted before. Final for the token that was found.
pub const REJECTED: &str = "KF001";

/// SQLSTATE: a guarded table was written, or `kunci.admit` called, without a token.
pub const NO_TOKEN: &str = "KF002";

/// SQLSTATE: what was given as a token is no whole number from 1 to 2^53 − 1.
pub const MALFORMED_TOKEN: &str = "KF003";

/// SQLSTATE: what was given as a resource's name can't be one.
pub const MALFORMED_RESOURCE: &str = "KF004";

/// SQLSTATE: the resource isn't the one that the table is bound to.
pub const OTHER_RESOURCE: &str = "KF005";

/// SQLSTATE: the fence can't be installed or changed like this.
pub const MISUSED: &str = "KF006";

/// Reads an error of PostgreSQL, by its SQLSTATE and its `DETAIL`; none when it is no rejection, but a fault that isn't
/// about who came first, or one that a retry may mend, such as `40001`.
///
/// # Example
/// ```
/// use kunci_fence::postgres::rejected;
///
/// let detail = r#"{"resource" : "orders/42", "token" : 11, "current" : 12}"#;
/// let rejected = rejected("KF001", detail).unwrap();
/// assert_eq!((rejected.found.get(), rejected.kept.get()), (11, 12));
/// ```
pub fn rejected(sqlstate: &str, detail: &str) -> Option<Rejected> {
    if sqlstate != REJECTED {
        return None;
    }
    // A name may hold anything, the words that follow it too.
    let (facts, kept) = detail.strip_suffix('}')?.rsplit_once(", \"current\" : ")?;
    let (facts, found) = facts.rsplit_once(", \"token\" : ")?;
    let resource = unescaped(facts.strip_prefix("{\"resource\" : \"")?.strip_suffix('"')?);
    let token = |text: &str| FencingToken::presented(text.parse().ok()?).ok();
    Some(Rejected {
        resource: ResourceName::parse(&resource).ok()?,
        found: token(found)?,
        kept: token(kept)?,
    })
}

/// A text without JSON's escapes; a name has no control characters, so there are two of them.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let next = || match characters.next() {
        Some('\\') => characters.next(),
        other => other,
    };
    std::iter::from_fn(next).collect()
}

/// The page's code is run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fencing.md")]
struct Page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_is_read_whatever_its_resource_is_called() {
        let detail =
            r#"{"resource" : "a\\b\", \"token\" : 1, \"current\" : 2}", "token" : 11, "current" : 12}"#;
        let read = rejected("KF001", detail).unwrap();
        let name = r#"a\b", "token" : 1, "current" : 2}"#;
        assert_eq!((read.resource.as_str(), read.found.get(), read.kept.get()), (name, 11, 12));
    }

    #[test]
    fn other_errors_are_no_rejections() {
        let detail = r#"{"resource" : "r", "token" : 11, "current" : 12}"#;
        assert_eq!(rejected("40001", detail), None);
        for detail in ["", "{}", r#"{"resource" : "r", "token" : x, "current" : 12}"#] {
            assert_eq!(rejected("KF001", detail), None, "{detail}");
        }
    }
}
